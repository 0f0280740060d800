//! The paths of a call: those its arguments name, and those its command uses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::name::Problem;
use super::resolver::{Looked, Memo};
use super::{Access, ArgumentPath, COMMAND, Handle, Kind, PathFact, Resolver, path_arguments};
use crate::call::Call;
use crate::facts::Scope;
use crate::facts::command::CommandFacts;
use crate::registry::definition::{Definition, Sensitivity};

/// Paths of one command that are looked at.
const MOST_PATHS: usize = 4096;

/// What the call's arguments name, held open for the tool, by argument.
#[derive(Clone, Debug, Default)]
pub struct Handles {
    by_argument: BTreeMap<String, Handle>,
    places: Vec<Place>,
}

/// What of a path an approval binds besides its fact. The content of a file is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Where it lands, in hexadecimal: what tells nothing of a place outside must still bind it.
    lands: Option<String>,
    /// What is there, where the call is to change it: to make a file is not to replace one.
    there: Option<&'static str>,
}

impl Place {
    fn of(access: Access, handle: Option<&Handle>, landing: Option<&Path>) -> Self {
        let there = handle.filter(|_| access.changes());
        Place {
            lands: landing.map(|path| hex::encode(path.as_os_str().as_bytes())),
            there: there.map(|handle| handle.kind().map_or("nothing", Kind::noun)),
        }
    }
}

impl Handles {
    pub fn get(&self, argument: &str) -> Option<&Handle> {
        self.by_argument.get(argument)
    }

    /// The places that the paths lead to, in the order of the facts.
    pub fn places(&self) -> &[Place] {
        &self.places
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
    let memo = Memo::default();
    for (argument, given, access) in named(resolver, call, definition) {
        match given {
            Ok(given) => {
                let Looked { fact, handle, landing } = resolver.look_with(&memo, argument, &given, access, &call.cwd);
                facts.push(fact);
                handles.places.push(Place::of(access, handle.as_ref(), landing.as_deref()));
                handles.by_argument.extend(handle.map(|handle| (argument.to_owned(), handle)));
            }
            Err(other) => facts.push(unusable(argument, other.to_string(), access, Problem::NotText)),
        }
    }
    if definition.subjects.is_empty() {
        facts.extend(undeclared(resolver, &memo, call, definition, &mut handles.places));
    }
    if let Some(command) = command {
        facts.extend(command.paths.iter().take(MOST_PATHS).map(|used| match &used.path {
            Some(path) => {
                let looked = resolver.look_by_name(&memo, COMMAND, path, used.access, resolver.workspace());
                handles.places.push(Place::of(used.access, None, looked.landing.as_deref()));
                looked.fact
            }
            None => PathFact { problem: None, ..unusable(COMMAND, String::new(), used.access, Problem::NotText) },
        }));
        if command.paths.len() > MOST_PATHS {
            let rest = Problem::TooMany(MOST_PATHS);
            facts.push(unusable(COMMAND, String::new(), Access::Write, rest));
        }
    }
    (facts, handles)
}

/// The paths among the arguments of a tool that does not say which they are. It opens them by name again, so no handle is
/// kept.
fn undeclared(
    resolver: &Resolver,
    memo: &Memo,
    call: &Call,
    definition: &Definition,
    places: &mut Vec<Place>,
) -> Vec<PathFact> {
    let access = if definition.sensitivity == Sensitivity::Safe { Access::Read } else { Access::Write };
    let found = path_arguments(&definition.parameters, &call.arguments, access, resolver.home());
    let look = |found: &ArgumentPath| {
        let looked = resolver.look_by_name(memo, &found.pointer, &found.path, found.access, &call.cwd);
        places.push(Place::of(found.access, None, looked.landing.as_deref()));
        looked.fact
    };
    let mut facts: Vec<PathFact> = found.iter().take(MOST_PATHS).map(look).collect();
    if found.len() > MOST_PATHS {
        facts.push(unusable("arguments", String::new(), Access::Write, Problem::TooMany(MOST_PATHS)));
    }
    facts
}

type Named<'a> = (&'a str, Result<Cow<'a, str>, &'a Value>, Access);

