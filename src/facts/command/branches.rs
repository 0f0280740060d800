//! Compound commands that choose or repeat: `if`, `case`, `for`, `while`.

use super::syntax::{Command, Kind, List, Pipeline, Word};
use super::text::{UNKNOWN, has_unknown};
use super::walk::Walker;

/// How often a loop over known text is unrolled.
const ITERATIONS: usize = 200;

impl Walker<'_> {
    /// Each branch may run, and starts where the condition ended. The variables that they leave different hold the
    /// values of all of them.
    pub(super) fn if_clause(&mut self, branches: &[(List, List)], otherwise: Option<&List>) -> String {
        let mut out = String::new();
        let base = self.env.held();
        let mut outcomes = Vec::new();
        for (condition, then) in branches {
            self.list(condition);
            let cwd = (self.env.cwd.clone(), self.env.cwd_if_failed.clone());
            let base = self.env.held();
            out.push_str(&self.list(then));
            if !ends_leaving(then) {
                outcomes.push(self.env.held());
            }
            self.env.hold(base);
            if self.env.cwd != cwd.0 {
                // Whether the branch ran is open.
                self.env.cwd_if_failed = Some(cwd.0);
            }
        }
        let leaving = otherwise.is_some_and(ends_leaving);
        if let Some(list) = otherwise {
            out.push_str(&self.list(list));
        }
        if !leaving {
            outcomes.push(self.env.held());
        }
        self.join(&base, outcomes);
        out
    }

    pub(super) fn while_clause(&mut self, condition: &List, body: &List) -> String {
        self.maybe(|walker| walker.turns(condition, body))
    }

    /// What may not run at all.
    pub(super) fn maybe(&mut self, run: impl FnOnce(&mut Self) -> String) -> String {
        let base = self.env.held();
        let out = run(self);
        self.join_with(&base, &base);
        out
    }

    fn turns(&mut self, condition: &List, body: &List) -> String {
        let mut out = String::new();
        for _ in 0..ITERATIONS {
            let before = self.env.stdin.clone();
            self.list(condition);
            let outer = std::mem::replace(&mut self.bulk, true);
            out.push_str(&self.list(body));
            self.bulk = outer;
            // Only a loop that eats known input turns again.
            let eaten = match (&before, &self.env.stdin) {
                (Some(before), Some(now)) => now.len() < before.len() && !now.trim().is_empty(),
                _ => false,
            };
            if !eaten || self.exhausted() {
                return self.bounded(out);
            }
        }
        self.limited("turns of a loop");
        out
    }

    pub(super) fn for_clause(&mut self, name: &str, words: Option<&[Word]>, body: &List) -> String {
        let outer_reads = std::mem::take(&mut self.reads);
        let mut values: Vec<String> = match words {
            Some(words) => self.expand(words).into_iter().map(|field| field.text).collect(),
            None => match self.env.positional.clone() {
                Some(items) => items.iter().skip(1).cloned().collect(),
                None => vec![UNKNOWN.to_string()],
            },
        };
        let read = std::mem::replace(&mut self.reads, outer_reads);
        if let Some(words) = words {
            for name in &read {
                for value in self.env.alternatives.get(name).cloned().unwrap_or_default() {
                    let more = self.subshell(|walker| {
                        walker.env.set(name, value);
                        walker.expand(words)
                    });
                    for text in more.into_iter().map(|field| field.text) {
                        if !values.contains(&text) {
                            values.push(text);
                        }
                    }
                }
            }
        }
        let mut out = String::new();
        let base = self.env.held();
        let maybe = values.iter().any(|value| has_unknown(value));
        let many = values.len() > 1 || values.iter().any(|value| has_unknown(value));
        let outer = self.bulk;
        self.bulk |= many;
        for (turn, value) in values.into_iter().enumerate() {
            if turn == ITERATIONS {
                self.limited("turns of a loop");
                break;
            }
            self.steps += 1;
            // A glob that nobody expanded stands for the names it matches.
            self.env.set_text(name, value);
            out.push_str(&self.list(body));
            if self.exhausted() {
                break;
            }
        }
        self.bulk = outer;
        if maybe {
            self.join_with(&base, &base);
        }
        self.bounded(out)
    }

    pub(super) fn case_clause(&mut self, subject: &Word, arms: &[(Vec<Word>, List)]) -> String {
        self.text(subject);
        let mut out = String::new();
        let base = self.env.held();
        let mut outcomes = Vec::new();
        let mut all = false;
        for (patterns, list) in arms {
            all |= patterns.iter().any(|pattern| pattern.literal().is_some_and(|text| text == "*"));
            for pattern in patterns {
                self.text(pattern);
            }
            let saved = (self.env.cwd.clone(), self.env.cwd_if_failed.clone());
            out.push_str(&self.list(list));
            (self.env.cwd, self.env.cwd_if_failed) = saved;
            if !ends_leaving(list) {
                outcomes.push(self.env.held());
            }
            self.env.hold(base.clone());
        }
        if !all {
            outcomes.push(base.clone());
        }
        self.join(&base, outcomes);
        out
    }
}

/// Whether a pipeline ends the shell: `exit`, `return`.
pub(super) fn leaves(pipeline: &Pipeline) -> bool {
    let leaving = |command: &Command| match &command.kind {
        Kind::Simple { words, .. } => words
            .first()
            .and_then(Word::literal)
            .is_some_and(|name| matches!(name, "exit" | "return" | "continue" | "break")),
        Kind::Group(list) => list.iter().any(|item| leaves(&item.first)),
        _ => false,
    };
    matches!(pipeline.commands.as_slice(), [command] if leaving(command))
}

/// Whether a branch ends the shell, so that nothing after it sees what it assigned.
pub(super) fn ends_leaving(list: &List) -> bool {
    list.last().is_some_and(|item| item.rest.is_empty() && !item.background && leaves(&item.first))
}
