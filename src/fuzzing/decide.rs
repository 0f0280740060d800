//! The firewall, on any call and any facts.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;

use super::input::Input;
use crate::approval::{self, Grant, Seen};
use crate::call::{Call, Digest, Mode, Origin, Principal};
use crate::facts::command::{CommandFacts, Effect, Parse};
use crate::facts::path::{Access, Handles, PathFact, Protected, ProtectedAction};
use crate::facts::{Facts, SandboxFacts, Scope, SessionFacts};
use crate::firewall::policy::{Policies, PolicyFiles, Source, Trust};
use crate::firewall::{Approval, Firewall, Prepared};
use crate::registry::{Registry, Sensitivity};
use crate::sandbox::Tier;
use crate::verdict::{Decision, Finding, Level, Severity, Stage, StageVerdict, Verdict};

pub(super) static TOOLS: LazyLock<Registry> = LazyLock::new(|| crate::tools::all().expect("the tools can be set up"));

/// What a set of policies may be tightened by.
const FORBIDS: &[&str] = &[
    "forbid (principal, action, resource);",
    r#"forbid (principal, action == Action::"Bash", resource) when { context.command.effects.contains("delete") };"#,
    "forbid (principal, action, resource) when { context.session.calls > 10 } unless { context.approval.level >= 1 };",
    r#"forbid (principal, action in Action::"safe", resource) unless { context.approval.level >= 2 };"#,
    r#"forbid (principal, action, resource in Directory::"src") when { context.paths.protected };"#,
    r#"forbid (principal, action, resource) when { context.command.findings.contains("fs.delete-root") };"#,
    r#"forbid (principal, action, resource) when { principal.mode == "bypass" || context.session.tainted };"#,
];
/// Cannot be evaluated in a session of two calls or more: the product is beyond 64 bits.
const OVERFLOWS: &str = r#"@id("fuzz.overflow") permit (principal, action, resource)
    when { context.session.calls * 4611686018427387904 == 1 };"#;

/// Sets of policies, and each of them with one forbid more.
struct Sets {
    plain: Vec<Arc<Policies>>,
    tightened: Vec<Vec<Arc<Policies>>>,
    erring: Arc<Policies>,
}

static SETS: LazyLock<Sets> = LazyLock::new(|| {
    let sets = [PolicyFiles::Ask, PolicyFiles::Strict];
    let forbid = |text: &&str| format!("@id(\"fuzz.forbid\") {text}");
    Sets {
        plain: sets.iter().map(|set| load(*set, None)).collect(),
        tightened: sets.iter().map(|set| FORBIDS.iter().map(|text| load(*set, Some(forbid(text)))).collect()).collect(),
        erring: load(PolicyFiles::Ask, Some(OVERFLOWS.to_owned())),
    }
});

fn load(set: PolicyFiles, more: Option<String>) -> Arc<Policies> {
    let tools: Vec<_> = TOOLS.all().map(|tool| tool.definition()).collect();
    let mut sources = set.sources();
    sources.extend(more.map(|text| Source::new("fuzz.cedar", text, Trust::Operator)));
    match Policies::load(sources, &tools) {
        Ok(policies) => Arc::new(policies),
        Err(error) => panic!("{error}"),
    }
}

/// Any call with any facts is decided; the order of the stages means nothing; a forbid never lowers; an approval never
/// raises; an error is a DENY; and exactly what was decided is what is cleared.
///
/// # Panics
///
/// Where that does not hold.
pub fn decide(data: &[u8]) {
    let mut input = Input::new(data);
    let set = input.below(SETS.plain.len());
    let forbid = input.below(FORBIDS.len());
    let restrict_to_workspace = input.flag();
    let call = call(&mut input);
    let facts = facts(&mut input);
    let firewall = |policies: &Arc<Policies>| Firewall {
        policies: Arc::clone(policies),
        restrict_to_workspace,
        exceptions: Arc::from([]),
    };
    let plain = firewall(SETS.plain.get(set).expect("one of the sets"));
    let tightened = firewall(SETS.tightened.get(set).and_then(|sets| sets.get(forbid)).expect("one of the sets"));

    let verdicts = [0, 1, 2].map(|level| judge(&plain, &call, &facts, level));
    for (level, (verdict, tight)) in
        verdicts.iter().zip([0, 1, 2].map(|l| judge(&tightened, &call, &facts, l))).enumerate()
    {
        assert!(
            tight.decision >= verdict.decision,
            "a forbid lowered {} to {} at level {level}: {verdict:?} / {tight:?}",
            verdict.decision,
            tight.decision
        );
    }
    let [nobody, operator, reviewer] = &verdicts;
    assert!(operator.decision <= nobody.decision, "level 1 raised: {nobody:?} / {operator:?}");
    assert!(reviewer.decision <= operator.decision, "level 2 raised: {operator:?} / {reviewer:?}");
    if facts.session.calls >= 2 && TOOLS.has(&call.tool) {
        let verdict = judge(&firewall(&SETS.erring), &call, &facts, 0);
        assert_eq!(verdict.decision, Decision::Deny, "a policy erred, and that is no DENY: {verdict:?}");
    }
    replays(&plain, &call, &facts, nobody);
    clears_what_it_decided(&plain, &call, &facts, nobody);
}

