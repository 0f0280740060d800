//! Stage: command.
