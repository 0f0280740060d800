//! Compound commands that choose or repeat: `if`, `case`, `for`, `while`.

use std::collections::HashSet;
use std::rc::Rc;

use super::directories::Stack;
use super::env::{Env, Value};
use super::flow::{Loop, Way};
use super::walk::Walker;
use crate::facts::command::grammar::syntax::{Arm, List, Next, Part, Word};
use crate::facts::command::words::text::{TOKEN, UNKNOWN, has_glob, has_unknown, is_known};

/// How often a loop over known words is unrolled.
const ITERATIONS: usize = 200;

/// How many names a glob in the words of a loop stands for, at most.
const GLOB_TURNS: usize = 3;

/// How often a loop is followed whose end cannot be known, before what it changes is taken for anything.
const TURNS: usize = 4;

/// The same for a loop whose conditions are known.
const KNOWN_TURNS: usize = 64;

impl Walker<'_> {
    pub(crate) fn if_clause(&mut self, branches: &[(List, List)], otherwise: Option<&List>) -> String {
        let mut out = String::new();
        let mut after = Way::default();
        for (condition, then) in branches {
            let ends = self.condition(condition);
            let open = ends.ok.is_some() && ends.failed.is_some();
            if let Some(env) = ends.ok {
                self.enter(env);
                out.push_str(&self.perhaps(open, |walker| walker.list(then)));
                self.leave(&mut after);
            }
            match ends.failed {
                Some(env) => self.enter(env),
                None => {
                    self.dead = true;
                    break;
                }
            }
        }
        if !self.dead {
            self.status = Some(true);
            if let Some(list) = otherwise {
                let open = after.env.is_some();
                out.push_str(&self.perhaps(open, |walker| walker.list(list)));
            }
            self.leave(&mut after);
        }
        self.arrive(after);
        out
    }

    /// Runs what may or may not run.
    fn perhaps<T>(&mut self, open: bool, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.unsure;
        self.unsure |= open;
        let result = run(self);
        self.unsure = outer;
        result
    }

    pub(crate) fn while_clause(&mut self, until: bool, condition: &List, body: &List) -> String {
        let condition = |walker: &mut Self| {
            let ends = walker.condition(condition);
            if until { (ends.failed, ends.ok) } else { (ends.ok, ends.failed) }
        };
        self.repeat(body, condition, |_| {})
    }

    /// `for ((start; condition; step))`.
    pub(crate) fn arithmetic_for(&mut self, header: &Word, body: &List) -> String {
        let text = self.text(header);
        self.arithmetic_text(text.split(';').next().unwrap_or_default());
        // The variables in it are read anew in each turn.
        let condition = |walker: &mut Self| {
            let text = walker.text(header);
            let condition = text.split(';').nth(1).unwrap_or_default();
            let holds = if condition.trim().is_empty() { Some(1) } else { walker.arithmetic_number(condition) };
            let env = walker.env.clone();
            match holds {
                Some(0) => (None, Some(env)),
                Some(_) => (Some(env), None),
                None => (Some(env.clone()), Some(env)),
            }
        };
        let step = |walker: &mut Self| {
            let text = walker.text(header);
            walker.arithmetic_text(text.splitn(3, ';').nth(2).unwrap_or_default());
        };
        self.repeat(body, condition, step)
    }

    /// Turns of a loop, until nothing changes any more. What a loop without a known end still changes after some turns
    /// may be anything.
    fn repeat(
        &mut self,
        body: &List,
        mut condition: impl FnMut(&mut Self) -> (Option<Env>, Option<Env>),
        mut step: impl FnMut(&mut Self),
    ) -> String {
        let mut out = String::new();
        let mut after = Way::default();
        self.loops.push(Loop::default());
        // A loop gets a quarter of what is left.
        let budget = self.remaining() / 4 * 3;
        let (mut turn, mut widened) = (0, 0);
        let mut grown = Grown::default();
        loop {
            let start = self.env.clone();
            let (on, off) = condition(self);
            let open = off.is_some();
            if let Some(env) = off {
                self.enter(env);
                self.status = None;
                self.leave(&mut after);
            }
            let Some(env) = on else { break };
            self.enter(env);
            let outer = std::mem::replace(&mut self.bulk, true);
            out.push_str(&self.perhaps(open, |walker| walker.list(body)));
            self.bulk = outer;
            turn += 1;
            self.steps += 1 + self.env.variables.len() / 6;
            if let Some(mut way) = self.loops.last_mut().map(|frame| std::mem::take(&mut frame.continues)) {
                self.leave(&mut way);
                self.arrive(way);
            }
            if self.dead {
                break;
            }
            step(self);
            if self.env.same(&start) {
                break;
            }
            if self.exhausted() || widened > TURNS {
                self.limited("turns of a loop");
                break;
            }
            if (open && turn >= TURNS) || turn >= KNOWN_TURNS || self.remaining() < budget {
                widened += 1;
                self.widen(&start, &mut grown);
                if self.env.same(&start) {
                    break;
                }
            }
            if out.len() > self.limits.text {
                out = self.bounded(out);
            }
        }
        self.end_loop(after);
        self.bounded(out)
    }

    /// Goes on after a loop: from where its condition failed, and from where it was broken off.
    fn end_loop(&mut self, mut after: Way) {
        let frame = self.loops.pop().unwrap_or_default();
        self.status = None;
        // A loop that nothing ends is still ended by a signal, with what it held then.
        if after.env.is_none() && frame.breaks.env.is_none() {
            self.leave(&mut after);
        }
        self.arrive(frame.breaks);
        self.leave(&mut after);
        self.arrive(after);
    }

    /// What differs from the state a turn ago, and not only by one more repetition of the same text, is unknown.
    fn widen(&mut self, start: &Env, grown: &mut Grown) {
        self.steps += self.env.variables.len() / 6;
        let mut changed: Vec<(String, Value)> = Vec::new();
        for (name, value) in self.env.variables.iter() {
            let before = start.variables.get(name);
            if before == Some(value) {
                continue;
            }
            changed.push((name.clone(), grown.widened(name, before, value)));
        }
        for (name, value) in changed {
            self.env.set(&name, value);
        }
        for name in start.alternatives.keys() {
            if self.env.alternatives.get(name) != start.alternatives.get(name)
                && let Some(Value::Text(_)) = self.env.variables.get(name)
            {
                self.env.set_text(name, UNKNOWN);
            }
        }
        if self.env.positional != start.positional {
            let head = self.env.positional.as_ref().and_then(|items| items.first().cloned()).unwrap_or_default();
            self.env.set_positional(vec![head, UNKNOWN.to_string()]);
        }
        if self.env.cwd != start.cwd {
            self.env.cwd = UNKNOWN.to_string();
        }
        if self.env.stack != start.stack {
            self.env.stack = Rc::new(Stack::unknown());
        }
    }

    pub(crate) fn for_clause(&mut self, name: &str, words: Option<&[Word]>, chosen: bool, body: &List) -> String {
        let values = self.loop_values(words);
        let mut out = String::new();
        let mut after = Way::default();
        self.loops.push(Loop::default());
        let maybe = values.iter().any(|value| has_unknown(value));
        if maybe {
            self.status = Some(true);
            let env = self.env.clone();
            self.leave(&mut after);
            self.enter(env);
        }
        let outer = (self.bulk, self.unsure);
        self.bulk |= values.len() > 1 || maybe;
        self.unsure |= maybe;
        let values = summary(values);
        let start = chosen.then(|| self.env.clone());
        // A glob that nobody expanded stands for the names it matches: more turns, as long as something changes. In a
        // recursion, which takes turns of its own, they would multiply.
        let most = if self.recurs() { 1 } else { GLOB_TURNS };
        let turns = |value: String| vec![value.clone(); if has_glob(&value) { most } else { 1 }];
        let mut before: Option<(String, Env)> = None;
        for (turn, value) in values.into_iter().flat_map(turns).enumerate() {
            if let Some((_, env)) = before.take().filter(|(last, _)| *last == value) {
                if self.env.same(&env) {
                    before = Some((value, env));
                    continue;
                }
                let env = self.env.clone();
                self.leave(&mut after);
                self.enter(env);
            }
            if turn == ITERATIONS {
                self.limited("turns of a loop");
                break;
            }
            self.steps += 1;
            self.env.set_text(name, value.as_str());
            before = has_glob(&value).then(|| (value, self.env.clone()));
            out.push_str(&self.list(body));
            if let Some(mut way) = self.loops.last_mut().map(|frame| std::mem::take(&mut frame.continues)) {
                self.leave(&mut way);
                self.arrive(way);
            }
            // The next word may as well have been the first.
            if let Some(start) = start.as_ref().filter(|_| self.dead) {
                self.enter(start.clone());
            }
            if self.dead || self.exhausted() {
                break;
            }
        }
        (self.bulk, self.unsure) = outer;
        let frame = self.loops.pop().unwrap_or_default();
        self.leave(&mut after);
        self.arrive(frame.breaks);
        self.leave(&mut after);
        self.arrive(after);
        self.status = None;
        self.bounded(out)
    }

    /// The words of a `for`, with those that other values of variables give.
    fn loop_values(&mut self, words: Option<&[Word]>) -> Vec<String> {
        let words = match words {
            Some(words) => words,
            None => {
                let mut values: Vec<String> = match self.env.positional.clone() {
                    Some(items) => items.iter().skip(1).cloned().collect(),
                    None => vec![UNKNOWN.to_string()],
                };
                for value in self.env.alternatives.get("@").cloned().unwrap_or_default() {
                    if let Value::Array(items) = value {
                        values.extend(items.into_iter().skip(1).map(|(_, item)| item));
                    }
                }
                return values;
            }
        };
        let mut values: Vec<String> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        self.each_value(|walker| {
            for field in walker.expand(words) {
                let new = seen.insert(field.text.clone());
                if new || values.len() < ITERATIONS && walker.env.alternatives.is_empty() {
                    values.push(field.text);
                }
            }
            String::new()
        });
        values
    }

    pub(crate) fn case_clause(&mut self, subject: &Word, arms: &[Arm]) -> String {
        let outer_reads = std::mem::take(&mut self.reads);
        let text = self.text(subject);
        let mut out = String::new();
        let mut after = Way::default();
        // Whether the arm before, if it ran for sure or perhaps, falls through (`;&`).
        let mut falls: Option<bool> = None;
        self.status = Some(true);
        for arm in arms {
            let hit = self.matching_arm(&text, arm);
            if hit == Some(false) && falls.is_none() {
                continue;
            }
            let sure = hit == Some(true) || falls == Some(true);
            let base = self.env.clone();
            out.push_str(&self.perhaps(!sure, |walker| walker.list(&arm.list)));
            match arm.next {
                Next::End => {
                    self.leave(&mut after);
                    falls = None;
                    if sure {
                        self.dead = true;
                        break;
                    }
                    self.enter(base);
                }
                Next::Run | Next::Test => {
                    falls = (arm.next == Next::Run).then_some(sure);
                    let ran = (!self.dead).then(|| self.env.clone());
                    let env = match ran {
                        Some(env) if !sure => self.joined(env, base),
                        Some(env) => env,
                        None => base,
                    };
                    self.enter(env);
                }
            }
            if self.exhausted() {
                break;
            }
        }
        self.reads.extend(outer_reads);
        self.leave(&mut after);
        self.arrive(after);
        self.status = None;
        out
    }

    /// Whether an arm is taken.
    fn matching_arm(&mut self, text: &str, arm: &Arm) -> Option<bool> {
        let mut any = Some(false);
        for pattern in &arm.patterns {
            let live = self.pattern(pattern);
            let whole = pattern.literal() == Some("*");
            let loose = pattern.parts.iter().any(|part| matches!(part, Part::Quoted(text) if text.is_empty()));
            let hit = match self.matches(&live, text) {
                _ if whole => Some(true),
                // Patterns of alternatives (`@(a|b)`) are not read closely.
                true if loose => None,
                hit if is_known(text) && !has_unknown(&live) && self.reads.is_empty() => Some(hit),
                _ => None,
            };
            any = match (any, hit) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        any
    }
}

