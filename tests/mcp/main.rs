//! MCP, as a client sees it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops where it cannot go on"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../served/mod.rs"]
mod served;

mod attacks;
mod client;
mod http;
mod stdio;
mod thin;
