//! Hooks, from the event of an agent's own program to what that program does with the answer.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

#[path = "../common/mod.rs"]
mod common;
mod events;
mod failures;
#[path = "../served/mod.rs"]
mod served;
mod sessions;
mod simulator;
mod support;
