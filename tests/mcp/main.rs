//! MCP, as a client sees it.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops where it cannot go on")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../served/mod.rs"]
mod served;

mod attacks;
mod client;
mod http;
mod stdio;
mod thin;
