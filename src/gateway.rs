//! The one way of a call through the gateway.
