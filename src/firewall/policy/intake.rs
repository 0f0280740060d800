//! Reading policy files, and what of a text is refused before Cedar's parser sees it.

use std::io;
use std::path::Path;

use crate::files::{self, Author};
use crate::firewall::policy::diagnostic::{PolicyError, Problem};
use crate::firewall::policy::source::{Source, Trust};

/// The most bytes of one policy file.
pub const MAX_FILE: usize = 1 << 20;
/// The most bytes of one policy, not counting comments, space and strings: a long list of names is fine, but Cedar's
/// trees are as deep as a chain of operators is long.
pub const MAX_POLICY: usize = 8 << 10;
/// The deepest nesting of brackets.
pub const MAX_DEPTH: usize = 64;

impl Source {
    /// Reads a `.cedar` file, or every `.cedar` file directly in a directory, in the order of their names.
    /// Subdirectories are not entered: `shadow/` decides nothing, and a set is named by its own directory.
    pub fn read(path: &Path, trust: Trust) -> Result<Vec<Source>, PolicyError> {
        if path.is_dir() {
            return Source::all(path, trust);
        }
        let gone = || unreadable(path, &io::Error::from(io::ErrorKind::NotFound));
        Ok(vec![read_file(path, trust)?.ok_or_else(gone)?])
    }

    /// Every policy file directly in a directory. No directory means no policies.
    pub fn all(dir: &Path, trust: Trust) -> Result<Vec<Source>, PolicyError> {
        let files = files::list(dir, "cedar").map_err(|why| unreadable(dir, &why))?.unwrap_or_default();
        let mut sources = Vec::new();
        for file in files {
            sources.extend(read_file(&file, trust)?);
        }
        Ok(sources)
    }

    /// What could exhaust the parser: too many bytes, a policy that is too long, brackets too deep.
    pub(super) fn excess(&self) -> Option<Problem> {
        if self.text.len() > MAX_FILE {
            let message = format!("the file has {} bytes, more than the {MAX_FILE} allowed", self.text.len());
            return Some(Problem::of_file(&self.name, message));
        }
        let (at, message) = oversized(&self.text)?;
        Some(Problem::at(self, at..at + 1, message))
    }
}

fn read_file(path: &Path, trust: Trust) -> Result<Option<Source>, PolicyError> {
    let author = match trust {
        Trust::Operator => Author::Operator,
        Trust::Workspace => Author::Workspace,
    };
    let text = files::read_text(path, author).map_err(|why| unreadable(path, &why))?;
    Ok(text.map(|text| Source::new(path.display().to_string(), text, trust)))
}

fn unreadable(at: &Path, why: &io::Error) -> PolicyError {
    Problem::of_file(&at.display().to_string(), format!("the policies cannot be read: {why}")).into()
}

/// The first place where a policy gets too long or too deep.
fn oversized(text: &str) -> Option<(usize, String)> {
    let mut depth = 0_usize;
    let mut length = 0_usize;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        length += 1;
        match byte {
            b'"' => {
                while let Some((_, inner)) = bytes.next() {
                    match inner {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'/' if bytes.peek().is_some_and(|(_, next)| *next == b'/') => {
                length -= 1;
                for (_, inner) in bytes.by_ref() {
                    if inner == b'\n' {
                        break;
                    }
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => length = 0,
            b' ' | b'\n' | b'\t' | b'\r' => length -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some((at, format!("brackets are nested deeper than {MAX_DEPTH}; split the policy")));
        }
        if length > MAX_POLICY {
            return Some((at, format!("this policy has more than {MAX_POLICY} bytes of code; split it")));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i2_what_could_exhaust_the_parser_is_refused_first() {
        let chain = format!("permit (principal, action, resource) when {{ {}true }};", "true && ".repeat(20_000));
        let deep =
            format!("permit (principal, action, resource) when {{ {}true{} }};", "(".repeat(5_000), ")".repeat(5_000));
        for hostile in [chain, deep] {
            let refused = Source::new("x.cedar", hostile, Trust::Operator).excess();
            assert!(refused.is_some(), "a hostile policy reached the parser");
        }
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        let text =
            format!("// {}\n@id(\"{}\\\"\")\npermit (principal, action, resource);", "(".repeat(90), "[".repeat(90));
        assert_eq!(oversized(&text), None, "text inside quotes and comments was taken for nesting");
    }
}