/// Judges, and holds what must hold of any verdict.
fn judge(firewall: &Firewall, call: &Call, facts: &Facts, level: u8) -> Verdict {
    let verdict = firewall.judge(call, facts, level);
    let panicked = verdict.findings().find(|(_, finding)| finding.id == "firewall.stage-panicked");
    assert_eq!(panicked, None, "a stage panicked");
    let stages: Vec<Stage> = verdict.stages.iter().map(|stage| stage.stage).collect();
    assert_eq!(stages, Stage::ALL, "not every stage judged");
    let mut order: Vec<StageVerdict> = verdict.stages.clone();
    for turn in 0..order.len() {
        order.rotate_left(1);
        for swapped in [false, true] {
            if swapped {
                order.reverse();
            }
            let other = Verdict::combine(verdict.notes.clone(), order.clone()).decision;
            assert_eq!(other, verdict.decision, "the order of the stages matters (turn {turn}): {verdict:?}");
        }
    }
    let gravest = verdict.findings().map(|(_, finding)| finding.severity.decision()).max().unwrap_or(Decision::Allow);
    assert_eq!(verdict.decision, gravest, "the verdict is not that of its gravest finding: {verdict:?}");
    verdict
}

/// A record of call and facts leads to the same verdict.
fn replays(firewall: &Firewall, call: &Call, facts: &Facts, verdict: &Verdict) {
    let recorded = serde_json::to_vec(&(call, facts)).expect("a call can be recorded");
    let (call, facts): (Call, Facts) = serde_json::from_slice(&recorded).expect("a record can be read");
    assert_eq!(&judge(firewall, &call, &facts, 0), verdict, "the record of a call is decided otherwise");
}

fn clears_what_it_decided(firewall: &Firewall, call: &Call, facts: &Facts, verdict: &Verdict) {
    let digest = Digest::of(&call.id);
    let cleared = |approval: Approval<'_>| {
        let (call, facts) = (call.clone(), facts.clone());
        firewall
            .clear(Prepared { call, facts, handles: Handles::default(), plan: None, digest, frame: digest }, approval)
            .is_ok()
    };
    let allowed = firewall.effective(call, verdict) == Decision::Allow;
    assert_eq!(cleared(Approval::Standing), allowed, "cleared is not what was decided: {verdict:?}");
    let full = Grant {
        id: "00000000".parse().expect("an approval's name"),
        digest,
        session: call.principal.session.clone(),
        level: Level::Reviewer,
        findings: Seen::of(verdict),
        by: "reviewer".to_owned(),
        expires: Timestamp::MAX,
        scope: approval::Scope::Call,
        like: None,
    };
    let asks = matches!(verdict.decision, Decision::Ask(_));
    assert_eq!(cleared(Approval::Granted(&full)), verdict.decision != Decision::Deny, "a full grant: {verdict:?}");
    if asks {
        let other_call = Grant { digest: Digest::of("another"), ..full.clone() };
        assert!(!cleared(Approval::Granted(&other_call)), "a grant of another call was used: {verdict:?}");
        let less = Grant { findings: full.findings.iter().skip(1).cloned().collect(), ..full.clone() };
        assert!(!cleared(Approval::Granted(&less)), "a finding that nobody saw was granted: {verdict:?}");
        let weaker = Grant { level: Level::Operator, ..full };
        let enough = verdict.decision == Decision::Ask(Level::Operator);
        assert_eq!(cleared(Approval::Granted(&weaker)), enough, "an operator's grant: {verdict:?}");
    }
}

