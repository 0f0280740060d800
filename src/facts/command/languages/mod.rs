//! Other languages that a command line carries: where their code stands, and the calls in it that start processes or touch
//! files.

pub(super) mod call_names;
pub(super) mod call_values;
pub(super) mod calls;
pub(super) mod consoles;
pub(super) mod inline;
pub(super) mod inline_eval;
pub(super) mod inline_lex;
pub(super) mod inline_statements;
pub(super) mod interpreters;
pub(super) mod leaks;
pub(super) mod lisp;
pub(super) mod tcl;
pub(super) mod text_scripts;
pub(super) mod windows;
