//! A call and its facts as Cedar sees them: principal, action, resource, context, and the entities around them.
//!
//! Values are built in Cedar's evaluated form, not through JSON or the schema's checks: both cost more than the decision
//! itself. That they have the schema's types is held by a test that validates them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use cedar_policy::{Effect, Entities, EntityUid, Request, RestrictedExpression};
use cedar_policy_core::ast::{
    Context, Eid, Entity, EntityType, EntityUID, EntityUIDEntry, Literal, PartialValue, Request as CoreRequest, Value,
    ValueKind,
};
use cedar_policy_core::entities::{Entities as CoreEntities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::evaluator::RestrictedEvaluator;
use cedar_policy_core::extensions::Extensions;

use crate::call::{Call, Principal};
use crate::facts::command::Parse;
use crate::facts::path::{Access, PathFact};
use crate::facts::{Facts, Scope};
use crate::firewall::policy::schema::{names_paths, reads_trees};
use crate::firewall::policy::shape::{Record, Residue};
use crate::firewall::policy::slice::{Slice, Slices};
use crate::registry::definition::Definition;
use crate::verdict::Severity;

/// The argument name that marks a path as one of a command.
const OF_COMMAND: &str = "command";

/// What is the same for every call of one tool.
#[derive(Debug)]
pub(super) struct Action {
    pub slice: Slice,
    uid: EntityUID,
    /// The action with its groups.
    entities: CoreEntities,
    input: Option<Record>,
    /// Whether the resource is a file that the call names.
    files: bool,
    /// Whether it is a directory that is read with everything below.
    trees: bool,
    /// Whether some forbid looks at the resource, so that what a call touches besides has to be judged.
    pub guarded: bool,
    /// The files and directories that such forbids name.
    places: Vec<String>,
    names: Arc<Names>,
}

/// The entity types, parsed once.
#[derive(Debug)]
pub(super) struct Names {
    agent: EntityType,
    sub_agent: EntityType,
    team: EntityType,
    session: EntityType,
    workspace: EntityType,
    directory: EntityType,
    file: EntityType,
}

/// A call, ready to be put to the policies at any level of approval.
pub(super) struct Question {
    principal: EntityUID,
    action: EntityUID,
    /// Each resource with everything that is known around it.
    pub resources: Vec<(EntityUID, Entities)>,
    /// What the call touches besides: files that its command names, and places below a directory that it reads, or deletes,
    /// as a whole. Only forbids speak of these; whether the call is permitted is a matter of its resources.
    pub touched: Vec<(EntityUID, Entities)>,
    context: Vec<(&'static str, Value)>,
}

impl Names {
    pub fn new() -> Result<Self, String> {
        Ok(Names {
            agent: entity_type("Agent")?,
            sub_agent: entity_type("SubAgent")?,
            team: entity_type("Team")?,
            session: entity_type("Session")?,
            workspace: entity_type("Workspace")?,
            directory: entity_type("Directory")?,
            file: entity_type("File")?,
        })
    }
}

fn entity_type(name: &str) -> Result<EntityType, String> {
    name.parse().map_err(|e| format!("`{name}` is no entity type: {e}"))
}

fn uid(kind: &EntityType, id: &str) -> EntityUID {
    EntityUID::from_components(kind.clone(), Eid::new(id), None)
}

fn entity<const N: usize>(uid: EntityUID, attributes: [(&str, Value); N], parents: HashSet<EntityUID>) -> Entity {
    let attributes = attributes.map(|(name, value)| (name.into(), PartialValue::Value(value)));
    Entity::new_with_attr_partial_value(uid, attributes, HashSet::new(), parents, [])
}

impl Action {
    pub fn new(
        tool: &Definition,
        input: Option<Record>,
        slices: &Slices,
        actions: &Entities,
        names: &Arc<Names>,
    ) -> Result<Self, String> {
        let uid = uid(&entity_type("Action")?, tool.name);
        let public = EntityUid::from(uid.clone());
        let own = actions.get(&public).map(|entity| entity.as_ref().clone());
        let entities = store(CoreEntities::new(), own)?;
        let slice = slices.of(&public);
        let forbids = slice.iter().filter(|rule| rule.effect == Effect::Forbid && rule.placed);
        let places: BTreeSet<String> = forbids.clone().flat_map(|rule| rule.places.iter().cloned()).collect();
        Ok(Action {
            guarded: forbids.count() > 0,
            places: places.into_iter().collect(),
            slice,
            uid,
            entities,
            input,
            files: names_paths(tool),
            trees: reads_trees(tool),
            names: Arc::clone(names),
        })
    }

    /// Whether policies see the tool's arguments.
    pub fn typed(&self) -> bool {
        self.input.is_some()
    }

    /// Turns a call into a question. The residue says what of its arguments policies do not see.
    pub fn question(&self, call: &Call, facts: &Facts) -> Result<(Question, Residue), String> {
        let mut residue = Residue::default();
        let mut context = context(call, facts)?;
        if let Some(input) = &self.input {
            context.push(("input", input.value(&call.arguments, "", &mut residue)));
        }
        let principal = principal(&self.names, &call.principal);
        let around = store(self.entities.clone(), [principal.clone()])?;
        let with = |resource: Entity| -> Result<(EntityUID, Entities), String> {
            let uid = resource.uid().clone();
            Ok((uid, store(around.clone(), [resource])?.into()))
        };
        let resources = self.resources(facts).into_iter().map(with).collect::<Result<_, _>>()?;
        let touched = self.touched(facts).into_iter().map(with).collect::<Result<_, _>>()?;
        let principal = principal.uid().clone();
        let question = Question { principal, action: self.uid.clone(), resources, touched, context };
        Ok((question, residue))
    }

    /// What is the same for every call of the tool that this principal makes with an approval of this level. The resource
    /// and the rest of the context are placeholders.
    pub fn outline(&self, who: &Principal, origin: &str, level: u8) -> Result<(Request, Entities), String> {
        let principal = principal(&self.names, who);
        let place = entity(workspace(&self.names), [], HashSet::new());
        let place_uid = place.uid().clone();
        let uid = principal.uid().clone();
        let around = store(self.entities.clone(), [principal, place])?;
        let context = vec![("origin", Value::from(origin))];
        let question =
            Question { principal: uid, action: self.uid.clone(), resources: Vec::new(), touched: Vec::new(), context };
        Ok((question.at(level, &place_uid), around.into()))
    }

    /// What the call is about: each file that it names, or the workspace where it names none.
    fn resources(&self, facts: &Facts) -> Vec<Entity> {
        let named = facts.paths.iter().filter(|path| self.files && path.argument != OF_COMMAND);
        let mut files: Vec<Entity> = named.map(|path| file(&self.names, path)).collect();
        files.dedup_by(|a, b| a.deep_eq(b));
        if files.is_empty() {
            files.push(entity(workspace(&self.names), [], HashSet::new()));
        }
        files
    }
}

impl Action {
    /// What the call touches besides its resources, where some forbid could object.
    fn touched(&self, facts: &Facts) -> Vec<Entity> {
        if !self.guarded {
            return Vec::new();
        }
        let mut files: Vec<Entity> = Vec::new();
        for path in &facts.paths {
            let of_command = path.argument == OF_COMMAND;
            if of_command {
                files.push(file(&self.names, path));
            }
            let whole = if of_command { path.access == Access::Delete } else { self.trees };
            if let Some(top) = path.lands.as_deref().and_then(inside).filter(|_| whole) {
                let below =
                    self.places.iter().filter(|place| top == "." || place.strip_prefix(&top).is_some_and(is_below));
                files.extend(below.filter(|place| *place != "." && inside(place).is_some()).map(|place| {
                    let scope = path.scope;
                    let fact = PathFact { lands: Some(place.clone()), scope, protected: None, ..path.clone() };
                    file(&self.names, &fact)
                }));
            }
        }
        files.sort_by(|a, b| a.uid().cmp(b.uid()));
        files.dedup_by(|a, b| a.deep_eq(b));
        files
    }
}

/// Whether the rest of a path, after a directory's name, is something in that directory.
fn is_below(rest: &str) -> bool {
    rest.starts_with('/')
}

impl Question {
    /// The request with an approval of this level.
    pub fn at(&self, level: u8, resource: &EntityUID) -> Request {
        let approval = Value::record([("level", Value::from(i64::from(level)))], None);
        let pairs = self.context.iter().cloned().chain([("approval", approval)]);
        let context = match Value::record(pairs, None).value {
            ValueKind::Record(members) => Some(Context::Value(members)),
            // Not reached. Without a context every policy that reads it errs, which denies.
            _ => None,
        };
        let known = |uid: &EntityUID| EntityUIDEntry::known(uid.clone(), None);
        CoreRequest::new_unchecked(known(&self.principal), known(&self.action), known(resource), context).into()
    }
}

/// Adds entities whose ancestors are complete already.
fn store(entities: CoreEntities, more: impl IntoIterator<Item = Entity>) -> Result<CoreEntities, String> {
    entities
        .add_entities(
            more.into_iter().map(Arc::new),
            None::<&NoEntitiesSchema>,
            TCComputation::AssumeAlreadyComputed,
            Extensions::all_available(),
        )
        .map_err(|e| e.to_string())
}

fn principal(names: &Names, who: &Principal) -> Entity {
    let attributes = [("mode", Value::from(who.mode.as_str())), ("unattended", Value::from(who.unattended))];
    let mut parents: HashSet<EntityUID> = who.teams.iter().map(|team| uid(&names.team, team)).collect();
    parents.insert(uid(&names.session, &who.session));
    let agent = uid(&names.agent, &who.agent);
    match &who.sub_agent {
        None => entity(agent, attributes, parents),
        Some(name) => {
            parents.insert(agent);
            entity(uid(&names.sub_agent, name), attributes, parents)
        }
    }
}

fn workspace(names: &Names) -> EntityUID {
    uid(&names.workspace, "workspace")
}

/// A path in every directory above it and in the one of its own name, so that a policy on a directory covers the
/// directory itself. Places outside have one name for each scope.
fn file(names: &Names, path: &PathFact) -> Entity {
    let attributes =
        [("scope", Value::from(path.scope.as_str())), ("protected", Value::from(path.protected.is_some()))];
    let directory = |name: &str| uid(&names.directory, name);
    let Some(inside) = path.lands.as_deref().and_then(inside) else {
        let place = format!("/{}", path.scope.as_str());
        return entity(uid(&names.file, &place), attributes, HashSet::from([directory("/")]));
    };
    let mut parents = HashSet::from([directory("."), directory(&inside)]);
    parents.extend(inside.match_indices('/').filter_map(|(slash, _)| inside.get(..slash)).map(directory));
    if path.scope == Scope::Workspace {
        parents.insert(workspace(names));
    }
    entity(uid(&names.file, &inside), attributes, parents)
}

/// A path from the workspace root in its one spelling, or `None` where it would leave the root.
fn inside(lands: &str) -> Option<String> {
    let parts: Vec<&str> = lands.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if lands.starts_with('/') || parts.contains(&"..") {
        return None;
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

fn set<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    Value::set_of_lits(words.into_iter().map(Literal::from), None)
}

/// Everything but the approval and the input.
fn context(call: &Call, facts: &Facts) -> Result<Vec<(&'static str, Value)>, String> {
    let session = Value::record(
        [
            ("calls", Value::from(long(facts.session.calls))),
            ("denials", Value::from(long(facts.session.denials))),
            ("tainted", Value::from(facts.session.tainted)),
            ("wrote", Value::from(facts.session.wrote)),
        ],
        None,
    );
    Ok(vec![
        ("command", command(facts)),
        ("paths", paths(facts)),
        ("session", session),
        ("sandbox", sandbox(facts)),
        ("origin", Value::from(call.origin.as_str())),
        ("now", now(facts)?),
    ])
}

/// A count that policies compare: what is beyond 64 bits is still more than any limit.
fn long(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn scopes<'a>(paths: impl IntoIterator<Item = &'a PathFact>) -> Value {
    let scopes: BTreeSet<Scope> = paths.into_iter().map(|path| path.scope).collect();
    set(scopes.into_iter().map(Scope::as_str))
}

fn command(facts: &Facts) -> Value {
    let used = facts.paths.iter().filter(|path| path.argument == OF_COMMAND);
    let Some(command) = &facts.command else {
        let none = Value::empty_set(None);
        let sets = ["programs", "effects", "hosts", "scopes", "findings"].map(|name| (name, none.clone()));
        let words = ["worst", "parse"].map(|name| (name, Value::from("none")));
        return Value::record(sets.into_iter().chain(words), None);
    };
    let worst = command.findings.iter().map(|finding| finding.severity).max();
    let parse = match command.parse {
        Parse::Complete => "complete",
        Parse::Partial => "partial",
        Parse::Opaque => "opaque",
    };
    Value::record(
        [
            ("programs", set(command.programs.iter().map(String::as_str))),
            ("effects", set(command.effects.iter().map(|effect| effect.0.as_str()))),
            ("hosts", set(command.hosts.iter().map(String::as_str))),
            ("scopes", scopes(used)),
            ("findings", set(command.findings.iter().map(|finding| finding.id.as_str()))),
            ("worst", Value::from(worst.map_or("none", severity))),
            ("parse", Value::from(parse)),
        ],
        None,
    )
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warn => "warn",
        Severity::Review => "review",
        Severity::Deny => "deny",
        Severity::Fatal => "fatal",
    }
}

fn paths(facts: &Facts) -> Value {
    Value::record(
        [
            ("scopes", scopes(&facts.paths)),
            ("changed", scopes(facts.paths.iter().filter(|path| path.access.changes()))),
            ("protected", Value::from(facts.paths.iter().any(|path| path.protected.is_some()))),
            ("unusable", Value::from(facts.paths.iter().any(|path| path.problem.is_some()))),
        ],
        None,
    )
}

fn sandbox(facts: &Facts) -> Value {
    let (profile, tier, network) = match &facts.sandbox {
        Some(sandbox) => (sandbox.profile.as_str(), sandbox.offers.as_str(), sandbox.network),
        None => ("in-process", "in-process", false),
    };
    Value::record(
        [("profile", Value::from(profile)), ("tier", Value::from(tier)), ("network", Value::from(network))],
        None,
    )
}

/// Milliseconds are as fine as Cedar's time gets.
fn now(facts: &Facts) -> Result<Value, String> {
    let text = facts.now.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    let time = RestrictedExpression::new_datetime(&text);
    let evaluator = RestrictedEvaluator::new(Extensions::all_available());
    let value = evaluator.interpret(time.as_ref().as_borrowed());
    value.map_err(|e| format!("the time {text} has no form in Cedar: {e}"))
}
