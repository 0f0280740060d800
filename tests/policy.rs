//! Holds loading, re-keying, slicing and evaluation against Cedar's own corpus (cedar-integration-tests): each decision
//! must be the recorded one, and the same as that of Cedar's authorizer over the whole set, with the same reasons and the
//! same errors. `PORTCULLIS_CORPUS_STEP=10` takes every tenth case.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, Policy, PolicyId, PolicySet, Request,
    Schema, ValidationMode, Validator,
};
use portcullis::firewall::policy::slice::{Slices, evaluate};
use portcullis::firewall::policy::{Source, Trust, load};
use serde_json::{Value, json};

fn shared(name: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("PORTCULLIS_SHARED") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
    };
    Some(root.join("cases").join(name)).filter(|path| path.exists())
}

type Files = BTreeMap<String, String>;

fn unpack(archive: &PathBuf) -> Files {
    let file = std::fs::File::open(archive).expect("the archive opens");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = Files::new();
    for entry in archive.entries().expect("the archive has entries") {
        let mut entry = entry.expect("an entry reads");
        let name = entry.path().expect("an entry has a name").to_string_lossy().into_owned();
        let mut text = String::new();
        if entry.header().entry_type().is_file() && entry.read_to_string(&mut text).is_ok() {
            files.insert(name, text);
        }
    }
    files
}

#[derive(Default)]
struct Count {
    requests: AtomicUsize,
    allowed: AtomicUsize,
    erring: AtomicUsize,
    loaded: AtomicUsize,
    refused: AtomicUsize,
    marked_otherwise: AtomicUsize,
}

#[test]
fn sliced_decisions_are_cedars_decisions() {
    let Some(archive) = shared("cedar-integration-tests.tgz") else {
        eprintln!("SKIPPED: 7809 cases with 62472 requests, because the shared material is absent");
        return;
    };
    let step = std::env::var("PORTCULLIS_CORPUS_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    let files = unpack(&archive);
    let is_case = |name: &&String| name.ends_with(".json") && !name.ends_with(".entities.json");
    let cases: Vec<&String> = files.keys().filter(is_case).step_by(step).collect();
    assert!(!cases.is_empty(), "the archive holds no case");
    let (count, next) = (Count::default(), AtomicUsize::new(0));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut wrong = Vec::new();
            while let Some(name) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                wrong.extend(run_case(&files, name, &count).into_iter().map(|why| format!("{name}: {why}")));
            }
            wrong
        };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, work).expect("a thread starts")
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread ends")).collect()
    });
    let number = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "{} cases, {} requests ({} allowed, {} with errors); {} sets loaded strictly, {} refused; \
         Cedar's validator and the corpus differ on {}; {} wrong",
        cases.len(),
        number(&count.requests),
        number(&count.allowed),
        number(&count.erring),
        number(&count.loaded),
        number(&count.refused),
        number(&count.marked_otherwise),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} differ, first: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
}

fn run_case(files: &Files, name: &str, count: &Count) -> Vec<String> {
    let case: Value = serde_json::from_str(&files[name]).expect("a case is JSON");
    let file = |key: &str| &files[case[key].as_str().expect("a case names its files")];
    let (schema, _warnings) = Schema::from_cedarschema_str(file("schema")).expect("the case's schema parses");
    let whole: PolicySet = file("policies").parse().expect("the case's policies parse");
    let entities: Value = serde_json::from_str(file("entities")).expect("entities are JSON");
    let entities = Entities::from_json_value(entities, Some(&schema)).expect("the case's entities fit its schema");
    let mut wrong = Vec::new();

    // Through the loader, which re-keys by `@id` and refuses what Cedar's validator refuses. (The corpus' own mark is
    // stricter in some cases than the validator that comes with it: those are counted.)
    let valid = Validator::new(schema.clone()).validate(&whole, ValidationMode::Strict).validation_passed();
    if valid != (case["shouldValidate"] == json!(true)) {
        count.marked_otherwise.fetch_add(1, Ordering::Relaxed);
    }
    let set = match load(&[source(&whole)], &schema) {
        Ok(loaded) => {
            count.loaded.fetch_add(1, Ordering::Relaxed);
            if !valid {
                wrong.push("loaded, though it does not validate".to_owned());
            }
            loaded.set
        }
        Err(error) => {
            count.refused.fetch_add(1, Ordering::Relaxed);
            if valid {
                wrong.push(format!("refused, though it validates: {error}"));
            }
            rekeyed(&whole)
        }
    };
    let slices = Slices::new(&set, &schema).expect("every policy has a form");
    for request in case["requests"].as_array().expect("a case has requests") {
        count.requests.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = run_request(request, &slices, &whole, &entities, count) {
            wrong.push(format!("{}: {why}", request["description"]));
        }
    }
    wrong
}

