//! Stage: path.
