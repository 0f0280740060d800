//! Inline code of other languages: a small evaluator that follows constants into the calls that start processes and touch
//! files. It knows no conditions: every call that stands in the code counts. `inline_lex` makes tokens, `inline_eval`
//! follows them, `calls` knows the languages' libraries.

use super::inline_eval::Evaluator;
use super::inline_lex::tokens;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::UNKNOWN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Perl,
    Ruby,
    Node,
    Php,
    Lua,
    R,
    Julia,
    Elixir,
    Erlang,
    Haskell,
    Octave,
    OCaml,
    /// Java, Groovy, Kotlin, Scala, C#, Swift, Go, Dart, Rust: their calls are spelled alike.
    Curly,
    Vim,
    Awk,
}

impl Language {
    /// Its comments to the end of the line.
    pub fn comment(self) -> &'static [&'static str] {
        use Language as L;
        match self {
            L::Python | L::Perl | L::Ruby | L::R | L::Julia | L::Elixir | L::Awk => &["#"],
            L::Php => &["#", "//"],
            L::Octave => &["#", "%"],
            L::Node | L::Curly => &["//"],
            L::Lua | L::Haskell => &["--"],
            L::Erlang => &["%"],
            L::OCaml | L::Vim => &[],
        }
    }

    /// What joins texts, besides `+`.
    pub fn joins(self, c: char) -> bool {
        use Language as L;
        match self {
            L::Perl | L::Php | L::Lua | L::Vim => c == '.',
            L::OCaml => c == '^',
            L::Julia => c == '*',
            _ => false,
        }
    }

    /// Calls may lack parentheses.
    pub fn calls_bare(self) -> bool {
        use Language as L;
        matches!(self, L::Ruby | L::Perl | L::Php | L::Lua | L::Elixir | L::Haskell | L::OCaml)
    }

    /// Backticks hold a command.
    pub fn backticks_run(self) -> bool {
        use Language as L;
        matches!(self, L::Perl | L::Ruby | L::Php | L::Julia)
    }

    /// Single quotes keep backslashes.
    pub fn raw_single(self) -> bool {
        matches!(self, Language::Perl | Language::Ruby | Language::Php | Language::Vim)
    }
}

/// A value of the evaluator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
    List(Vec<Value>),
    /// A keyword argument or an object's member.
    Named(String, Box<Value>),
    /// A function, a module or another thing that is known by its path only.
    Path(String),
    /// One of these, as the turns of a loop.
    Choice(Vec<Value>),
    Unknown,
}

impl Value {
    /// Roughly its bytes; `None` where they are more than `limit`, or it is nested deeper than `depth`.
    pub fn size(&self, limit: usize, depth: usize) -> Option<usize> {
        let size = match self {
            Value::Text(text) | Value::Path(text) => text.len(),
            Value::Number(_) | Value::Unknown => 1,
            Value::Named(name, value) => name.len() + value.size(limit, depth.checked_sub(1)?)?,
            Value::List(items) | Value::Choice(items) => {
                let depth = depth.checked_sub(1)?;
                let mut size = 1;
                for item in items {
                    size += item.size(limit, depth)?;
                    if size > limit {
                        return None;
                    }
                }
                size
            }
        };
        (size <= limit).then_some(size)
    }

    pub fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Named(_, value) => value.text(),
            Value::List(items) if items.len() == 1 => items.first().map(Value::text).unwrap_or_default(),
            Value::List(_) | Value::Unknown | Value::Path(_) | Value::Choice(_) => UNKNOWN.to_string(),
        }
    }
}

pub(crate) fn run(walker: &mut Walker<'_>, language: Language, code: &str) {
    run_with(walker, language, code, &[]);
}

/// The same with variables that are set already.
pub(crate) fn run_with(walker: &mut Walker<'_>, language: Language, code: &str, variables: &[(&str, Value)]) {
    let (tokens, complete) = tokens(language, code);
    if !complete {
        walker.limited("inline code");
    }
    super::calls::patterns(walker, code);
    let recursing = walker.recursing;
    let mut evaluator = Evaluator::new(walker, language, &tokens);
    for (name, value) in variables {
        evaluator.set(name, value.clone());
    }
    evaluator.statements(tokens.len());
    walker.recursing = recursing;
}
