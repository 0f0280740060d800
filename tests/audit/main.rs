//! The audit log and the approvals from outside: many processes, crashes, damage, a full disk.

mod approvals;
mod crash;
mod damage;
mod full_disk;
mod many_writers;
mod reading;
mod support;
