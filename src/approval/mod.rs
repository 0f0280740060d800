//! Approvals: an ASK is a state machine, persisted in `state.db`.
