//! Variables with several possible values: where branches meet, and what a command does with each of them.

use std::rc::Rc;

use super::env::{Held, Value};
use super::syntax::{Command, Kind, Word};
use super::text::UNKNOWN;
use super::walk::Walker;

impl Walker<'_> {
    pub(super) fn note_read(&mut self, name: &str) {
        let name = self.env.references.get(name).map_or(name, String::as_str);
        if self.env.alternatives.contains_key(name) {
            self.reads.insert(name.to_owned());
        }
    }

    /// A simple command runs once more for each other value of each variable that it reads; what it assigns may then
    /// hold the other values too.
    pub(super) fn each_alternative(&mut self, command: &Command) -> String {
        let Kind::Simple { assignments, words } = &command.kind else { return self.command_here(command) };
        if self.env.alternatives.is_empty() {
            return self.command_here(command);
        }
        let before = self.env.clone();
        let outer = std::mem::take(&mut self.reads);
        let printed = self.command_here(command);
        let read = std::mem::replace(&mut self.reads, outer);
        let mut found: Vec<(String, Value)> = Vec::new();
        for name in &read {
            for value in before.alternatives.get(name).cloned().unwrap_or_default() {
                if self.exhausted() {
                    return printed;
                }
                self.steps += 1 + before.variables.len() / 16;
                let mut env = before.clone();
                env.set(name, value);
                let after = std::mem::replace(&mut self.env, env);
                let traps = self.env.traps.len();
                let reads = std::mem::take(&mut self.reads);
                self.command_here(command);
                self.reads = reads;
                if self.env.traps.len() > traps {
                    self.ending(traps);
                }
                if words.is_empty() || !assignments.is_empty() || words.first().and_then(Word::literal).is_some() {
                    let assigned = self.env.variables.iter().filter(|(key, value)| {
                        *key != name && after.variables.contains_key(*key) && after.variables.get(*key) != Some(value)
                    });
                    found.extend(assigned.map(|(key, value)| (key.clone(), value.clone())));
                }
                self.env = after;
            }
        }
        self.add_alternatives(found);
        // A substitution gives something else for each value too.
        self.reads.extend(read);
        printed
    }

    pub(super) fn add_alternatives(&mut self, found: Vec<(String, Value)>) {
        for (name, value) in found {
            if !self.env.add_alternative(&name, value) {
                self.limited("values of a variable");
                self.env.set_text(&name, UNKNOWN);
            }
        }
    }

    /// Joins the variables of branches of which one ran: what differs may hold the value of any of them.
    pub(super) fn join(&mut self, base: &Held, mut outcomes: Vec<Held>) {
        let Some(last) = outcomes.pop() else {
            self.env.hold(base.clone());
            return;
        };
        self.env.hold(last);
        for other in outcomes {
            self.join_with(base, &other);
        }
    }

    pub(super) fn join_with(&mut self, base: &Held, other: &Held) {
        if Rc::ptr_eq(&other.variables, &self.env.variables) && Rc::ptr_eq(&other.alternatives, &self.env.alternatives)
        {
            return;
        }
        self.steps += other.variables.len() / 16;
        let mut found = Vec::new();
        for (name, value) in other.variables.iter() {
            let held = self.env.variables.get(name);
            if held == Some(value) {
                continue;
            }
            // The value that only this branch gave goes on; where another did, both do.
            if held.is_none() || held == base.variables.get(name) && base.variables.get(name) != Some(value) {
                let old = held.cloned();
                let others = self.env.alternatives.get(name).cloned().unwrap_or_default();
                self.env.set(name, value.clone());
                found.extend(others.into_iter().chain(old).map(|value| (name.clone(), value)));
            } else {
                found.push((name.clone(), value.clone()));
            }
        }
        for (name, values) in other.alternatives.iter() {
            found.extend(values.iter().map(|value| (name.clone(), value.clone())));
        }
        self.add_alternatives(found);
    }
}
