//! Loading policies, from any text.

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread;

use cedar_policy::{Effect, Schema};
use jiff::Timestamp;
use miette::{GraphicalReportHandler, GraphicalTheme, Severity as Weight};

use super::decide::TOOLS;
use crate::call::{Call, Mode, Origin, Principal};
use crate::facts::path::{Access, PathFact};
use crate::facts::{Facts, Scope, SessionFacts};
use crate::firewall::policy::{Policies, PolicyError, Problem, Source, Trust, judge, load};
use crate::registry::{Definition, Sensitivity};
use crate::verdict::{Decision, Finding, Stage, StageVerdict};

const FILE: &str = "fuzz.cedar";

static DEFINITIONS: LazyLock<Vec<&Definition>> = LazyLock::new(|| TOOLS.all().map(|tool| tool.definition()).collect());

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let empty = Policies::load(Vec::new(), &DEFINITIONS).expect("no policies load");
    Schema::from_cedarschema_str(empty.schema()).expect("the schema is sound").0
});

/// Any text either loads, or every reason why not is told with its place. What loaded decides, without an error other
/// than of arithmetic, which denies; a workspace's policies only forbid.
///
/// # Panics
///
/// Where that does not hold.
pub fn policy_load(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for trust in [Trust::Operator, Trust::Workspace] {
        let source = Source::new(FILE, &*text, trust);
        match validates(&source) {
            Ok(()) => match Policies::load(vec![source], &DEFINITIONS) {
                Ok(policies) => decides(&text, trust, &policies),
                Err(error) => panic!("{text:?} validates and does not load: {error}"),
            },
            Err(error) => {
                let grave = |problem: &&Problem| problem.severity == Weight::Error;
                assert!(error.problems.iter().any(|p| grave(&p)), "refused without a reason: {text:?}");
                error.problems.iter().for_each(|problem| tells_its_place(&text, problem));
            }
        }
    }
}

/// The part of loading that needs no schema of its own, on a stack like that of loading.
fn validates(source: &Source) -> Result<(), PolicyError> {
    let schema = &*SCHEMA;
    thread::scope(|scope| {
        let work = || load(std::slice::from_ref(source), schema).map(drop);
        let thread = thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work).expect("a thread starts");
        thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))
    })
}

fn tells_its_place(text: &str, problem: &Problem) {
    assert!(!problem.message.contains("report this as a bug"), "loading {text:?} broke down");
    assert_eq!(problem.file, FILE, "a problem of {text:?} names no file: {problem:?}");
    let lines = text.matches('\n').count() + 1;
    match problem.place {
        Some((line, column)) => {
            assert!((1..=lines).contains(&line) && column >= 1, "a place beyond {text:?}: {line}:{column}");
        }
        None => panic!("a problem of {text:?} has no place: {problem:?}"),
    }
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_links(false).with_width(110);
    assert!(handler.render_report(&mut drawn, problem).is_ok(), "a problem of {text:?} cannot be shown: {problem:?}");
}

fn decides(text: &str, trust: Trust, policies: &Policies) {
    policies.warnings().iter().for_each(|problem| tells_its_place(text, problem));
    for policy in policies.iter() {
        assert!(
            trust == Trust::Operator || policy.effect == Effect::Forbid,
            "a workspace's policy permits: {policy:?}"
        );
        assert!(text.contains(&policy.text), "a policy that is not in the text: {policy:?}");
    }
    // What is shown of a set is the set: loaded again, it decides the same.
    let shown: String = policies.iter().map(|policy| format!("{}\n", policy.text)).collect();
    let again = Policies::load(vec![Source::new("again.cedar", shown, trust)], &DEFINITIONS);
    let again = again.unwrap_or_else(|error| panic!("what is shown of {text:?} does not load: {error}"));
    for tool in TOOLS.names() {
        let (call, facts) = fixed(tool);
        let levels = [0, 1, 2].map(|level| {
            let findings = judge(&call, &facts, policies, level);
            errors_deny(text, &findings);
            assert_eq!(findings, judge(&call, &facts, &again, level), "what is shown of {text:?} decides otherwise");
            StageVerdict::new(Stage::Policy, findings).decision
        });
        assert!(levels.is_sorted_by(|lower, higher| higher <= lower), "an approval raised with {text:?}: {levels:?}");
    }
}

/// What validates can still overflow. Nothing else goes wrong, and whatever does is a DENY.
fn errors_deny(text: &str, findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.id.starts_with("policy.error.")) {
        assert!(finding.message.contains("overflow"), "{text:?} validates and errs: {finding:?}");
        assert_eq!(finding.severity.decision(), Decision::Deny, "an error passes: {finding:?}");
    }
}

fn fixed(tool: &str) -> (Call, Facts) {
    let call = Call {
        id: "0197".to_owned(),
        tool: tool.to_owned(),
        arguments: serde_json::Map::from_iter([("path".to_owned(), "src/a.rs".into())]),
        cwd: "/w".into(),
        principal: Principal {
            agent: "coder".to_owned(),
            sub_agent: Some("reader".to_owned()),
            teams: vec!["platform".to_owned()],
            session: "session".to_owned(),
            mode: Mode::Default,
            unattended: false,
        },
        origin: Origin::Library,
        caller_id: None,
    };
    let path = PathFact {
        argument: "path".to_owned(),
        given: "src/a.rs".to_owned(),
        access: Access::Read,
        scope: Scope::Workspace,
        lands: Some("src/a.rs".to_owned()),
        protected: None,
        problem: None,
        unchecked: None,
    };
    let facts = Facts {
        sensitivity: Sensitivity::Safe,
        command: None,
        paths: vec![path],
        sandbox: None,
        urls: Vec::new(),
        mcp: None,
        session: SessionFacts { calls: 3, denials: 1, tainted: true, wrote: true },
        now: Timestamp::UNIX_EPOCH,
        notes: Vec::new(),
    };
    (call, facts)
}
