//! Where the shell is: `cd`, and the stack of `pushd` and `popd`.

use std::rc::Rc;

use super::env::{Env, Value};
use super::flow::Moved;
use super::walk::Walker;
use crate::facts::command::effects::target::Kind;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, has_unknown, is_known};

/// Longer paths cannot be entered (`PATH_MAX` in limits.h).
const PATH_MAX: usize = 4096;

/// How many directories of a stack are told apart.
const DEPTH: usize = 8;

/// The directories that `pushd` left, the last one last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    directories: Vec<String>,
    /// Each of them may be there or not, in any order.
    loose: bool,
}

impl Stack {
    fn push(&mut self, directory: &str) {
        if self.directories.len() < DEPTH {
            self.directories.push(directory.to_owned());
        } else {
            *self = Stack::unknown();
        }
    }

    /// Of which nothing is known.
    pub fn unknown() -> Self {
        Stack { directories: vec![UNKNOWN.to_string()], loose: true }
    }

    /// Either stack.
    pub fn join(&mut self, other: &Stack) {
        if self == other {
            return;
        }
        self.loose = true;
        for directory in &other.directories {
            if !self.directories.contains(directory) {
                self.push(directory);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && !self.loose
    }
}

impl Env {
    fn cwds(&self) -> Vec<String> {
        std::iter::once(&self.cwd).chain(&self.other_cwds).cloned().collect()
    }

    /// The shell may be in any directory of the stack, or still where it is.
    fn may_be_in_stack(&mut self) {
        for directory in self.stack.directories.clone() {
            self.may_be_in(directory);
        }
    }

    /// The directories that the shell may be in are on the stack, or not.
    fn stir(&mut self) {
        let mut stack = self.stack.as_ref().clone();
        stack.join(&Stack { directories: self.cwds(), loose: true });
        self.stack = Rc::new(stack);
    }
}

/// `pushd`.
pub(crate) fn push(walker: &mut Walker<'_>, args: &[String]) {
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    let Some(first) = args.first() else {
        swap(walker);
        return;
    };
    if first != "-" && first.starts_with(['-', '+']) || has_unknown(first) && !first.contains('/') {
        walker.env.stir();
        walker.env.may_be_in_stack();
        if has_unknown(first) {
            walker.env.may_be_in(UNKNOWN.to_string());
        }
        return;
    }
    let left = walker.env.cwds();
    let before = Rc::clone(&walker.env.stack);
    change(walker, args);
    if walker.status == Some(false) {
        return;
    }
    let mut after = before.as_ref().clone();
    after.loose |= left.len() > 1;
    left.iter().for_each(|directory| after.push(directory));
    let after = Rc::new(after);
    if let Some(moved) = &mut walker.moved {
        moved.stacks = Some((Rc::clone(&before), Rc::clone(&after)));
    }
    let mut either = after.as_ref().clone();
    if walker.status.is_none() {
        either.join(&before);
    }
    walker.env.stack = Rc::new(either);
}

/// `pushd` without an operand.
fn swap(walker: &mut Walker<'_>) {
    let env = &mut walker.env;
    if env.stack.is_empty() {
        walker.status = Some(false);
        return;
    }
    if env.stack.loose || !env.other_cwds.is_empty() {
        env.stir();
        env.may_be_in_stack();
        return;
    }
    let stack = Rc::make_mut(&mut env.stack);
    if let Some(top) = stack.directories.last_mut() {
        std::mem::swap(top, &mut env.cwd);
        let left = top.clone();
        leave(env, left);
    }
}

/// `popd`.
pub(crate) fn pop(walker: &mut Walker<'_>, args: &[String]) {
    let env = &mut walker.env;
    if env.stack.is_empty() {
        walker.status = Some(false);
        return;
    }
    if env.stack.loose || !args.is_empty() {
        env.stir();
        env.may_be_in_stack();
        return;
    }
    if let Some(directory) = Rc::make_mut(&mut env.stack).directories.pop() {
        let left = std::mem::replace(&mut env.cwd, directory);
        env.other_cwds.clear();
        leave(env, left);
    }
    walker.status = Some(true);
}

/// `dirs`, which may also clear the stack.
pub(crate) fn list(walker: &mut Walker<'_>, args: &[String]) -> String {
    if !args.is_empty() {
        walker.env.stir();
    }
    UNKNOWN.to_string()
}

fn leave(env: &mut Env, old: String) {
    env.old_cwd = Some(old.clone());
    env.set_text("OLDPWD", old);
}

/// `cd`.
pub(crate) fn change(walker: &mut Walker<'_>, args: &[String]) {
    let operands = args.iter().filter(|arg| !arg.starts_with('-') || *arg == "-");
    if operands.count() > 1 && args.iter().all(|arg| is_known(arg)) {
        // Too many: it does not move.
        walker.status = Some(false);
        return;
    }
    let operand = args.iter().find(|arg| !arg.starts_with('-') || *arg == "-");
    let destination = match operand.map(String::as_str) {
        None => walker.home(),
        Some("-") => match walker.env.get("OLDPWD") {
            Some(Value::Text(text)) => text.clone(),
            _ => walker.env.old_cwd.clone().unwrap_or_else(|| UNKNOWN.to_string()),
        },
        Some(path) => path.to_owned(),
    };
    let others = std::mem::take(&mut walker.env.other_cwds);
    let (target, sure) = enter(walker, &destination);
    let mut searched = in_cdpath(walker, &destination);
    let old = walker.env.cwd.clone();
    if !destination.starts_with('/') {
        for other in &others {
            walker.env.cwd.clone_from(other);
            searched.push(enter(walker, &destination).0);
            searched.extend(in_cdpath(walker, &destination));
        }
    }
    walker.env.cwd = target;
    for reached in searched {
        walker.env.may_be_in(reached);
    }
    if !sure {
        let reached = walker.env.other_cwds.clone();
        walker.moved = Some(Moved { cwd: old.clone(), others: others.clone(), reached, stacks: None });
        walker.env.may_be_in(old.clone());
        for other in others {
            walker.env.may_be_in(other);
        }
    }
    walker.status = sure.then_some(true);
    leave(&mut walker.env, old);
}

/// Where `CDPATH` may lead.
fn in_cdpath(walker: &Walker<'_>, destination: &str) -> Vec<String> {
    let first = destination.split('/').next().unwrap_or_default();
    match walker.env.get("CDPATH") {
        Some(Value::Text(places)) if !matches!(first, "" | "." | "..") => {
            let places = places.split(':').filter(|place| !place.is_empty() && *place != ".").take(8);
            places.map(|place| enter(walker, &format!("{place}/{destination}")).0).collect()
        }
        _ => Vec::new(),
    }
}

/// Where `cd` leads to, and whether it can be relied on to get there.
fn enter(walker: &Walker<'_>, destination: &str) -> (String, bool) {
    let target = walker.target(destination);
    // What is unknown after a dot may lead up.
    let dots = |part: &str| {
        has_unknown(part) && part.starts_with('.') && part.chars().all(|c| c == '.' || text::is_unknown(c))
    };
    if destination.split('/').any(dots) {
        return (UNKNOWN.to_string(), false);
    }
    if target.path.is_empty() || target.path.len() > PATH_MAX {
        return (UNKNOWN.to_string(), false);
    }
    // Places that are always there.
    let sure =
        target.kinds.fatal() || target.kinds.has(Kind::Workspace) || target.path == "/tmp" || destination == "..";
    (target.path, sure)
}