const WORDS: &[&str] = &[
    "command",
    "path",
    "cwd",
    "content",
    "pattern",
    "limit",
    "timeout",
    "old_string",
    "src",
    "src/a.rs",
    "..",
    "/",
    "/etc/passwd",
    ".",
    "",
    "a//b",
    "src/../x",
    "rm -rf /",
    "delete",
    "read",
    "privilege",
    "fs.delete-root",
    "git",
    "ü",
    "a\u{0}b",
    "workspace-write",
    "fuzz.forbid",
    "policy.error",
];
const SEVERITIES: &[Severity] = &[Severity::Note, Severity::Warn, Severity::Review, Severity::Deny, Severity::Fatal];
const SCOPES: &[Scope] = &[
    Scope::Workspace,
    Scope::ReadRoot,
    Scope::WriteRoot,
    Scope::Temp,
    Scope::Home,
    Scope::OtherHome,
    Scope::System,
    Scope::Device,
    Scope::Root,
    Scope::Gateway,
    Scope::Outside,
    Scope::Unknown,
];

fn call(input: &mut Input<'_>) -> Call {
    let tools: Vec<&str> = TOOLS.names().chain(["Nothing", ""]).collect();
    Call {
        id: "0197".to_owned(),
        tool: (*input.pick(&tools)).to_owned(),
        arguments: input.object(WORDS, 3),
        cwd: "/w".into(),
        principal: Principal {
            agent: input.word(WORDS),
            sub_agent: input.flag().then(|| input.word(WORDS)),
            teams: input.several(2, |input| input.word(WORDS)),
            session: input.word(WORDS),
            mode: *input.pick(&[Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::Bypass]),
            unattended: input.byte() % 4 == 3,
        },
        origin: *input.pick(&[Origin::Cli, Origin::Hook, Origin::Library, Origin::Mcp, Origin::Rest]),
        caller_id: None,
    }
}

fn facts(input: &mut Input<'_>) -> Facts {
    let second = input.number().cast_signed() % 100_000_000_000;
    Facts {
        sensitivity: *input.pick(&[Sensitivity::Safe, Sensitivity::Sensitive]),
        command: input.flag().then(|| command(input)),
        paths: input.several(5, path),
        sandbox: input.flag().then(|| sandbox(input)),
        urls: Vec::new(),
        mcp: None,
        session: SessionFacts {
            calls: input.number(),
            denials: input.number(),
            tainted: input.flag(),
            wrote: input.flag(),
        },
        now: Timestamp::from_second(second).unwrap_or(Timestamp::MIN),
        notes: if input.byte() % 4 == 3 { input.several(2, finding) } else { Vec::new() },
    }
}

fn command(input: &mut Input<'_>) -> CommandFacts {
    let words = |input: &mut Input<'_>| input.several(4, |input| input.word(WORDS));
    CommandFacts {
        parse: *input.pick(&[Parse::Complete, Parse::Partial, Parse::Opaque]),
        programs: words(input).into_iter().collect(),
        effects: words(input).into_iter().map(Effect).collect(),
        hosts: words(input).into_iter().collect(),
        paths: Vec::new(),
        scripts: Vec::new(),
        findings: input.several(3, finding),
    }
}

fn finding(input: &mut Input<'_>) -> Finding {
    Finding::new(input.word(WORDS), *input.pick(SEVERITIES), input.word(WORDS))
}

fn path(input: &mut Input<'_>) -> PathFact {
    let reason = |input: &mut Input<'_>| (input.byte() % 8 == 7).then(|| input.word(WORDS));
    PathFact {
        argument: input.word(WORDS),
        given: input.word(WORDS),
        access: *input.pick(&[Access::Read, Access::Write, Access::Delete, Access::Execute]),
        scope: *input.pick(SCOPES),
        lands: input.flag().then(|| input.word(WORDS)),
        protected: (input.byte() % 4 == 3).then(|| Protected {
            glob: input.word(WORDS),
            action: *input.pick(&[ProtectedAction::Ask, ProtectedAction::Deny]),
        }),
        problem: reason(input),
        unchecked: reason(input),
    }
}

fn sandbox(input: &mut Input<'_>) -> SandboxFacts {
    const TIERS: &[Tier] = &[Tier::Full, Tier::FullUser, Tier::Landlock, Tier::None];
    SandboxFacts {
        profile: input.word(WORDS),
        requires: *input.pick(TIERS),
        offers: *input.pick(TIERS),
        network: input.flag(),
        missing: if input.byte() % 4 == 3 { vec![input.word(WORDS)] } else { Vec::new() },
        ask_when_missing: input.flag(),
    }
}
