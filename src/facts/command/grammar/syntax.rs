//! The syntax tree of a bash script. Every node that findings point at carries its bytes in the command text.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

pub(crate) type Span = Range<usize>;

/// Commands in order, however they are separated.
pub(crate) type List = Vec<Item>;

/// An and-or list: pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Item {
    pub first: Pipeline,
    pub rest: Vec<(Connector, Pipeline)>,
    pub background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub commands: Vec<Command>,
    /// After `!`.
    pub negated: bool,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub kind: Kind,
    pub redirects: Vec<Redirect>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Group(List),
    Subshell(List),
    If {
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    While {
        /// `until`.
        until: bool,
        condition: List,
        body: List,
    },
    /// `for` and `select`; without words they run over the positional parameters.
    For {
        name: String,
        words: Option<Vec<Word>>,
        /// `select`: the input says which word comes first, and next.
        chosen: bool,
        body: List,
    },
    ArithmeticFor {
        header: Word,
        body: List,
    },
    Case {
        subject: Word,
        arms: Vec<Arm>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    Arithmetic(Word),
    /// `[[ ... ]]`: its words; an operator is a word that is plain unquoted text.
    Test(Vec<Word>),
    Coprocess(Box<Command>),
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub patterns: Vec<Word>,
    pub list: List,
    pub next: Next,
}

/// What follows an arm of `case` that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// `;;`
    End,
    /// `;&`: the list of the next arm.
    Run,
    /// `;;&`: the patterns after it.
    Test,
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub name: String,
    pub index: Option<Word>,
    pub append: bool,
    pub value: Word,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub parts: Vec<Part>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Unquoted text: tilde, braces and globs are alive in it.
    Literal(String),
    /// Text that a quote or a backslash protects.
    Quoted(String),
    Double(Vec<Part>),
    Parameter(Rc<Parameter>),
    /// `$( )` and backticks.
    Substitution(Rc<List>),
    /// `$(( ))` and `$[ ]`.
    Arithmetic(Rc<Word>),
    /// `<( )` and `>( )`.
    Process {
        list: Rc<List>,
        reads: bool,
    },
    /// `=( ... )` after a variable's name.
    Array(Rc<Vec<Word>>),
}

/// `$name`, `${name}` and all of its operators.
#[derive(Debug, Default)]
pub(crate) struct Parameter {
    pub name: String,
    /// `$name`, which takes letters that braces bring (`$na{me,y}`).
    pub bare: bool,
    pub index: Option<Word>,
    /// `${!name}`.
    pub indirect: bool,
    /// `${#name}`.
    pub length: bool,
    /// The operator as written (`:-`, `##`, `//`, `@`, `:`, ...); empty for a plain expansion.
    pub operator: &'static str,
    pub argument: Option<Word>,
    /// The replacement of `/`, the length of `:`.
    pub second: Option<Word>,
}

#[derive(Debug)]
pub(crate) struct Redirect {
    /// The file descriptor on the left, where one is written.
    pub fd: Option<u32>,
    pub operator: RedirectOperator,
    /// The target; a heredoc's body is here too.
    pub target: Rc<OnceCell<Word>>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectOperator {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `<&` and `>&` with a descriptor; `>& file` is `Both`.
    DuplicateInput,
    DuplicateOutput,
    /// `&>` and `&>>`.
    Both,
    HereDocument,
    HereString,
}

impl RedirectOperator {
    /// Whether the command may not run because of it.
    pub fn may_fail(self) -> bool {
        !matches!(self, Self::HereDocument | Self::HereString)
    }
}

impl Word {
    /// The text, where the word is plain unquoted text.
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Reads `NAME=value`, `NAME+=value` and `NAME[index]=value`, as bash does where a command may start and in the
    /// operands of `declare` and its like.
    pub fn as_assignment(&self) -> Option<Assignment> {
        let Some(Part::Literal(head)) = self.parts.first() else { return None };
        let name_len = head.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        if name_len == 0 || head.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (name, rest) = head.split_at_checked(name_len)?;
        if let Some(subscript) = rest.strip_prefix('[') {
            return self.element_assignment(name, subscript);
        }
        let (append, value) = match rest.strip_prefix("+=") {
            Some(value) => (true, value),
            None => (false, rest.strip_prefix('=')?),
        };
        Some(self.assignment(name, None, append, value, 1))
    }

    fn element_assignment(&self, name: &str, subscript: &str) -> Option<Assignment> {
        let mut index = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let Part::Literal(text) = part else {
                index.push(part.clone());
                continue;
            };
            let text = if i == 0 { subscript } else { text.as_str() };
            for (close, append) in [("]=", false), ("]+=", true)] {
                if let Some((before, value)) = text.split_once(close) {
                    index.push(Part::Literal(before.to_owned()));
                    let index = Word { parts: index, span: self.span.clone() };
                    return Some(self.assignment(name, Some(index), append, value, i + 1));
                }
            }
            index.push(Part::Literal(text.to_owned()));
        }
        None
    }

    fn assignment(&self, name: &str, index: Option<Word>, append: bool, head: &str, rest: usize) -> Assignment {
        let mut parts = Vec::with_capacity(self.parts.len());
        if !head.is_empty() {
            parts.push(Part::Literal(head.to_owned()));
        }
        parts.extend(self.parts.iter().skip(rest).cloned());
        let value = Word { parts, span: self.span.clone() };
        Assignment { name: name.to_owned(), index, append, value, span: self.span.clone() }
    }
}
