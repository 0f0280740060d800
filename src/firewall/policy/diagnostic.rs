//! What is wrong with policies, in the form in which a person gets it: file, line, column, the place underlined, and
//! Cedar's own help.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode, SourceSpan};

use crate::firewall::policy::source::Source;

/// One thing that is wrong, or doubtful, in a policy file.
#[derive(Clone, Debug)]
pub struct Problem {
    pub severity: Severity,
    /// The file's name.
    pub file: String,
    /// Line and column, from 1; the column counts characters. Absent where the file as a whole is meant.
    pub place: Option<(usize, usize)>,
    pub message: String,
    pub help: Option<String>,
    labels: Vec<LabeledSpan>,
    text: Option<NamedSource<Arc<str>>>,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(super) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Error,
            file: file.to_owned(),
            place: None,
            message: message.into(),
            help: None,
            labels: Vec::new(),
            text: None,
        }
    }

    /// A problem at a place, in bytes.
    pub(super) fn at(source: &Source, span: Range<usize>, message: impl Into<String>) -> Self {
        let label = LabeledSpan::new_with_span(None, SourceSpan::from(span));
        Problem::of_file(&source.name, message).marked(source, vec![label])
    }

    /// What Cedar says, with its labels and its help.
    pub(super) fn from_cedar(source: &Source, cedar: &dyn Diagnostic) -> Self {
        let mut problem = Problem::of_file(&source.name, chain(cedar));
        problem.help = cedar.help().map(|help| help.to_string());
        let labels = cedar.labels().into_iter().flatten().collect();
        problem.marked(source, labels)
    }

    pub(super) fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn marked(mut self, source: &Source, labels: Vec<LabeledSpan>) -> Self {
        let length = source.text.len();
        self.labels = labels.into_iter().filter(|label| label.offset() + label.len() <= length).collect();
        self.place = self.labels.first().map(|label| place(&source.text, label.offset()));
        self.text = Some(NamedSource::new(&*source.name, Arc::clone(&source.text)));
        self
    }
}

/// An error's message with those of its sources.
fn chain(error: &dyn Diagnostic) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}

/// Line and column of a byte offset, both from 1.
pub(super) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(offset)).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or("").chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.text.as_ref().map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = _>>)
    }
}

/// Why a set of policies was refused: every problem at once.
#[derive(Clone, Debug)]
pub struct PolicyError {
    pub problems: Vec<Problem>,
}

impl From<Problem> for PolicyError {
    fn from(problem: Problem) -> Self {
        PolicyError { problems: vec![problem] }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => write!(f, "the policies were refused: {only}"),
            many => {
                write!(f, "the policies were refused for {} problems", many.len())?;
                many.iter().try_for_each(|problem| write!(f, "\n{problem}"))
            }
        }
    }
}

impl Error for PolicyError {}

impl Diagnostic for PolicyError {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}
