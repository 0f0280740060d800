//! The paths of a call: those its arguments name, and those its command uses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::name::Problem;
use super::{Access, COMMAND, Handle, PathFact, Resolver};
use crate::call::Call;
use crate::facts::Scope;
use crate::facts::command::CommandFacts;
use crate::registry::{Definition, Subject};

/// Paths of one command that are looked at.
const MOST_PATHS: usize = 4096;

/// What the call's arguments name, held open for the tool, by argument.
#[derive(Clone, Debug, Default)]
pub struct Handles {
    by_argument: BTreeMap<String, Handle>,
}

impl Handles {
    pub fn get(&self, argument: &str) -> Option<&Handle> {
        self.by_argument.get(argument)
    }
}

/// Looks up every path of a call. An argument that is left out stands for the working directory, and a working directory
/// other than the workspace is a path of the call too (`cwd`).
pub fn gather(
    resolver: &Resolver,
    call: &Call,
    definition: &Definition,
    command: Option<&CommandFacts>,
) -> (Vec<PathFact>, Handles) {
    let mut facts = Vec::new();
    let mut handles = Handles::default();
    for (argument, given, access) in named(resolver, call, definition) {
        match given {
            Ok(given) => {
                let (fact, handle) = resolver.look(argument, &given, access, &call.cwd);
                facts.push(fact);
                handles.by_argument.extend(handle.map(|handle| (argument.to_owned(), handle)));
            }
            Err(other) => facts.push(unusable(argument, other.to_string(), access, Problem::NotText)),
        }
    }
    if let Some(command) = command {
        facts.extend(command.paths.iter().take(MOST_PATHS).map(|used| match &used.path {
            Some(path) => resolver.look_in_command(path, used.access),
            None => PathFact { problem: None, ..unusable(COMMAND, String::new(), used.access, Problem::NotText) },
        }));
        if command.paths.len() > MOST_PATHS {
            let rest = Problem::TooMany(MOST_PATHS);
            facts.push(unusable(COMMAND, String::new(), Access::Write, rest));
        }
    }
    (facts, handles)
}

type Named<'a> = (&'a str, Result<Cow<'a, str>, &'a Value>, Access);

fn named<'a>(resolver: &Resolver, call: &'a Call, definition: &Definition) -> Vec<Named<'a>> {
    let mut named = Vec::new();
    let mut runs_command = false;
    for subject in definition.subjects {
        match subject {
            Subject::Path { argument, access } => {
                let given = match call.arguments.get(*argument) {
                    None => Ok(Cow::Borrowed(".")),
                    Some(Value::String(given)) => Ok(Cow::Borrowed(given.as_str())),
                    Some(other) => Err(other),
                };
                named.push((*argument, given, *access));
            }
            Subject::Command { .. } => runs_command = true,
        }
    }
    if runs_command && call.cwd != resolver.workspace() {
        named.push(("cwd", Ok(call.cwd.to_string_lossy()), Access::Read));
    }
    named
}

fn unusable(argument: &str, given: String, access: Access, problem: Problem) -> PathFact {
    PathFact {
        argument: argument.to_owned(),
        given,
        access,
        scope: Scope::Unknown,
        lands: None,
        protected: None,
        problem: Some(problem.to_string()),
        unchecked: None,
    }
}
