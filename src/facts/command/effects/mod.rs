//! What programs do to their operands, as effects on kinds of targets.

pub(super) mod databases;
pub(super) mod files;
pub(super) mod git;
pub(super) mod kill;
pub(super) mod listed;
pub(super) mod machine;
pub(super) mod network;
pub(super) mod places;
pub(super) mod programs;
pub(super) mod target;
pub(super) mod telling;