/// A long list of numbers is as good as any number.
fn summary(values: Vec<String>) -> Vec<String> {
    let all_numbers = || values.iter().all(|value| value.parse::<i64>().is_ok());
    if values.len() <= ITERATIONS || !all_numbers() {
        return values;
    }
    let token = std::iter::once(TOKEN.to_string());
    values.iter().take(2).chain(values.last()).cloned().chain(token).collect()
}

/// What loops append to variables, by name.
#[derive(Default)]
struct Grown(std::collections::HashMap<String, String>);

impl Grown {
    /// The value of a variable after a turn that changed it, for all turns to come.
    fn widened(&mut self, name: &str, before: Option<&Value>, value: &Value) -> Value {
        let number = |text: &str| text.parse::<i64>().is_ok() || text.chars().eq([TOKEN]);
        match (before, value) {
            (Some(Value::Text(before)), Value::Text(now)) if number(before) && number(now) => {
                Value::Text(TOKEN.to_string())
            }
            (Some(Value::Text(old)), Value::Text(now)) => {
                let added = now.strip_prefix(old.as_str()).filter(|added| !added.is_empty());
                let known = added.is_some() && self.0.get(name).map(String::as_str) == added;
                match added {
                    // The same again changes nothing that a rule looks at.
                    Some(_) if known => Value::Text(old.clone()),
                    Some(added) => {
                        self.0.insert(name.to_owned(), added.to_owned());
                        Value::Text(now.clone())
                    }
                    None => Value::Text(UNKNOWN.to_string()),
                }
            }
            (Some(Value::Array(old)), Value::Array(items)) => {
                let again = items.iter().all(|(_, item)| old.iter().any(|(_, known)| known == item));
                if again { Value::Array(old.clone()) } else { value.clone() }
            }
            _ => value.clone(),
        }
    }
}
