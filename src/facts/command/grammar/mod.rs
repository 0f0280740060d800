//! The grammar: a command text to a syntax tree. Nothing is expanded or judged here.

pub(super) mod parse;
pub(super) mod parse_redirect;
pub(super) mod parse_word;
pub(super) mod syntax;
#[cfg(test)]
mod tests;
