//! Variables with several possible values: where paths meet, and what a command does with each of them.

use std::rc::Rc;

use super::text::{TOKEN, UNKNOWN, is_known};
use crate::facts::command::effects::programs;
use crate::facts::command::grammar::syntax::{Command, Kind, List, Redirect, Word};
use crate::facts::command::shell::env::{Env, POSITIONAL, Value};
use crate::facts::command::shell::flow::Way;
use crate::facts::command::shell::walk::Walker;

/// How many combinations of values one command is tried with.
const COMBINATIONS: usize = 48;

/// How many texts of its substitutions one command is tried with, and how deep that nests.
const CHOICES: usize = 8;

/// How many combinations of them.
const CHOSEN: usize = 12;

impl Walker<'_> {
    pub(crate) fn note_read(&mut self, name: &str) {
        if self.env.alternatives.is_empty() {
            return;
        }
        let name = self.env.references.get(name).map_or(name, String::as_str);
        let positional =
            matches!(name, "@" | "*" | "#") || name.starts_with(|c: char| c.is_ascii_digit()) && name != "0";
        let name = if positional { POSITIONAL } else { name };
        if self.env.alternatives.contains_key(name) {
            self.reads.insert(name.to_owned());
        }
    }

    /// A simple command runs once more for each combination of other values of the variables that it reads.
    pub(crate) fn each_alternative(&mut self, command: &Command) -> String {
        match &command.kind {
            Kind::Simple { .. } => self.each_value(|walker| walker.command_here(command)),
            _ => {
                let open = |redirect: &Redirect| redirect.target.get().is_some_and(|word| word.literal().is_none());
                if !self.env.alternatives.is_empty() && command.redirects.iter().any(open) {
                    self.other_redirects(&command.redirects);
                }
                self.command_here(command)
            }
        }
    }

    /// Where the redirects of a compound command may lead.
    fn other_redirects(&mut self, redirects: &[Redirect]) {
        let before = self.env.clone();
        let status = self.status;
        self.each_value(|walker| {
            walker.redirects(redirects);
            String::new()
        });
        self.enter(before);
        self.status = status;
    }

    /// Runs for all values of the variables that it reads, and for all that its substitutions may print; the states
    /// after it are joined.
    pub(crate) fn each_value(&mut self, mut run: impl FnMut(&mut Self) -> String) -> String {
        let outer = std::mem::take(&mut self.choices);
        let printed = self.each_held_value(&mut run);
        let found = std::mem::replace(&mut self.choices, outer);
        if found.is_empty() || self.forced >= CHOICES {
            return printed;
        }
        let mut after = Way::default();
        self.leave(&mut after);
        self.forced += 1;
        let all = found.iter().fold(1_usize, |all, (_, texts)| all.saturating_mul(texts.len() + 1));
        if all > CHOSEN {
            self.notes.effect("unresolved");
        }
        for number in 1..all.min(CHOSEN) {
            let Some(env) = after.env.clone() else { break };
            if self.exhausted() {
                break;
            }
            self.steps += 1 + env.variables.len() / 4;
            self.enter(env);
            // The digits of the number say what each substitution prints; where one is 0, what it printed first.
            let mut rest = number;
            let mut chosen = Vec::new();
            for (key, texts) in &found {
                let digit = rest % (texts.len() + 1);
                rest /= texts.len() + 1;
                if let Some(text) = digit.checked_sub(1).and_then(|at| texts.get(at)) {
                    self.env.set_text(key, text.as_str());
                    chosen.push(key);
                }
            }
            let outer = std::mem::take(&mut self.choices);
            run(self);
            self.choices = outer;
            chosen.into_iter().for_each(|key| drop(Rc::make_mut(&mut self.env.variables).remove(key)));
            self.leave(&mut after);
        }
        self.forced -= 1;
        self.arrive(after);
        self.choices.extend(found);
        printed
    }

    /// A substitution whose branches print different lines gives one of them.
    pub(crate) fn note_choice(&mut self, key: String, list: &List, text: &str) {
        if text.contains('\n') && is_known(text) && self.chooses(list, 0) {
            self.add_choice(key, text.lines().map(str::to_owned).collect());
        }
    }

    /// What is found under a key where the command at hand runs again.
    pub(crate) fn add_choice(&mut self, key: String, texts: Vec<String>) {
        let known = self.choices.iter().any(|(other, _)| *other == key);
        if !known && self.choices.len() < CHOICES && texts.len() <= CHOICES {
            self.choices.push((key, texts));
        }
    }

    fn chooses(&self, list: &List, depth: usize) -> bool {
        let chooses = |command: &Command| match &command.kind {
            Kind::If { .. } | Kind::Case { .. } => true,
            Kind::Group(list) | Kind::Subshell(list) => depth < CHOICES && self.chooses(list, depth + 1),
            Kind::Simple { words, .. } => {
                words.first().and_then(Word::literal).is_some_and(|name| self.env.functions.contains_key(name))
            }
            _ => false,
        };
        list.iter().any(|item| !item.rest.is_empty() || item.first.commands.iter().any(chooses))
    }

    fn each_held_value(&mut self, run: &mut impl FnMut(&mut Self) -> String) -> String {
        if self.env.alternatives.is_empty() {
            return run(self);
        }
        let before = self.env.clone();
        let outer = std::mem::take(&mut self.reads);
        let printed = run(self);
        self.copied(&before);
        let read = std::mem::replace(&mut self.reads, outer);
        let sets: Vec<(String, Vec<Value>)> =
            read.iter().map(|name| (name.clone(), before.values(name))).filter(|(_, set)| set.len() > 1).collect();
        let combinations = self.combinations(&sets);
        if !combinations.is_empty() {
            let mut after = Way::default();
            self.leave(&mut after);
            for combination in combinations {
                if self.exhausted() {
                    break;
                }
                self.steps += 1 + (before.variables.len() + before.alternatives.len()) / 4;
                self.enter(before.clone());
                for (name, value) in combination {
                    self.env.set(&name, value);
                }
                let reads = std::mem::take(&mut self.reads);
                run(self);
                self.reads = reads;
                self.leave(&mut after);
            }
            self.arrive(after);
        }
        // A substitution gives something else for each value too.
        self.reads.extend(read);
        printed
    }

    /// A second owner of the variables made an assignment a copy of all of them.
    pub(crate) fn copied(&mut self, before: &Env) {
        if !Rc::ptr_eq(&before.variables, &self.env.variables) {
            self.steps += before.variables.len() / 5;
            let size = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
            self.spend(before.variables.values().map(size).sum::<usize>() / 8);
        }
    }

    /// All combinations but the first; where there are too many, each variable by itself, which is a finding.
    fn combinations(&mut self, sets: &[(String, Vec<Value>)]) -> Vec<Vec<(String, Value)>> {
        let all = sets.iter().fold(1_usize, |all, (_, values)| all.saturating_mul(values.len()));
        if all > COMBINATIONS {
            self.limited("combinations of values");
            let single = |(name, values): &(String, Vec<Value>)| {
                values.iter().skip(1).map(|value| vec![(name.clone(), value.clone())]).collect::<Vec<_>>()
            };
            return sets.iter().flat_map(single).take(COMBINATIONS).collect();
        }
        let mut out: Vec<Vec<(String, Value)>> = vec![Vec::new()];
        for (name, values) in sets {
            let longer = |so_far: &Vec<(String, Value)>| {
                values
                    .iter()
                    .map(|value| {
                        let mut longer = so_far.clone();
                        longer.push((name.clone(), value.clone()));
                        longer
                    })
                    .collect::<Vec<_>>()
            };
            out = out.iter().flat_map(longer).collect();
        }
        out.split_off(1)
    }

    /// One state for two, of which one holds: what differs may be either.
    pub(crate) fn joined(&mut self, mut mine: Env, other: Env) -> Env {
        mine.join_rest(&other);
        let same = Rc::ptr_eq(&other.variables, &mine.variables) && Rc::ptr_eq(&other.alternatives, &mine.alternatives);
        if same && mine.positional == other.positional {
            return mine;
        }
        self.steps += other.variables.len() / 4;
        let mut found: Vec<(String, Value)> = Vec::new();
        for (name, value) in other.variables.iter() {
            match mine.variables.get(name) {
                Some(held) if held == value => {}
                Some(_) => found.push((name.clone(), value.clone())),
                None => {
                    Rc::make_mut(&mut mine.variables).insert(name.clone(), value.clone());
                }
            }
        }
        for (name, values) in other.alternatives.iter() {
            found.extend(values.iter().map(|value| (name.clone(), value.clone())));
        }
        match (&mine.positional, &other.positional) {
            (Some(own), Some(items)) if !Rc::ptr_eq(own, items) && own != items => {
                self.steps += items.len() / 4;
                found.extend(other.positional_value().map(|value| (POSITIONAL.to_owned(), value)));
            }
            // Whether they are known is open: what is known is judged.
            (None, Some(_)) => mine.positional = other.positional.clone(),
            _ => {}
        }
        for (name, value) in found {
            self.add_alternative(&mut mine, &name, value);
        }
        mine
    }

    /// A word that is nothing but a name of something below the working directory.
    fn is_plain(&self, value: &Value) -> bool {
        let Value::Text(text) = value else { return false };
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c))
            && !self.guard.has_program(text)
            && !programs::DESTRUCTIVE.contains(&text.as_str())
    }

    /// One more value of a variable. Where there are too many, it is anything; of
    /// numbers and plain names it is said that it is one.
    pub(crate) fn add_alternative(&mut self, env: &mut Env, name: &str, value: Value) {
        let numeric = |value: &Value| match value {
            Value::Text(text) => text.parse::<i64>().is_ok() || text.chars().eq([TOKEN]),
            _ => false,
        };
        if env.add_alternative(name, value.clone()) {
            return;
        }
        if name == POSITIONAL {
            self.limited("values of a variable");
            return;
        }
        if env.values(name).iter().chain([&value]).all(|value| numeric(value) || self.is_plain(value)) {
            env.set_text(name, TOKEN);
        } else {
            self.limited("values of a variable");
            env.set_text(name, UNKNOWN);
        }
    }
}

/// Under this name a substitution finds what it prints; no variable is called so.
pub(crate) fn choice_key(list: &List) -> String {
    format!(" {:p}", list.as_ptr())
}
