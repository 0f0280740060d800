//! Portcullis: a policy-first secure execution gateway for AI agents.
//!
//! The way of a call, which is also the order in which to read this crate:
//!
//! ```text
//! Request ─► canonicalise ─► facts ─► FIREWALL ─► Cleared ─► dispatch ─► Outcome
//! (call.rs)   (registry/)   (facts/)  1 policy      │        (tools/)
//!                                     2 command     │
//!                                     3 path        │
//!                                     4 sandbox     │
//!                        audit: decided ◄───────────┘  audit: finished
//! ```
//!
//! [`gateway`] is the one way through; everything else is a station on it.

pub mod approval;
pub mod audit;
pub mod call;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;
pub mod facts;
mod files;
pub mod firewall;
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
pub mod hook;
pub mod http;
pub mod install;
pub(crate) mod json;
pub mod mcp;
pub mod registry;
pub mod sandbox;
pub mod state;
pub mod tools;
pub mod upstream;
pub mod verdict;
