//! The policy stage: one decision, from a call and its facts to findings, with 10, 100 and 500 policies loaded beside the
//! default set. A fifth of them is bound to no action, so every decision evaluates them; the rest is spread over 20 tools.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a bench that cannot be set up may fail")]

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portcullis::call::{Call, Mode, Origin, Principal};
use portcullis::facts::command::{CommandFacts, Effect, Parse};
use portcullis::facts::path::{Access, PathFact};
use portcullis::facts::{Facts, SandboxFacts, Scope, SessionFacts};
use portcullis::firewall::policy::{Policies, PolicyFiles, Source, Trust, judge};
use portcullis::registry::{Definition, Sensitivity, Subject};
use portcullis::sandbox::Tier;
use portcullis::verdict::{Decision, Level, Stage, StageVerdict};
use serde_json::{Value, json};

const TOOLS: [&str; 20] = [
    "Bash", "Read", "Write", "Edit", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13", "T14", "T15",
    "T16", "T17", "T18", "T19",
];

fn tool(name: &'static str) -> Definition {
    let text = json!({ "type": "string" });
    let properties = json!({ "path": text, "command": text, "content": text, "limit": { "type": "integer" } });
    let subjects: &[Subject] = match name {
        "Bash" => &[Subject::Command { argument: "command" }],
        "Read" => &[Subject::Path { argument: "path", access: Access::Read }],
        _ => &[],
    };
    let sensitivity = if name == "Read" { Sensitivity::Safe } else { Sensitivity::Sensitive };
    let parameters = json!({ "type": "object", "properties": properties });
    Definition {
        name: name.into(),
        description: "".into(),
        parameters,
        sensitivity,
        groups: &[],
        subjects,
        max_output: 0,
        upstream: None,
    }
}

/// Forbids of the kinds that people write; half of them ask.
fn policy(n: usize) -> String {
    let scope = match n % 5 {
        0 => "action".to_owned(),
        _ => format!("action == Action::\"{}\"", TOOLS[n % 20]),
    };
    let condition = match n % 4 {
        0 => format!("context.command.effects.contains(\"effect-{n}\")"),
        1 => format!("context.command.programs.contains(\"program-{n}\") && context.paths.changed.contains(\"home\")"),
        2 => format!("principal.unattended && context.session.calls > {n}"),
        _ => format!("context.command.hosts.containsAny([\"h{n}.example\", \"g{n}.example\"])"),
    };
    let unless = if n.is_multiple_of(2) { " unless { context.approval.level >= 1 }" } else { "" };
    format!(
        "@id(\"p{n}\") @reason(\"because\") forbid (principal, {scope}, resource) when {{ {condition} }}{unless};\n"
    )
}

fn call(tool: &str, arguments: Value) -> Call {
    Call {
        id: "0197".into(),
        tool: tool.into(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
        cwd: "/home/alice/proj".into(),
        principal: Principal {
            agent: "coder".into(),
            sub_agent: None,
            teams: vec!["platform".into()],
            session: "0197-session".into(),
            mode: Mode::Default,
            unattended: false,
        },
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
        urls: Vec::new(),
        mcp: None,
        session: SessionFacts { calls: 17, denials: 1, tainted: false, wrote: false },
        now: jiff::Timestamp::UNIX_EPOCH,
        notes: Vec::new(),
    }
}

fn path(argument: &str, access: Access) -> PathFact {
    PathFact {
        argument: argument.into(),
        given: "src/firewall/policy/mod.rs".into(),
        access,
        scope: Scope::Workspace,
        lands: Some("src/firewall/policy/mod.rs".into()),
        protected: None,
        problem: None,
        unchecked: None,
    }
}

fn shell() -> Facts {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    let command = CommandFacts {
        parse: Parse::Complete,
        programs: words(&["git", "grep", "sort", "head"]),
        effects: words(&["delete", "fetch"]).into_iter().map(Effect).collect(),
        hosts: words(&["example.org"]),
        paths: Vec::new(),
        scripts: Vec::new(),
        findings: Vec::new(),
    };
    let sandbox = SandboxFacts {
        profile: "workspace-write".into(),
        requires: Tier::Landlock,
        offers: Tier::Landlock,
        network: false,
        missing: Vec::new(),
        ask_when_missing: false,
    };
    Facts {
        command: Some(command),
        sandbox: Some(sandbox),
        paths: vec![path("command", Access::Read), path("command", Access::Write)],
        ..facts()
    }
}

fn decision(criterion: &mut Criterion) {
    let tools: Vec<Definition> = TOOLS.into_iter().map(tool).collect();
    let tools: Vec<&Definition> = tools.iter().collect();
    let cases = [
        (
            "read allow",
            call("Read", json!({ "path": "a", "limit": 10 })),
            Facts { paths: vec![path("path", Access::Read)], ..facts() },
            Decision::Allow,
        ),
        ("bash ask", call("Bash", json!({ "command": "git log | grep x" })), shell(), Decision::Ask(Level::Operator)),
    ];
    let mut group = criterion.benchmark_group("policy decision");
    for policies in [10, 100, 500] {
        let text: String = (0..policies).map(policy).collect();
        let mut sources = PolicyFiles::Ask.sources();
        sources.push(Source::new("bench.cedar", text, Trust::Operator));
        let loaded = Policies::load(sources, &tools).unwrap_or_else(|e| panic!("{e}"));
        for (name, call, facts, expected) in &cases {
            let decided = StageVerdict::new(Stage::Policy, judge(call, facts, &loaded, 0)).decision;
            assert_eq!(decided, *expected, "the bench measures another path than it says");
            group.bench_function(BenchmarkId::new(*name, policies), |bencher| {
                bencher.iter(|| judge(black_box(call), black_box(facts), &loaded, 0));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
