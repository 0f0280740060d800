//! From policy files to [`Policies`]: parse, re-key by `@id`, validate, lint, index. Every problem is reported at once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use cedar_policy::{Effect, Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};

use crate::call::Digest;
use crate::firewall::policy::diagnostic::{PolicyError, Problem, place};
use crate::firewall::policy::lint;
use crate::firewall::policy::request::{Action, Names};
use crate::firewall::policy::schema::{self, Typed};
use crate::firewall::policy::slice::Slices;
use crate::firewall::policy::source::{Source, Trust};
use crate::firewall::policy::vocabulary::{self, Stranger};
use crate::registry::definition::Definition;
use crate::registry::nearest;

/// The stack that loading gets. Cedar recurses over what [`Source`] lets through.
const STACK: usize = 64 << 20;
/// Findings that are no policy's begin so.
const RESERVED: &str = "policy.";
const MAX_ID: usize = 64;

/// A set of policies, validated and ready to decide.
#[derive(Debug)]
pub struct Policies {
    pub(super) actions: HashMap<String, Action>,
    slices: Slices,
    described: BTreeMap<String, Description>,
    sources: Vec<Source>,
    schema: String,
    warnings: Vec<Problem>,
    hash: Digest,
}

/// Where a policy stands and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub id: String,
    pub effect: Effect,
    pub reason: Option<String>,
    pub safer: Option<String>,
    /// The file, and the line in it, from 1.
    pub file: Arc<str>,
    pub line: usize,
    /// The policy as it is written there.
    pub text: String,
}

/// How large a set of policies is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub files: usize,
    pub policies: usize,
    /// Every action with the number of policies that a decision on it evaluates, and whether policies see its arguments.
    pub actions: Vec<(String, usize, bool)>,
}

/// What `check` found: problems of either severity, and the set's size where it could be loaded.
#[derive(Debug)]
pub struct Report {
    pub problems: Vec<Problem>,
    pub summary: Option<Summary>,
}

/// Loads the sources and says everything there is to say about them.
pub fn check(sources: Vec<Source>, tools: &[&Definition]) -> Report {
    match Policies::load(sources, tools) {
        Ok(policies) => Report { problems: policies.warnings.clone(), summary: Some(policies.summary()) },
        Err(error) => Report { problems: error.problems, summary: None },
    }
}

impl Policies {
    /// Parses, validates strictly and indexes. Nothing of a refused set is kept.
    pub fn load(sources: Vec<Source>, tools: &[&Definition]) -> Result<Policies, PolicyError> {
        on_sized_stack(|| Self::load_typed(sources, schema::of_tools(tools)?, tools))
    }

    fn load_typed(sources: Vec<Source>, typed: Typed, tools: &[&Definition]) -> Result<Policies, PolicyError> {
        let Loaded { set, described, warnings } = load(&sources, &typed.schema)?;
        let unindexable = |problem: String| Problem::of_file("the policies", problem);
        let slices = Slices::new(&set, &typed.schema).map_err(|e| unindexable(e.to_string()))?;
        let entities = typed.schema.action_entities().map_err(|e| unindexable(e.to_string()))?;
        let names = Arc::new(Names::new().map_err(unindexable)?);
        let mut actions = HashMap::new();
        for tool in tools {
            let input = typed.inputs.get(tool.name).cloned().flatten();
            let action = Action::new(tool, input, &slices, &entities, &names).map_err(unindexable)?;
            actions.insert(tool.name.to_owned(), action);
        }
        let hash = hash(&typed.text, &sources);
        Ok(Policies { actions, slices, described, sources, schema: typed.text, warnings, hash })
    }

    /// Names this set in records: a digest over the schema and every policy text.
    pub fn hash(&self) -> Digest {
        self.hash
    }

    /// The files that the set was made of.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The schema in Cedar's syntax.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// What the lint and the validator found doubtful.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// What a finding's identifier stands for.
    pub fn describe(&self, id: &str) -> Option<&Description> {
        self.described.get(id)
    }

    /// Every policy, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &Description> {
        self.described.values()
    }

    pub fn summary(&self) -> Summary {
        let mut actions: Vec<_> =
            self.actions.iter().map(|(name, a)| (name.clone(), a.slice.len(), a.typed())).collect();
        actions.sort();
        Summary { files: self.sources.len(), policies: self.described.len(), actions }
    }

    /// The index, for tools that evaluate without a call.
    pub fn slices(&self) -> &Slices {
        &self.slices
    }
}

/// Runs what recurses over a policy file's nesting on a stack that is large enough for what [`Source`] lets through.
fn on_sized_stack<T: Send>(work: impl FnOnce() -> Result<T, PolicyError> + Send) -> Result<T, PolicyError> {
    let failed = |why: String| PolicyError::from(Problem::of_file("the policies", why));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("policy-load".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, work).map_err(|e| failed(format!("no thread to load them: {e}")))?;
        thread.join().unwrap_or_else(|_| Err(failed("loading them failed; report this as a bug".to_owned())))
    })
}

