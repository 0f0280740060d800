//! The MCP server: the gateway's tools for agents that speak the Model Context Protocol, revisions up to 2025-11-25
//! (`initialize`) and 2026-07-28 (stateless), over stdio and over streamable HTTP.
//!
//! [`Server`] turns `tools/call` into a [`crate::call::Request`] and what came of it into a result. It decides nothing.
//! A [`Thin`] client asks the daemon, where one runs. [`stdio`] and [`http`] carry it.

mod answer;
mod behind;
pub mod http;
mod listing;
mod server;
pub mod stdio;
mod wait;

pub use self::behind::{Thin, ThinError};
pub use self::server::Server;
pub use self::wait::Patience;
