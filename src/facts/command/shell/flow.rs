//! Which commands are reached: statuses that are known decide, and `break`, `return` and `exit` leave.

use std::rc::Rc;

use super::directories::Stack;
use super::env::Env;
use super::walk::Walker;
use crate::facts::command::grammar::syntax::{Connector, Item, List};

/// A place where paths meet: the joined states of all that came, and their status.
#[derive(Default)]
pub(crate) struct Way {
    pub env: Option<Env>,
    pub status: Option<bool>,
}

/// The loop at hand.
#[derive(Default)]
pub(crate) struct Loop {
    pub breaks: Way,
    pub continues: Way,
}

/// A `cd` that may fail.
pub(crate) struct Moved {
    /// The directories before it.
    pub cwd: String,
    pub others: Vec<String>,
    /// Where it leads to from the other directories.
    pub reached: Vec<String>,
    /// The stack of `pushd` before it, and after it.
    pub stacks: Option<(Rc<Stack>, Rc<Stack>)>,
}

/// The states after a command, by its status.
pub(crate) struct Ends {
    pub ok: Option<Env>,
    pub failed: Option<Env>,
}

impl Walker<'_> {
    /// This path ends at `way`; what follows is not reached by it.
    pub(crate) fn leave(&mut self, way: &mut Way) {
        if self.dead {
            return;
        }
        self.dead = true;
        let env = self.env.clone();
        match way.env.take() {
            Some(other) => {
                if way.status != self.status {
                    way.status = None;
                }
                way.env = Some(self.joined(other, env));
            }
            None => {
                way.status = self.status;
                way.env = Some(env);
            }
        }
    }

    /// Goes on from where paths met; nothing goes on where none came.
    pub(crate) fn arrive(&mut self, way: Way) {
        match way.env {
            Some(env) => {
                self.enter(env);
                self.status = way.status;
            }
            None => self.dead = true,
        }
    }

    pub(crate) fn enter(&mut self, env: Env) {
        self.env = env;
        self.dead = false;
    }

    /// The states after the command that just ran.
    fn split(&mut self) -> Ends {
        if self.dead {
            return Ends { ok: None, failed: None };
        }
        let moved = self.moved.take();
        let mut ok = self.env.clone();
        let mut failed = self.env.clone();
        if let Some(moved) = moved {
            ok.other_cwds = moved.reached;
            failed.cwd = moved.cwd;
            failed.other_cwds = moved.others;
            if let Some((before, after)) = moved.stacks {
                (failed.stack, ok.stack) = (before, after);
            }
        }
        match self.status {
            Some(true) => Ends { ok: Some(ok), failed: None },
            Some(false) => Ends { ok: None, failed: Some(failed) },
            None => Ends { ok: Some(ok), failed: Some(failed) },
        }
    }

    fn either(&mut self, a: Option<Env>, b: Option<Env>) -> Option<Env> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.joined(a, b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs an and-or list; gives what it printed, and the states after it.
    pub(crate) fn ends(&mut self, item: &Item) -> (String, Ends) {
        let mut out = self.pipeline(&item.first);
        let mut ends = self.split();
        for (connector, pipeline) in &item.rest {
            let (from, other) = match connector {
                Connector::And => (ends.ok.take(), ends.failed.take()),
                Connector::Or => (ends.failed.take(), ends.ok.take()),
            };
            let (from, after) = match from {
                Some(env) => {
                    self.enter(env);
                    let outer = self.unsure;
                    self.unsure |= other.is_some();
                    out.push_str(&self.pipeline(pipeline));
                    self.unsure = outer;
                    (true, self.split())
                }
                None => (false, Ends { ok: None, failed: None }),
            };
            if !from && other.is_none() {
                break;
            }
            ends = match connector {
                Connector::And => Ends { ok: after.ok, failed: self.either(after.failed, other) },
                Connector::Or => Ends { ok: self.either(after.ok, other), failed: after.failed },
            };
        }
        (out, ends)
    }

    /// Goes on after a command, whichever way it ended.
    pub(crate) fn settle(&mut self, ends: Ends) {
        self.status = match (&ends.ok, &ends.failed) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            _ => None,
        };
        match self.either(ends.ok, ends.failed) {
            Some(env) => self.enter(env),
            None => self.dead = true,
        }
    }

    /// Runs a condition: the states where it holds and where it does not.
    pub(crate) fn condition(&mut self, list: &List) -> Ends {
        let Some((last, before)) = list.split_last() else {
            self.status = Some(true);
            return self.split();
        };
        for item in before {
            if self.dead || self.exhausted() {
                break;
            }
            self.item(item);
        }
        if self.dead {
            return Ends { ok: None, failed: None };
        }
        if last.background {
            self.item(last);
            return self.split();
        }
        self.ends(last).1
    }

    /// `break` and `continue`: `count` loops are left.
    pub(crate) fn leave_loop(&mut self, count: usize, again: bool) {
        let Some(at) = self.loops.len().checked_sub(count.clamp(1, self.loops.len().max(1))) else { return };
        let Some(mut frame) = self.loops.get_mut(at).map(std::mem::take) else { return };
        self.leave(if again { &mut frame.continues } else { &mut frame.breaks });
        if let Some(place) = self.loops.get_mut(at) {
            *place = frame;
        }
    }

    /// `return` from the function or the sourced script at hand.
    pub(crate) fn leave_function(&mut self) {
        let Some(mut way) = self.returns.pop() else { return };
        self.leave(&mut way);
        self.returns.push(way);
    }

    /// `exit` from the shell at hand, whose traps still run.
    pub(crate) fn leave_shell(&mut self) {
        let mut way = std::mem::take(&mut self.exits);
        self.leave(&mut way);
        self.exits = way;
    }
}
