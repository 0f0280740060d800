use std::collections::BTreeSet;

use cedar_policy::{Context, Entities};
use miette::Severity as Grade;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::{Call, Mode, Origin, Principal};
use crate::facts::command::{CommandFacts, Effect, Parse};
use crate::facts::path::{Access, PathFact};
use crate::facts::{Facts, Scope, SessionFacts};
use crate::registry::definition::{Definition, Sensitivity, Subject};
use crate::verdict::{Decision, Finding, Level, Severity, Stage, StageVerdict};

const NOBODY: u8 = 0;
const ASK_1: Decision = Decision::Ask(Level::Operator);
const ASK_2: Decision = Decision::Ask(Level::Reviewer);

fn tool(name: &'static str, parameters: Value, sensitivity: Sensitivity) -> Definition {
    Definition { name, description: "", parameters, sensitivity, groups: &[], subjects: &[], max_output: 1024 }
}

fn object(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn tools() -> Vec<Definition> {
    let text = json!({ "type": "string" });
    let path = object(json!({ "path": text, "limit": { "type": "integer" } }), json!(["path"]));
    let write = object(json!({ "path": text, "content": text }), json!(["path", "content"]));
    let bash = object(json!({ "command": text, "timeout": { "type": "integer" } }), json!(["command"]));
    let read = Definition {
        subjects: &[Subject::Path { argument: "path", access: Access::Read }],
        ..tool("Read", path, Sensitivity::Safe)
    };
    let write = Definition {
        groups: &["edit"],
        subjects: &[Subject::Path { argument: "path", access: Access::Write }],
        ..tool("Write", write, Sensitivity::Sensitive)
    };
    let bash = Definition {
        subjects: &[Subject::Command { argument: "command" }],
        ..tool("Bash", bash, Sensitivity::Sensitive)
    };
    let text = json!({ "type": "string" });
    let grep = Definition {
        subjects: &[Subject::Tree { argument: "path" }],
        ..tool("Grep", object(json!({ "path": text }), json!([])), Sensitivity::Safe)
    };
    let draw = tool("Draw", object(json!({ "width": { "type": "number" } }), json!([])), Sensitivity::Safe);
    let opaque = tool("Opaque", json!({ "type": "object", "properties": { "a b": text } }), Sensitivity::Sensitive);
    vec![read, write, bash, grep, draw, opaque]
}

fn load_with(sources: Vec<Source>) -> Result<Policies, PolicyError> {
    let tools = tools();
    Policies::load(sources, &tools.iter().collect::<Vec<_>>())
}

fn text(name: &str, text: &str) -> Source {
    Source::new(name, text, Trust::Operator)
}

/// The default set and more.
fn ask_with(more: &str) -> Policies {
    let mut sources = PolicyFiles::Ask.sources();
    sources.push(text("more.cedar", more));
    load_with(sources).unwrap_or_else(|e| panic!("{e}"))
}

fn only(policies: &str) -> Policies {
    load_with(vec![text("only.cedar", policies)]).unwrap_or_else(|e| panic!("{e}"))
}

fn principal(mode: Mode) -> Principal {
    Principal {
        agent: "coder".into(),
        sub_agent: None,
        teams: vec!["platform".into()],
        session: "s1".into(),
        mode,
        unattended: false,
    }
}

fn call(tool: &str, arguments: Value) -> Call {
    Call {
        id: "1".into(),
        tool: tool.into(),
        arguments: arguments.as_object().unwrap().clone(),
        cwd: "/w".into(),
        principal: principal(Mode::Default),
        origin: Origin::Cli,
        caller_id: None,
    }
}

fn facts() -> Facts {
    Facts {
        sensitivity: Sensitivity::Safe,
        command: None,
        paths: Vec::new(),
        sandbox: None,
        session: SessionFacts::default(),
        now: "2026-11-30T12:00:00.123456789Z".parse().unwrap(),
        notes: Vec::new(),
    }
}

fn path(lands: Option<&str>, scope: Scope, access: Access) -> PathFact {
    PathFact {
        argument: "path".into(),
        given: lands.unwrap_or("/etc/passwd").into(),
        access,
        scope,
        lands: lands.map(str::to_owned),
        protected: None,
        problem: None,
        unchecked: None,
    }
}

fn on(lands: &str, access: Access) -> Facts {
    Facts { paths: vec![path(Some(lands), Scope::Workspace, access)], ..facts() }
}

fn shell(effects: &[&str]) -> Facts {
    let command = CommandFacts {
        parse: Parse::Complete,
        programs: BTreeSet::from(["git".to_owned()]),
        effects: effects.iter().map(|effect| Effect((*effect).to_owned())).collect(),
        hosts: BTreeSet::new(),
        paths: Vec::new(),
        scripts: Vec::new(),
        findings: vec![Finding::new("rule.x", Severity::Warn, "")],
    };
    Facts { command: Some(command), ..facts() }
}

fn bash() -> Call {
    call("Bash", json!({ "command": "git push" }))
}

fn write() -> Call {
    call("Write", json!({ "path": "src/a.rs", "content": "x" }))
}

fn read() -> Call {
    call("Read", json!({ "path": "src/a.rs" }))
}

fn decide(call: &Call, facts: &Facts, policies: &Policies) -> Decision {
    decide_at(call, facts, policies, NOBODY)
}

fn decide_at(call: &Call, facts: &Facts, policies: &Policies, level: u8) -> Decision {
    StageVerdict::new(Stage::Policy, judge(call, facts, policies, level)).decision
}

fn ids(findings: &[Finding]) -> Vec<(&str, Severity)> {
    findings.iter().map(|finding| (finding.id.as_str(), finding.severity)).collect()
}

#[test]
fn the_default_set_lets_reads_run_and_asks_about_the_rest() {
    let policies = ask_with("");
    assert_eq!(decide(&read(), &on("src/a.rs", Access::Read), &policies), Decision::Allow);
    assert_eq!(decide(&write(), &on("src/a.rs", Access::Write), &policies), ASK_1);
    assert_eq!(decide(&bash(), &shell(&[]), &policies), ASK_1);
    assert_eq!(decide_at(&bash(), &shell(&[]), &policies, 1), Decision::Allow);
    assert_eq!(decide(&bash(), &shell(&["cloud-destroy"]), &policies), ASK_2);
    assert_eq!(decide_at(&bash(), &shell(&["cloud-destroy"]), &policies, 1), ASK_2);
    assert_eq!(decide_at(&bash(), &shell(&["cloud-destroy"]), &policies, 2), Decision::Allow);
}

#[test]
fn modes_loosen_edits_and_tighten_plans() {
    let policies = ask_with("");
    let with = |mode, call: Call| Call { principal: principal(mode), ..call };
    let inside = on("src/a.rs", Access::Write);
    let outside = Facts { paths: vec![path(None, Scope::Home, Access::Write)], ..facts() };
    assert_eq!(decide(&with(Mode::AcceptEdits, write()), &inside, &policies), Decision::Allow);
    assert_eq!(decide(&with(Mode::AcceptEdits, write()), &outside, &policies), ASK_1, "outside the workspace");
    assert_eq!(decide(&with(Mode::AcceptEdits, write()), &facts(), &policies), ASK_1, "no path is known");
    assert_eq!(decide(&with(Mode::AcceptEdits, bash()), &shell(&[]), &policies), ASK_1);
    assert_eq!(decide(&with(Mode::Plan, write()), &inside, &policies), Decision::Deny);
    assert_eq!(decide(&with(Mode::Plan, read()), &inside, &policies), Decision::Allow);
    assert_eq!(decide(&with(Mode::Bypass, bash()), &shell(&[]), &policies), ASK_1, "bypass is no policy");
    assert_eq!(standing_level(&principal(Mode::Bypass)), 1);
    assert_eq!(standing_level(&principal(Mode::AcceptEdits)), 0);
}

#[test]
fn the_strict_set_never_asks() {
    let policies = load_with(PolicyFiles::Strict.sources()).unwrap();
    let edit = Call { principal: principal(Mode::AcceptEdits), ..write() };
    assert_eq!(decide(&read(), &on("a", Access::Read), &policies), Decision::Allow);
    assert_eq!(decide(&bash(), &shell(&[]), &policies), Decision::Deny);
    assert_eq!(decide(&write(), &on("a", Access::Write), &policies), Decision::Deny);
    assert_eq!(decide(&edit, &on("a", Access::Write), &policies), Decision::Allow);
}

#[test]
fn an_ask_is_explained_by_what_an_approval_would_lift() {
    let policies = ask_with("");
    let findings = judge(&bash(), &shell(&["git.push.force", "db-destroy"]), &policies, NOBODY);
    assert_eq!(
        ids(&findings),
        [
            ("effect.destroy-remote", Severity::Review),
            ("git.force-push", Severity::Warn),
            ("tools.ask", Severity::Warn)
        ]
    );
    assert_eq!(findings[1].message, "rewrites published history");
    assert_eq!(findings[1].safer.as_deref(), Some("git push --force-with-lease"));
    let allowed = judge(&read(), &on("a", Access::Read), &policies, NOBODY);
    assert_eq!(ids(&allowed), [("tools.safe", Severity::Note)], "an ALLOW names the permit");
    let plan = Call { principal: principal(Mode::Plan), ..bash() };
    let denied = judge(&plan, &shell(&["git.push.force"]), &policies, NOBODY);
    assert_eq!(
        ids(&denied),
        [("git.force-push", Severity::Warn), ("mode.plan", Severity::Deny), ("tools.ask", Severity::Warn)]
    );
}

#[test]
fn i2_where_nothing_permits_the_answer_says_so() {
    let policies = only(r#"@id("x") permit (principal, action == Action::"Read", resource);"#);
    let findings = judge(&bash(), &shell(&[]), &policies, NOBODY);
    assert_eq!(ids(&findings), [("policy.no-permit", Severity::Deny)]);
    assert!(findings[0].message.contains("`Bash`"), "{}", findings[0].message);
}

#[test]
fn i2_a_tool_that_the_schema_does_not_know_is_denied() {
    let findings = judge(&call("Nope", json!({})), &facts(), &ask_with(""), 2);
    assert_eq!(ids(&findings), [("policy.unknown-tool", Severity::Deny)]);
}

#[test]
fn i2_an_evaluation_error_is_a_deny_at_every_level() {
    let policies = ask_with(
        r#"@id("boom") forbid (principal, action, resource)
           when { context.session.calls + 9223372036854775807 > 0 && context.session.tainted };"#,
    );
    let full = Facts { session: SessionFacts { calls: 1, ..Default::default() }, ..on("a", Access::Read) };
    for level in 0..=2 {
        let findings = judge(&read(), &full, &policies, level);
        assert_eq!(ids(&findings), [("policy.error.boom", Severity::Deny)], "Cedar alone would skip it and allow");
    }
    assert_eq!(decide(&read(), &on("a", Access::Read), &policies), Decision::Allow, "without the error it allows");
}

#[test]
fn i2_an_error_that_only_an_approval_reaches_is_a_deny() {
    let policies = only(
        r#"@id("late") permit (principal, action, resource)
           when { context.approval.level >= 1 && context.session.calls + 9223372036854775807 > 0 };"#,
    );
    let full = Facts { session: SessionFacts { calls: 1, ..Default::default() }, ..facts() };
    assert_eq!(ids(&judge(&bash(), &full, &policies, NOBODY)), [("policy.error.late", Severity::Deny)]);
}

#[test]
fn i2_a_typed_argument_that_does_not_fit_is_a_deny_and_an_untyped_one_a_note() {
    let policies = ask_with(
        r#"@id("long") forbid (principal, action == Action::"Read", resource)
           when { context.input has limit && context.input.limit > 1000 };"#,
    );
    let huge: Value = serde_json::from_str(r#"{"path":"a","limit":99999999999999999999}"#).unwrap();
    let findings = judge(&call("Read", huge), &on("a", Access::Read), &policies, NOBODY);
    assert!(ids(&findings).contains(&("policy.unfit-argument", Severity::Deny)), "{findings:?}");
    let drawn = judge(&call("Draw", json!({ "width": 0.5 })), &facts(), &policies, NOBODY);
    assert_eq!(ids(&drawn), [("policy.hidden-argument", Severity::Note), ("tools.safe", Severity::Note)]);
    let opaque = judge(&call("Opaque", json!({ "a b": "x" })), &facts(), &policies, NOBODY);
    assert_eq!(ids(&opaque), [("policy.opaque-arguments", Severity::Note), ("tools.ask", Severity::Warn)]);
}

#[test]
fn resources_stand_in_their_directories() {
    let policies = ask_with(
        r#"@id("secrets") forbid (principal, action, resource in Directory::"src/secrets");
           @id("outside") forbid (principal, action, resource in Directory::"/") unless { context.approval.level >= 2 };"#,
    );
    for (lands, decision) in [
        ("src/secrets/deep/key", Decision::Deny),
        ("src/secrets/key", Decision::Deny),
        ("src/secrets", Decision::Deny),
        ("./src//secrets/", Decision::Deny),
        ("src/secrets.txt", Decision::Allow),
        ("src", Decision::Allow),
        (".", Decision::Allow),
        ("secrets/src", Decision::Allow),
        ("../src/secrets", ASK_2),
        ("/src/secrets", ASK_2),
    ] {
        assert_eq!(decide(&read(), &on(lands, Access::Read), &policies), decision, "{lands}");
    }
    let two = Facts {
        paths: vec![
            path(Some("src/a"), Scope::Workspace, Access::Read),
            path(Some("src/secrets/key"), Scope::Workspace, Access::Read),
        ],
        ..facts()
    };
    assert_eq!(decide(&read(), &two, &policies), Decision::Deny, "every file that a call names is judged");
}

#[test]
fn i6_too_many_files_are_a_deny() {
    let paths = (0..100).map(|n| path(Some(&format!("f{n}")), Scope::Workspace, Access::Read)).collect();
    assert_eq!(decide(&read(), &Facts { paths, ..facts() }, &ask_with("")), Decision::Deny);
}

#[test]
fn sub_agents_are_governed_by_their_agents_policies() {
    let policies = ask_with(
        r#"@id("agent") forbid (principal in Agent::"coder", action, resource) when { context.session.tainted };
           @id("team") forbid (principal in Team::"platform", action, resource) when { context.session.denials > 3 };
           @id("session") forbid (principal in Session::"s1", action, resource) when { context.origin == "library" };"#,
    );
    let mut sub = read();
    sub.principal.sub_agent = Some("tester".into());
    let tainted = SessionFacts { tainted: true, ..Default::default() };
    let denied = SessionFacts { denials: 4, ..Default::default() };
    assert_eq!(decide(&sub, &Facts { session: tainted, ..facts() }, &policies), Decision::Deny);
    assert_eq!(decide(&sub, &Facts { session: denied, ..facts() }, &policies), Decision::Deny);
    assert_eq!(decide(&Call { origin: Origin::Library, ..sub.clone() }, &facts(), &policies), Decision::Deny);
    assert_eq!(decide(&sub, &facts(), &policies), Decision::Allow);
}

#[test]
fn time_is_a_time() {
    let policies = ask_with(
        r#"@id("night") forbid (principal, action, resource) when { context.now.toTime() >= duration("22h") };
           @id("old") forbid (principal, action, resource) when { context.now < datetime("2026-11-30T12:00:00.123Z") };"#,
    );
    let at = |now: &str| decide(&read(), &Facts { now: now.parse().unwrap(), ..facts() }, &policies);
    assert_eq!(at("2026-11-30T12:00:00.123Z"), Decision::Allow);
    assert_eq!(at("2026-11-30T12:00:00.122Z"), Decision::Deny);
    assert_eq!(at("2026-12-01T22:30:00Z"), Decision::Deny);
    assert_eq!(at("-000100-01-01T00:00:00Z"), Decision::Deny, "a time that Cedar cannot hold");
}

/// What is built without Cedar's checks would pass them.
#[test]
fn requests_have_the_types_of_the_schema() {
    let policies = ask_with("");
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(policies.schema()).expect("the schema reads back");
    let mut sub = write();
    sub.principal.sub_agent = Some("tester".into());
    let sandboxed = Facts {
        sandbox: Some(crate::facts::SandboxFacts {
            profile: "p".into(),
            requires: crate::sandbox::Tier::None,
            offers: crate::sandbox::Tier::Landlock,
            network: true,
            missing: Vec::new(),
            ask_when_missing: false,
        }),
        paths: vec![PathFact { argument: "command".into(), ..path(None, Scope::System, Access::Write) }],
        ..shell(&["delete"])
    };
    for (call, facts) in [
        (read(), on("a/b", Access::Read)),
        (
            call("Read", json!({ "path": "a", "limit": 3 })),
            Facts { paths: vec![path(None, Scope::Home, Access::Read)], ..facts() },
        ),
        (sub, on("a/b", Access::Write)),
        (bash(), sandboxed),
        (call("Draw", json!({ "width": 0.5 })), facts()),
        (call("Opaque", json!({})), facts()),
    ] {
        assert_typed(&policies, &schema, &call, &facts);
    }
}

/// Puts what was built for a call through the checks that building it left out.
fn assert_typed(policies: &Policies, schema: &cedar_policy::Schema, call: &Call, facts: &Facts) {
    let (question, residue) = policies.actions[&call.tool].question(call, facts).unwrap();
    if !residue.unfit.is_empty() {
        return;
    }
    for (resource, entities) in &question.resources {
        let request = question.at(1, resource);
        let action = request.action().unwrap().clone();
        let context = request.context().unwrap().to_json_value().unwrap();
        let context = Context::from_json_value(context, Some((schema, &action)));
        let context = context.unwrap_or_else(|e| panic!("{call:?}: {e:?}"));
        let (principal, resource) = (request.principal().unwrap().clone(), request.resource().unwrap().clone());
        cedar_policy::Request::new(principal, action, resource, context, Some(schema))
            .unwrap_or_else(|e| panic!("{call:?}: {e}"));
        let own = entities.iter().filter(|entity| entity.uid().type_name().to_string() != "Action").cloned();
        Entities::from_entities(own, Some(schema)).unwrap_or_else(|e| panic!("{call:?}: {e:?}"));
    }
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let error = load_with(vec![
        text("a.cedar", "@id(\"one\")\npermit (principal, action == Action::\"Bahs\", resource);\n\npermit (principal, action, resource);\n"),
        text(
            "b.cedar",
            "@id(\"one\") forbid (principal, action, resource);\n@id(\"two\") forbid (principal, action == Action::\"Bash\", resource)\n  when { context.comand.effects.contains(\"x\") };\n",
        ),
        text("c.cedar", "@id(\"three\")\nforbit (principal, action, resource);\n"),
        Source::new("d.cedar", "@id(\"four\") permit (principal, action, resource);", Trust::Workspace),
        text("e.cedar", "@id(\"five\") forbid (principal, action, resource)\n  when { context.approval.level >= 1 };\n"),
        text("g.cedar", "@id(\"seven\") forbid (principal, action, resource)\n  when { principal.mode == \"pln\" };\n"),
        text("f.cedar", "@id(\"six\") permit (principal == ?principal, action, resource);"),
    ])
    .unwrap_err();
    let shown: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    for expected in [
        "a.cedar:2:30: ",
        "a.cedar:4:1: this policy has no `@id`",
        "b.cedar:1:1: the identifier `one` is already taken, at a.cedar:1",
        "b.cedar:3:10: ",
        "c.cedar:2:1: ",
        "d.cedar:1:13: a workspace may only tighten",
        "e.cedar:2:18: an approval may only help",
        "f.cedar:1:1: ",
        "g.cedar:2:28: `principal.mode` is never \"pln\"",
    ] {
        assert!(shown.iter().any(|text| text.starts_with(expected)), "{expected:?} is missing from {shown:#?}");
    }
    let helps: Vec<&str> = error.problems.iter().filter_map(|problem| problem.help.as_deref()).collect();
    assert!(helps.iter().any(|help| help.contains("did you mean")), "Cedar's own help is lost: {helps:#?}");
    assert!(error.to_string().contains("b.cedar:3:10"), "{error}");
    let drawn = format!("{:?}", miette::Report::new(error));
    assert!(drawn.contains("context.comand"), "the place is not drawn: {drawn}");
}

#[test]
fn matching_a_commands_text_is_a_warning() {
    let policies = ask_with(
        r#"@id("like") forbid (principal, action == Action::"Bash", resource) when { context.input.command like "*rm*" };"#,
    );
    let warnings: Vec<_> = policies.warnings().iter().map(|w| (w.severity, w.to_string())).collect();
    assert!(
        warnings.iter().any(|(grade, text)| *grade == Grade::Warning && text.starts_with("more.cedar:1:97: matching")),
        "{warnings:?}"
    );
}

#[test]
fn the_built_in_sets_load_without_a_warning() {
    for set in [PolicyFiles::Ask, PolicyFiles::Strict] {
        let tools = tools();
        let report = check(set.sources(), &tools.iter().collect::<Vec<_>>());
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        let summary = report.summary.unwrap();
        assert!(summary.policies >= 3 && summary.actions.len() == tools.len(), "{summary:?}");
        let policies = load_with(set.sources()).unwrap();
        for policy in policies.iter() {
            assert!(policy.reason.is_some(), "{} gives no reason", policy.id);
        }
    }
}

#[test]
fn a_set_is_named_by_its_text_and_not_by_its_order() {
    let (a, b) = (
        text("a", r#"@id("a") permit (principal, action, resource);"#),
        text("b", r#"@id("b") forbid (principal, action, resource);"#),
    );
    let one = load_with(vec![a.clone(), b.clone()]).unwrap();
    let two = load_with(vec![b, a.clone()]).unwrap();
    assert_eq!(one.hash(), two.hash());
    assert_ne!(one.hash(), load_with(vec![a]).unwrap().hash());
    let described = one.describe("b").unwrap();
    assert_eq!((&*described.file, described.line), ("b", 1));
    assert!(described.text.ends_with("forbid (principal, action, resource);"), "{}", described.text);
}

#[test]
fn words_for_people_are_plain() {
    for (annotations, expected) in [
        (r#"@id("policy.no-permit")"#, "begins with `policy.`"),
        (r#"@id("two words")"#, "is no identifier"),
        (r#"@id("")"#, "has no `@id`"),
        (r#"@id("x") @reason("\u{1b}[2J all is well")"#, "`@reason` holds a control character"),
    ] {
        let policy = format!("{annotations} forbid (principal, action, resource);");
        let error = load_with(vec![text("x", &policy)]).expect_err(annotations);
        assert!(error.to_string().contains(expected), "{annotations}: {error}");
    }
}

#[test]
fn files_are_read_in_the_order_of_their_names_and_shadows_stay_out() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("shadow")).unwrap();
    for name in ["b.cedar", "a.cedar", "notes.md", "shadow/c.cedar"] {
        std::fs::write(directory.path().join(name), format!("// {name}")).unwrap();
    }
    let sources = Source::read(directory.path(), Trust::Workspace).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.text.to_string()).collect();
    assert_eq!(names, ["// a.cedar", "// b.cedar"]);
    assert!(sources.iter().all(|source| source.trust == Trust::Workspace));
    let missing = Source::read(&directory.path().join("none.cedar"), Trust::Operator).unwrap_err();
    assert!(missing.to_string().contains("none.cedar: the policies cannot be read"), "{missing}");
}

#[test]
fn a_tool_named_like_a_group_is_refused() {
    let clash = tool("edit", json!({ "type": "object" }), Sensitivity::Safe);
    let error = Policies::load(PolicyFiles::Ask.sources(), &[&clash]).unwrap_err();
    assert!(error.to_string().contains("`edit`"), "{error}");
}

#[test]
fn i2_what_exhausts_is_refused_and_never_overflows() {
    let wrap = |body: &str| format!("@id(\"x\") forbid (principal, action, resource) when {{ {body} }};");
    for body in [
        format!("context{}", ".a".repeat(3_900)),
        format!("context{}", ".a".repeat(1_000_000)),
        format!("{}true{}", "(".repeat(60), ")".repeat(60)),
        format!("{}true", "true && ".repeat(900)),
        format!("{}true", "if true then true else ".repeat(200)),
    ] {
        let head: String = body.chars().take(40).collect();
        if let Ok(policies) = load_with(vec![text("x", &wrap(&body))]) {
            assert_eq!(decide(&read(), &on("a", Access::Read), &policies), Decision::Deny, "{head}");
        }
    }
}

const PIECES: &[&str] = &[
    "permit (principal, action in Action::\"safe\", resource);",
    "permit (principal, action, resource) when { context.approval.level >= 1 };",
    "permit (principal, action == Action::\"Bash\", resource) when { context.approval.level >= 2 };",
    "permit (principal, action in Action::\"edit\", resource is File in Workspace::\"workspace\");",
    "forbid (principal, action in Action::\"shell\", resource) when { context.command.effects.contains(\"delete\") } unless { context.approval.level >= 1 };",
    "forbid (principal, action, resource) when { context.session.tainted } unless { context.approval.level >= 2 };",
    "forbid (principal, action, resource in Directory::\"src\") when { principal.mode == \"plan\" };",
    "forbid (principal, action in [Action::\"Bash\", Action::\"edit\"], resource) when { context.session.denials > 2 };",
    "forbid (principal, action, resource) when { context.session.calls + 9223372036854775800 > 0 };",
];

fn compose(picked: &[usize]) -> Vec<Source> {
    let one = |(at, piece): (usize, &usize)| text(&format!("{at}"), &format!("@id(\"p{piece}\") {}", PIECES[*piece]));
    let unique: BTreeSet<usize> = picked.iter().copied().collect();
    let mut order: Vec<usize> = Vec::new();
    order.extend(picked.iter().filter(|piece| unique.contains(piece)));
    let mut seen = BTreeSet::new();
    order.retain(|piece| seen.insert(*piece));
    order.iter().enumerate().map(one).collect()
}

fn situations() -> impl Strategy<Value = (Call, Facts)> {
    let modes = prop_oneof![Just(Mode::Plan), Just(Mode::Default), Just(Mode::AcceptEdits)];
    (0..3_usize, modes, any::<bool>(), 0..5_u64, 0..10_u64, any::<bool>(), any::<bool>()).prop_map(
        |(which, mode, tainted, denials, calls, delete, wrote)| {
            let (call, facts) = match which {
                0 => (read(), on("src/a.rs", Access::Read)),
                1 => (write(), on("lib/a.rs", Access::Write)),
                _ => (bash(), shell(if delete { &["delete"] } else { &[] })),
            };
            let session = SessionFacts { calls, denials, tainted, wrote };
            (Call { principal: principal(mode), ..call }, Facts { session, ..facts })
        },
    )
}

fn any_json() -> impl Strategy<Value = Value> {
    let numbers = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from)
    ];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), numbers, ".{0,8}".prop_map(Value::from)];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

#[test]
fn i2_any_arguments_have_a_verdict_and_what_policies_see_of_them_is_typed() {
    let policies = ask_with(
        r#"@id("limit") forbid (principal, action == Action::"Read", resource)
           when { context.input has limit && context.input.limit > 1000 };"#,
    );
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(policies.schema()).unwrap();
    let names = prop_oneof![
        Just("path".to_owned()),
        Just("limit".into()),
        Just("width".into()),
        Just("command".into()),
        ".{0,4}"
    ];
    let arguments = prop::collection::btree_map(names, any_json(), 0..5);
    let tool = prop_oneof![Just("Read"), Just("Bash"), Just("Draw"), Just("Opaque")];
    let config = ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&(tool, arguments, ".{0,12}"), |(tool, arguments, lands)| {
        let limit = arguments.get("limit").cloned();
        let call = call(tool, json!(arguments));
        let facts = on(&lands, Access::Read);
        let decision = decide(&call, &facts, &policies);
        assert_typed(&policies, &schema, &call, &facts);
        let harmless = limit.is_none_or(|limit| limit.is_null() || limit.as_f64().is_some_and(|limit| limit <= 1000.0));
        prop_assert!(tool != "Read" || harmless || decision == Decision::Deny, "{call:?} slipped past a forbid");
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_forbid_never_lowers_a_decision_and_an_approval_never_raises_it(
        picked in prop::collection::vec(0..PIECES.len(), 1..7),
        forbid in 4..PIECES.len(),
        (call, facts) in situations(),
    ) {
        let policies = load_with(compose(&picked)).unwrap();
        let reversed: Vec<usize> = picked.iter().rev().copied().collect();
        let shuffled = load_with(compose(&reversed)).unwrap();
        let more: Vec<usize> = picked.iter().copied().chain([forbid]).collect();
        let tighter = load_with(compose(&more)).unwrap();
        let mut before = Decision::Deny;
        for level in 0..=2 {
            let decision = decide_at(&call, &facts, &policies, level);
            prop_assert_eq!(decision, decide_at(&call, &facts, &shuffled, level), "the order of files decided");
            prop_assert!(decide_at(&call, &facts, &tighter, level) >= decision, "a forbid loosened");
            prop_assert!(decision <= before || level == 0, "an approval tightened");
            before = decision;
        }
    }
}

#[test]
fn a_tool_is_offered_unless_every_call_of_it_would_be_denied() {
    let ask = ask_with("");
    let unattended = |mode| Principal { unattended: true, ..principal(mode) };
    for (who, tool, offered) in [
        (principal(Mode::Default), "Read", true),
        (principal(Mode::Default), "Bash", true),
        (principal(Mode::Plan), "Read", true),
        (principal(Mode::Plan), "Bash", false),
        (principal(Mode::AcceptEdits), "Write", true),
        (unattended(Mode::Default), "Bash", false),
        (unattended(Mode::AcceptEdits), "Write", true),
        (unattended(Mode::Bypass), "Bash", true),
        (principal(Mode::Default), "Nope", false),
    ] {
        assert_eq!(could_allow(&who, "mcp", tool, &ask), offered, "{tool} for {who:?}");
    }
    for (policies, offered) in [
        ("", false),
        ("@id(\"a\") permit (principal, action == Action::\"Bash\", resource);", true),
        ("@id(\"a\") permit (principal, action == Action::\"Read\", resource);", false),
        ("@id(\"a\") permit (principal == Agent::\"other\", action == Action::\"Bash\", resource);", false),
        ("@id(\"a\") permit (principal in Team::\"platform\", action == Action::\"Bash\", resource);", true),
        ("@id(\"a\") permit (principal, action, resource) when { context.origin == \"cli\" };", false),
        ("@id(\"a\") permit (principal, action, resource) when { context.session.calls < 3 };", true),
        ("@id(\"a\") permit (principal, action, resource);\n@id(\"b\") forbid (principal, action, resource);", false),
        (
            "@id(\"a\") permit (principal, action, resource);\n\
             @id(\"b\") forbid (principal, action, resource) unless { context.approval.level >= 2 };",
            true,
        ),
        (
            "@id(\"a\") permit (principal, action, resource);\n\
             @id(\"b\") forbid (principal, action == Action::\"Bash\", resource)\n\
             when { context.command.programs.contains(\"git\") || principal.mode == \"default\" };",
            false,
        ),
    ] {
        let told = could_allow(&principal(Mode::Default), "mcp", "Bash", &only(policies));
        assert_eq!(told, offered, "{policies}");
    }
}

/// A command that uses these paths.
fn using(paths: &[(&str, Access)]) -> Facts {
    let of = |(lands, access): &(&str, Access)| PathFact {
        argument: "command".into(),
        ..path(Some(lands), Scope::Workspace, *access)
    };
    Facts { paths: paths.iter().map(of).collect(), ..facts() }
}

const SECRETS: &str = r#"
    @id("secrets") @reason("secrets stay where they are")
    forbid (principal, action, resource in Directory::"src/secrets");
"#;

#[test]
fn a_forbid_on_a_directory_covers_the_files_that_a_command_names() {
    let policies = ask_with(SECRETS);
    let bash = call("Bash", json!({ "command": "c" }));
    let judged = |paths: &[(&str, Access)]| {
        let verdict = StageVerdict::new(Stage::Policy, judge(&bash, &using(paths), &policies, NOBODY));
        let secrets = verdict.findings.iter().find(|finding| finding.id == "secrets").map(|f| f.message.clone());
        (verdict.decision, secrets)
    };
    let denied = |place: &str| (Decision::Deny, Some(format!("secrets stay where they are: `{place}`")));
    assert_eq!(judged(&[("src/a", Access::Read)]), (ASK_1, None));
    assert_eq!(judged(&[("src/a", Access::Read), ("src/secrets/k", Access::Read)]), denied("src/secrets/k"));
    assert_eq!(judged(&[("src/secrets", Access::Write)]), denied("src/secrets"));
    // What is deleted goes with all that is below it; what is only looked into does not.
    assert_eq!(judged(&[("src", Access::Delete)]), denied("src/secrets"));
    assert_eq!(judged(&[(".", Access::Delete)]), denied("src/secrets"));
    assert_eq!(judged(&[("src/sec", Access::Delete)]), (ASK_1, None));
    assert_eq!(judged(&[("src", Access::Read)]), (ASK_1, None));
}

#[test]
fn a_forbid_on_a_directory_stops_a_search_of_what_is_around_it() {
    let policies = ask_with(SECRETS);
    let judged = |top: &str| {
        StageVerdict::new(
            Stage::Policy,
            judge(&call("Grep", json!({ "path": top })), &on(top, Access::Read), &policies, NOBODY),
        )
        .decision
    };
    assert_eq!(["src/app", "docs", "src/secretsx"].map(judged), [Decision::Allow; 3]);
    assert_eq!([".", "src", "src/secrets", "src/secrets/deep"].map(judged), [Decision::Deny; 4]);
}

#[test]
fn what_a_command_touches_can_ask_and_needs_no_permit_of_its_own() {
    let policies = only(
        r#"
        @id("work") permit (principal, action == Action::"Bash", resource == Workspace::"workspace");
        @id("docs") forbid (principal, action == Action::"Bash", resource in Directory::"docs")
        unless { context.approval.level >= 1 };
        "#,
    );
    let bash = call("Bash", json!({ "command": "c" }));
    let judged = |lands| {
        let facts = using(&[(lands, Access::Write)]);
        StageVerdict::new(Stage::Policy, judge(&bash, &facts, &policies, NOBODY)).decision
    };
    assert_eq!(["a", "docs/b"].map(judged), [Decision::Allow, ASK_1]);
    let granted = judge(&bash, &using(&[("docs/b", Access::Write)]), &policies, 1);
    assert_eq!(StageVerdict::new(Stage::Policy, granted).decision, Decision::Allow);
}
