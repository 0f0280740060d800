//! The built-in tools.

pub mod shell;
