//! What operands stand for, remembered while the directory and the home are the same: a script names the same places again
//! and again, and each program looks at its operands several times.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::env::Env;
use crate::facts::command::effects::target::Target;

/// Longer operands are looked at anew each time, and no more than so many are remembered.
const LONGEST: usize = 200;
const MOST: usize = 4_096;

#[derive(Default)]
pub(crate) struct KnownTargets {
    pub home: String,
    cwd: String,
    others: Vec<String>,
    mounts: Option<Rc<Vec<(String, String)>>>,
    pub targets: HashMap<String, Target>,
}

impl KnownTargets {
    /// Forgets everything where the same operand may stand for something else than before.
    pub fn attend(&mut self, env: &Env, home: Cow<'_, str>) {
        let mounts = match (&self.mounts, &env.mounts) {
            (Some(known), Some(now)) => Rc::ptr_eq(known, now),
            (None, None) => true,
            _ => false,
        };
        if mounts && self.cwd == env.cwd && self.others == env.other_cwds && self.home == home {
            return;
        }
        self.targets.clear();
        self.cwd.clone_from(&env.cwd);
        self.others.clone_from(&env.other_cwds);
        self.mounts.clone_from(&env.mounts);
        self.home = home.into_owned();
    }

    pub fn remember(&mut self, text: &str, target: &Target) {
        if text.len() <= LONGEST && self.targets.len() < MOST {
            self.targets.insert(text.to_owned(), target.clone());
        }
    }
}
