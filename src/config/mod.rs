//! Configuration: where it lies, what it says, who may loosen it.