fn named<'a>(resolver: &Resolver, call: &'a Call, definition: &Definition) -> Vec<Named<'a>> {
    let mut named = Vec::new();
    let mut runs_command = false;
    for subject in definition.subjects {
        match subject.path() {
            Some((argument, access)) => {
                let given = match call.arguments.get(argument) {
                    None => Ok(Cow::Borrowed(".")),
                    Some(Value::String(given)) => Ok(Cow::Borrowed(given.as_str())),
                    Some(other) => Err(other),
                };
                named.push((argument, given, access));
            }
            None => runs_command = true,
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::json;

    use super::*;
    use crate::call::{Mode, Origin, Principal};
    use crate::facts::Surroundings;
    use crate::facts::command::{Parse, PathUse};
    use crate::facts::path::{Protection, standard_rules};
    use crate::registry::definition::Subject;

    fn call(cwd: PathBuf, arguments: Value) -> Call {
        Call {
            id: String::new(),
            tool: "T".into(),
            arguments: arguments.as_object().unwrap().clone(),
            cwd,
            principal: Principal {
                agent: "a".into(),
                sub_agent: None,
                teams: Vec::new(),
                session: "s".into(),
                mode: Mode::Default,
                unattended: false,
            },
            origin: Origin::Library,
            caller_id: None,
        }
    }

    fn definition(subjects: &'static [Subject]) -> Definition {
        Definition {
            name: "T",
            description: "",
            parameters: json!({}),
            sensitivity: Sensitivity::Safe,
            groups: &[],
            subjects,
            max_output: 0,
        }
    }

    fn command(paths: Vec<PathUse>) -> CommandFacts {
        CommandFacts {
            parse: Parse::Complete,
            programs: Default::default(),
            effects: Default::default(),
            hosts: Default::default(),
            paths,
            scripts: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn resolver(workspace: &Path) -> Resolver {
        let surroundings = Surroundings::new(workspace, "/nonexistent");
        Resolver::open(&surroundings, Protection::new(standard_rules()).unwrap()).unwrap()
    }

    #[test]
    fn arguments_are_held_open_and_one_left_out_is_the_working_directory() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("sub")).unwrap();
        let tool = definition(&[Subject::Path { argument: "path", access: Access::Read }]);
        for (arguments, lands) in [(json!({}), "sub"), (json!({"path": "x"}), "sub/x"), (json!({"path": ".."}), ".")] {
            let (facts, handles) =
                gather(&resolver(top.path()), &call(top.path().join("sub"), arguments.clone()), &tool, None);
            assert_eq!(facts.len(), 1, "a tool without a command has no working directory of its own");
            assert_eq!(facts[0].lands.as_deref(), Some(lands), "{arguments}");
            assert!(handles.get("path").is_some() && handles.get("other").is_none());
        }
        let (facts, handles) = gather(&resolver(top.path()), &call(top.path().into(), json!({"path": 3})), &tool, None);
        assert!(facts[0].problem.is_some() && handles.get("path").is_none(), "what is no text is a problem");
    }

    #[test]
    fn a_command_brings_its_paths_and_its_working_directory() {
        let top = tempfile::tempdir().unwrap();
        let tool = definition(&[Subject::Command { argument: "command" }]);
        let inside = top.path().join("a").to_string_lossy().into_owned();
        let used = |path: Option<String>| PathUse { path, access: Access::Write, span: None };
        let facts = command(vec![used(Some(inside)), used(Some("/etc/x".into())), used(None)]);
        let (found, handles) =
            gather(&resolver(top.path()), &call("/".into(), json!({"command": "c"})), &tool, Some(&facts));
        let scopes: Vec<(&str, Scope)> = found.iter().map(|fact| (fact.argument.as_str(), fact.scope)).collect();
        assert_eq!(
            scopes,
            [("cwd", Scope::Root), (COMMAND, Scope::Workspace), (COMMAND, Scope::System), (COMMAND, Scope::Unknown)]
        );
        assert!(handles.get("cwd").is_some() && handles.get(COMMAND).is_none());
        assert!(found.iter().all(|fact| fact.problem.is_none()));
    }

    #[test]
    fn a_tool_that_declares_no_paths_has_those_that_its_arguments_look_like() {
        let top = tempfile::tempdir().unwrap();
        let tool = definition(&[]);
        let arguments = json!({"file_path": "a", "root": ".", "q": "/etc/passwd", "out": "../x", "text": "plain"});
        let (found, handles) = gather(&resolver(top.path()), &call(top.path().into(), arguments), &tool, None);
        let scopes: Vec<(&str, Scope)> = found.iter().map(|fact| (fact.argument.as_str(), fact.scope)).collect();
        let expected = [
            ("/file_path", Scope::Workspace),
            ("/root", Scope::Workspace),
            ("/q", Scope::System),
            ("/out", Scope::Temp),
        ];
        assert_eq!(scopes, expected);
        assert!(found.iter().all(|fact| fact.problem.is_none()) && handles.get("/file_path").is_none());
        assert_eq!((found[0].access, found[3].access), (Access::Read, Access::Write));
        let (found, _) =
            gather(&resolver(top.path()), &call(top.path().into(), json!({"path": "a\u{0}"})), &tool, None);
        assert!(found[0].problem.is_some());
        let many = json!({"paths": vec!["a"; MOST_PATHS + 1]});
        let (found, _) = gather(&resolver(top.path()), &call(top.path().into(), many), &tool, None);
        assert!(found.last().unwrap().problem.as_ref().unwrap().contains("were not looked at"));
    }

    #[test]
    fn i2_many_paths_with_other_names_take_no_longer_than_one() {
        let top = tempfile::tempdir().unwrap();
        for n in 0..1_000 {
            std::fs::write(top.path().join(n.to_string()), "").unwrap();
        }
        std::fs::hard_link(top.path().join("0"), top.path().join("other")).unwrap();
        let path = top.path().join("other").to_string_lossy().into_owned();
        let facts = command(vec![PathUse { path: Some(path), access: Access::Write, span: None }; MOST_PATHS]);
        let tool = definition(&[Subject::Command { argument: "command" }]);
        let began = std::time::Instant::now();
        gather(&resolver(top.path()), &call(top.path().into(), json!({})), &tool, Some(&facts));
        assert!(began.elapsed().as_secs() < 10, "looking up {MOST_PATHS} paths took {:?}", began.elapsed());
    }

    #[test]
    fn i6_paths_beyond_the_limit_are_a_problem() {
        let top = tempfile::tempdir().unwrap();
        let path = PathUse { path: Some("/nonexistent".into()), access: Access::Read, span: None };
        let facts = command(vec![path; MOST_PATHS + 1]);
        let tool = definition(&[Subject::Command { argument: "command" }]);
        let (found, _) = gather(&resolver(top.path()), &call(top.path().into(), json!({})), &tool, Some(&facts));
        assert_eq!(found.len(), MOST_PATHS + 1);
        assert!(found.last().unwrap().problem.as_ref().unwrap().contains("were not looked at"));
    }
}
