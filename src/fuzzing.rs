//! What must hold for any input, each as one plain function that panics where it does not. `fuzz/` runs them under
//! libFuzzer; `tests/fuzz_regressions.rs` replays seeds, past findings and a fixed stream of inputs through them.
//! [`differential`] holds the command guard against real bash.

#![expect(clippy::expect_used, clippy::panic, reason = "a broken property is reported by a panic")]

mod audit_recover;
mod command;
mod confined;
mod decide;
pub mod differential;
mod input;
mod kernel;
mod mcp_session;
mod mcp_wire;
pub mod metamorphic;
mod path;
pub mod paths;
mod policy_load;
mod random;
mod scratch;

pub use self::audit_recover::audit_recover;
pub use self::command::command;
pub use self::confined::confined;
pub use self::decide::decide;
pub use self::mcp_wire::mcp_wire;
pub use self::path::path;
pub use self::policy_load::policy_load;

/// A property of arbitrary bytes.
pub type Property = fn(&[u8]);

/// Every property, by the name of its fuzz target.
pub const TARGETS: &[(&str, Property)] = &[
    ("audit_recover", audit_recover),
    ("command", command),
    ("decide", decide),
    ("mcp_wire", mcp_wire),
    ("path", path),
    ("policy_load", policy_load),
];
