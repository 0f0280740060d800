//! Paths in the arguments of a tool that declares none, from the registry to the facts.

use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portcullis::call::{Mode, Origin, Principal, Request};
use portcullis::facts::path::{Access, Protection, Resolver, gather, standard_rules};
use portcullis::facts::{Scope, Surroundings};
use portcullis::firewall::Cleared;
use portcullis::registry::{Definition, Output, Registry, Sensitivity, Tool, ToolError};
use serde_json::json;

struct Foreign(Definition);

impl Tool for Foreign {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute(&self, _: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
        Box::pin(async { Err(ToolError::Failed("it is only judged".into())) })
    }
}

#[test]
fn a_foreign_tool_is_judged_by_the_paths_that_its_arguments_hold() {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir_all(top.path().join("w/.git/hooks")).unwrap();
    fs::create_dir_all(top.path().join("state")).unwrap();
    let mut here = Surroundings::new(top.path().join("w"), "/nonexistent");
    here.gateway.push(top.path().join("state"));
    let resolver = Resolver::open(&here, Protection::new(standard_rules()).unwrap()).unwrap();

    let parameters = json!({
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"where": {"format": "path"}}}}
        }
    });
    let definition = Definition {
        name: "Foreign",
        description: "",
        parameters,
        sensitivity: Sensitivity::Sensitive,
        groups: &[],
        subjects: &[],
        max_output: 100,
    };
    let mut registry = Registry::new();
    registry.register(Arc::new(Foreign(definition))).unwrap();
    let arguments = json!({
        "items": [{"where": ".git/hooks/pre-commit"}, {"where": "src"}],
        "note": format!("file://{}/state.db", top.path().join("state").display()),
        "target": "../elsewhere",
        "title": "not a path"
    });
    let principal = Principal {
        agent: "agent".into(),
        sub_agent: None,
        teams: Vec::new(),
        session: "session".into(),
        mode: Mode::Default,
        unattended: false,
    };
    let request =
        Request { tool: "Foreign".into(), arguments, cwd: None, principal, origin: Origin::Library, caller_id: None };
    let call = registry.canonicalise(request, &top.path().join("w")).unwrap();
    let definition = registry.get("Foreign").unwrap().definition();
    let (facts, _) = gather(&resolver, &call, definition, None);
    let found: Vec<_> = facts.iter().map(|fact| (fact.argument.as_str(), fact.scope, fact.access)).collect();
    assert_eq!(
        found,
        [
            ("/items/0/where", Scope::Workspace, Access::Write),
            ("/items/1/where", Scope::Workspace, Access::Write),
            ("/note", Scope::Gateway, Access::Write),
            ("/target", Scope::Temp, Access::Write),
        ]
    );
    assert!(facts[0].protected.is_some() && facts[1].protected.is_none());
    assert!(facts.iter().all(|fact| fact.problem.is_none()));
}
