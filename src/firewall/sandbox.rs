//! Stage: sandbox.