/// What loading makes before anything is indexed.
pub struct Loaded {
    /// Keyed by `@id`.
    pub set: PolicySet,
    described: BTreeMap<String, Description>,
    warnings: Vec<Problem>,
}

/// Parses, re-keys, lints and validates against a schema.
pub fn load(sources: &[Source], schema: &Schema) -> Result<Loaded, PolicyError> {
    let mut loading = Loading::default();
    for source in sources {
        loading.add_source(source);
    }
    loading.validate(sources, schema);
    let (problems, warnings): (Vec<_>, Vec<_>) =
        loading.problems.into_iter().partition(|problem| problem.severity == miette::Severity::Error);
    if problems.is_empty() {
        Ok(Loaded { set: loading.set, described: loading.described, warnings })
    } else {
        Err(PolicyError { problems: problems.into_iter().chain(warnings).collect() })
    }
}

fn hash(schema: &str, sources: &[Source]) -> Digest {
    // The order of files means nothing, so it does not count. Lengths keep one text from running into the next.
    let mut texts: Vec<(Trust, &str)> = sources.iter().map(|source| (source.trust, &*source.text)).collect();
    texts.sort_by_key(|(trust, text)| (*trust == Trust::Workspace, *text));
    let mut bytes = Vec::new();
    for (trust, text) in [(Trust::Operator, schema)].into_iter().chain(texts) {
        bytes.push(u8::from(trust == Trust::Workspace));
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Digest::of(bytes)
}

/// The annotations that are shown to people and agents.
const SHOWN: &[&str] = &["id", "reason", "safer"];

#[derive(Default)]
struct Loading {
    set: PolicySet,
    described: BTreeMap<String, Description>,
    /// The index of the source of each policy.
    origin: HashMap<String, usize>,
    sources_seen: usize,
    problems: Vec<Problem>,
}

impl Loading {
    fn add_source(&mut self, source: &Source) {
        let index = self.sources_seen;
        self.sources_seen += 1;
        if let Some(problem) = source.excess() {
            self.problems.push(problem);
            return;
        }
        let parsed = match source.text.parse::<PolicySet>() {
            Ok(parsed) => parsed,
            Err(errors) => {
                self.problems.extend(errors.iter().map(|error| Problem::from_cedar(source, error)));
                return;
            }
        };
        for template in parsed.templates() {
            let message = format!("`{}` is a template; only complete policies can be used here", template.id());
            self.problems.push(Problem::at(source, span(source, template.as_ref().loc()), message));
        }
        // In the order of the file, so that the second of two equal identifiers is the duplicate.
        let mut policies: Vec<&Policy> = parsed.policies().collect();
        policies.sort_by_key(|policy| span(source, policy.as_ref().loc()).start);
        for policy in policies {
            self.add_policy(source, index, policy);
        }
    }

    fn add_policy(&mut self, source: &Source, index: usize, policy: &Policy) {
        let whole = span(source, policy.as_ref().loc());
        let Some(id) = policy.annotation("id").filter(|id| !id.trim().is_empty()) else {
            let problem = Problem::at(source, whole, "this policy has no `@id`");
            self.problems
                .push(problem.help("write `@id(\"a.stable-name\")` before it: verdicts and records name it by that"));
            return;
        };
        if let Some(first) = self.described.get(id) {
            let message = format!("the identifier `{id}` is already taken, at {}:{}", first.file, first.line);
            self.problems.push(Problem::at(source, whole, message).help("give each policy its own `@id`"));
            return;
        }
        if let Some((message, help)) = bad_words(id, policy) {
            self.problems.push(Problem::at(source, whole.clone(), message).help(help));
        }
        for (key, _) in policy.annotations().filter(|(key, _)| !SHOWN.contains(key)) {
            let Some(meant) = nearest(key, SHOWN.iter().copied()) else { continue };
            let message = format!("`@{key}` is shown nowhere: did you mean `@{meant}`?");
            self.problems.push(Problem::at(source, whole.clone(), message).warning());
        }
        self.lint(source, &whole, policy);
        self.described.insert(id.to_owned(), describe(source, &whole, id, policy));
        self.origin.insert(id.to_owned(), index);
        if let Err(error) = self.set.add(policy.new_id(PolicyId::new(id))) {
            self.problems.push(Problem::from_cedar(source, &error));
        }
    }

    fn lint(&mut self, source: &Source, whole: &Range<usize>, policy: &Policy) {
        let form = match policy.to_json() {
            Ok(form) => form,
            Err(error) => {
                self.problems.push(Problem::from_cedar(source, &error));
                return;
            }
        };
        for complaint in lint::complaints(policy, &form, source.trust) {
            let at = find(source, whole, policy, complaint.word);
            let problem = Problem::at(source, at, complaint.message).help(complaint.help);
            self.problems.push(if complaint.warning { problem.warning() } else { problem });
        }
        for name in vocabulary::unreachable(&form) {
            let at = find(source, whole, policy, &format!("\"{name}\""));
            let message = format!("no path is named `{name}` here, so this never matches");
            let help = "paths begin at the workspace's root, without a slash or a dot before or after: \"src/secrets\"";
            self.problems.push(Problem::at(source, at, message).help(help).warning());
        }
        for Stranger { attribute, word } in vocabulary::strangers(&form) {
            let at = find(source, whole, policy, &format!("\"{word}\""));
            let message = format!("`{attribute}` is never \"{word}\", so this never matches");
            self.problems.push(Problem::at(source, at, message).help("the words there are stand in the policy schema"));
        }
    }

    /// Strict validation, with Cedar's own words.
    fn validate(&mut self, sources: &[Source], schema: &Schema) {
        let result = Validator::new(schema.clone()).validate(&self.set, ValidationMode::Strict);
        let source_of = |id: &PolicyId| {
            let index = self.origin.get::<str>(id.as_ref())?;
            sources.get(*index)
        };
        let problem = |id: &PolicyId, cedar: &dyn miette::Diagnostic| match source_of(id) {
            Some(source) => {
                let mut problem = Problem::from_cedar(source, cedar);
                // Some of Cedar's warnings say only which policy they are about.
                let policy = self.described.get::<str>(id.as_ref());
                problem.place = problem.place.or_else(|| policy.map(|policy| (policy.line, 1)));
                problem
            }
            None => Problem::of_file("the policies", cedar.to_string()),
        };
        let errors = result.validation_errors().map(|error| problem(error.policy_id(), error));
        let warnings = result.validation_warnings().map(|warning| problem(warning.policy_id(), warning).warning());
        let found: Vec<_> = errors.chain(warnings).collect();
        self.problems.extend(found);
    }
}

/// What is wrong with the words that a policy puts before people and into records, and what to do.
fn bad_words(id: &str, policy: &Policy) -> Option<(String, &'static str)> {
    if let Some((key, _)) = policy.annotations().find(|(_, text)| text.chars().any(char::is_control)) {
        let message = format!("`@{key}` holds a control character, which a terminal could obey");
        return Some((message, "write it as plain text on one line"));
    }
    if id.starts_with(RESERVED) {
        let message = format!("the identifier `{id}` begins with `{RESERVED}`, as the gateway's own findings do");
        return Some((message, "give it another beginning"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let message = (id.len() > MAX_ID || !id.chars().all(plain)).then(|| format!("`{id}` is no identifier"))?;
    Some((message, "use up to 64 letters, digits, `.`, `_` and `-`"))
}

/// The place of a word in a policy, annotations left out.
fn find(source: &Source, whole: &Range<usize>, policy: &Policy, word: &str) -> Range<usize> {
    let in_policy = |from: usize| source.text.get(from..whole.end);
    let start = if word == "permit" {
        let heads = in_policy(whole.start).into_iter().flat_map(|text| text.match_indices(word));
        let opens = |at: usize| in_policy(at + word.len()).is_some_and(|rest| rest.trim_start().starts_with('('));
        heads.map(|(at, _)| whole.start + at).find(|at| opens(*at))
    } else {
        let parts = policy.as_ref().non_scope_constraints().into_iter().flat_map(|body| body.subexpressions());
        let body = parts.filter_map(|part| part.source_loc()).map(|loc| loc.span.offset()).min();
        let from = body.unwrap_or(whole.start);
        in_policy(from).and_then(|text| text.find(word)).map(|at| from + at)
    };
    start.map_or(whole.clone(), |start| start..start + word.len())
}

fn describe(source: &Source, whole: &Range<usize>, id: &str, policy: &Policy) -> Description {
    Description {
        id: id.to_owned(),
        effect: policy.effect(),
        reason: policy.annotation("reason").map(str::to_owned),
        safer: policy.annotation("safer").map(str::to_owned),
        file: Arc::clone(&source.name),
        line: place(&source.text, whole.start).0,
        text: source.text.get(whole.clone()).unwrap_or_default().to_owned(),
    }
}

/// Where a policy stands in its file; the whole file where Cedar does not say.
fn span(source: &Source, loc: Option<&cedar_policy_core::parser::Loc>) -> Range<usize> {
    loc.map_or(0..source.text.len(), |loc| loc.span.offset()..loc.span.offset() + loc.span.len())
}
