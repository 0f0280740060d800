//! The audit log and the approvals from outside: many processes, crashes, damage, a full disk.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests may panic")]

mod approvals;
mod checkpoints;
mod crash;
mod damage;
mod full_disk;
mod many_writers;
mod reading;
mod redaction;
mod support;
