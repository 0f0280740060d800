//! The audit log: JSON Lines with a hash chain, decided before run.
