//! Words: every expansion of bash, on abstract text, and what pure programs print.

pub(super) mod alternatives;
pub(super) mod arithmetic;
pub(super) mod assign;
pub(super) mod braces;
pub(super) mod conditions;
pub(super) mod expand;
pub(super) mod operators;
pub(super) mod producers;
pub(super) mod text;
pub(super) mod variables;
