//! MCP, as a client sees it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../served/mod.rs"]
mod served;

mod client;
mod http;
mod stdio;
