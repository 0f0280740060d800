//! The abstract interpreter: follows a script as bash would run it, with what is known of its state.

pub(super) mod attributes;
pub(super) mod branches;
pub(super) mod builtins;
pub(super) mod directories;
pub(super) mod env;
pub(super) mod exec;
pub(super) mod exports;
pub(super) mod flow;
pub(super) mod forkbomb;
pub(super) mod functions;
pub(super) mod known;
pub(super) mod links;
pub(super) mod names;
pub(super) mod read;
pub(super) mod redirects;
#[cfg(test)]
mod tests;
pub(super) mod walk;