/// The set as one file in which each policy carries its identifier.
fn source(set: &PolicySet) -> Source {
    let mut text = String::new();
    for policy in set.policies() {
        if policy.annotations().next().is_none() {
            text += &format!("@id(\"{}\")\n{policy}\n", policy.id());
        } else {
            text += &annotated(policy).to_cedar().expect("a static policy has a text");
        }
    }
    Source::new("case.cedar", text, Trust::Operator)
}

fn annotated(policy: &Policy) -> Policy {
    let mut form = policy.to_json().expect("a policy has a form");
    form["annotations"] = json!({ "id": policy.id().to_string() });
    Policy::from_json(Some(policy.id().clone()), form).expect("the form reads back")
}

fn rekeyed(set: &PolicySet) -> PolicySet {
    let rename = |policy: &Policy| policy.new_id(PolicyId::new(policy.id()));
    PolicySet::from_policies(set.policies().map(rename)).expect("identifiers stay different")
}

fn uid(value: &Value) -> EntityUid {
    let kind: EntityTypeName = value["type"].as_str().expect("a type").parse().expect("a type parses");
    EntityUid::from_type_name_and_id(kind, EntityId::new(value["id"].as_str().expect("an id")))
}

fn words(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|word| word.as_str().expect("a word").to_owned()).collect()
}

fn run_request(
    case: &Value,
    slices: &Slices,
    whole: &PolicySet,
    entities: &Entities,
    count: &Count,
) -> Result<(), String> {
    let action = uid(&case["action"]);
    let context = Context::from_json_value(case["context"].clone(), None).map_err(|e| e.to_string())?;
    let request = Request::new(uid(&case["principal"]), action.clone(), uid(&case["resource"]), context, None)
        .map_err(|e| e.to_string())?;
    let slice = slices.of(&action);
    let ours = evaluate(&slice, |_| true, &request, entities);
    let decision = if ours.allows() { Decision::Allow } else { Decision::Deny };
    let reasons = if ours.allows() { &ours.permits } else { &ours.forbids };
    let reasons: BTreeSet<String> = reasons.iter().map(|rule| rule.id.to_string()).collect();
    let errors: BTreeSet<String> = ours.errors.iter().map(|(rule, _)| rule.id.to_string()).collect();
    count.allowed.fetch_add(usize::from(ours.allows()), Ordering::Relaxed);
    count.erring.fetch_add(usize::from(!errors.is_empty()), Ordering::Relaxed);

    let cedar = Authorizer::new().is_authorized(&request, whole, entities);
    let cedars_reasons: BTreeSet<String> = cedar.diagnostics().reason().map(ToString::to_string).collect();
    let cedars_errors = cedar.diagnostics().errors().count();
    let word = if decision == Decision::Allow { "allow" } else { "deny" };
    for (right, what) in [
        (decision == cedar.decision(), "the decision is not that of Cedar's authorizer"),
        (reasons == cedars_reasons, "the reasons are not those of Cedar's authorizer"),
        (errors.len() == cedars_errors, "the errors are not those of Cedar's authorizer"),
        (case["decision"] == word, "the decision is not the recorded one"),
        (reasons == words(&case["reason"]), "the reasons are not the recorded ones"),
        (errors == words(&case["errors"]), "the errors are not the recorded ones"),
    ] {
        if !right {
            return Err(format!("{what}: {word}, {reasons:?}, errors {errors:?}"));
        }
    }
    Ok(())
}
