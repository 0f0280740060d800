//! MCP, as a client sees it.

#[path = "../common/mod.rs"]
mod common;

mod client;
mod http;
mod stdio;
