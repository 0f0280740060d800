//! Placeholder until the slice below it compiles.
fn main() {}
