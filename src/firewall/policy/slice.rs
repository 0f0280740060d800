//! Policies ready to be evaluated, and the index that says which of them an action needs.
//!
//! A decision here is Cedar's: allowed where some permit is satisfied and no forbid is. What differs is when the work
//! is done: the scope's action is settled at load, conditions are built once instead of once a decision, and policies
//! that do not ask for an approval are evaluated once instead of once a level. `tests/policy.rs` holds the result against
//! Cedar's own authorizer and its corpus.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cedar_policy::{
    ActionConstraint, Effect, Entities, EntityUid, Policy, PolicySet, PolicyToJsonError, Request, Schema,
};
use cedar_policy_core::ast::{Expr, ExprKind, Literal, PrincipalOrResourceConstraint, ValueKind, Var};
use cedar_policy_core::evaluator::Evaluator;
use cedar_policy_core::extensions::Extensions;

use crate::firewall::policy::guard::{Truth, View};

/// One policy, compiled.
#[derive(Debug)]
pub struct Rule {
    pub id: Arc<str>,
    pub effect: Effect,
    /// Why it exists, for the agent and the auditor.
    pub reason: Option<String>,
    /// What to do instead.
    pub safer: Option<String>,
    /// Whether it looks at the approval, so that a level can change it.
    pub(super) staged: bool,
    /// Whether it looks at the resource, so that another one can change it.
    pub(super) placed: bool,
    /// The files and directories that it names.
    pub(super) places: Vec<String>,
    /// Everything but the action in its scope, and without source locations, which cost at every step.
    pub(super) condition: Expr,
}

/// An index of policies by the action in their scope.
#[derive(Debug, Default)]
pub struct Slices {
    by_action: HashMap<EntityUid, Slice>,
    /// For an action that the schema does not know.
    unbound: Vec<Unplaced>,
}

/// The policies that can apply to an action.
pub type Slice = Vec<Arc<Rule>>;

#[derive(Debug)]
struct Unplaced {
    rule: Arc<Rule>,
    action: ActionConstraint,
}

/// Which policies were satisfied, and which could not be evaluated.
#[derive(Debug, Default)]
pub struct Outcome<'a> {
    pub permits: Vec<&'a Rule>,
    pub forbids: Vec<&'a Rule>,
    pub errors: Vec<(&'a Rule, String)>,
}

impl Slices {
    /// Indexes static policies. Templates are nothing until they are linked, so they are left out.
    pub fn new(policies: &PolicySet, schema: &Schema) -> Result<Self, Box<PolicyToJsonError>> {
        let mut slices = Slices::default();
        for policy in policies.policies() {
            let rule = Arc::new(Rule::new(policy)?);
            slices.unbound.push(Unplaced { rule, action: policy.action_constraint() });
        }
        // By identifier, so that the order of files changes nothing.
        slices.unbound.sort_by(|a, b| a.rule.id.cmp(&b.rule.id));
        let above = ancestors(schema);
        for action in schema.actions() {
            let none = HashSet::new();
            let slice = slices.select(action, above.get(action).unwrap_or(&none));
            slices.by_action.insert(action.clone(), slice);
        }
        Ok(slices)
    }

    /// The policies that can apply to an action.
    pub fn of(&self, action: &EntityUid) -> Slice {
        match self.by_action.get(action) {
            Some(slice) => slice.clone(),
            None => self.select(action, &HashSet::new()),
        }
    }

    fn select(&self, action: &EntityUid, above: &HashSet<EntityUid>) -> Slice {
        let within = |group: &EntityUid| group == action || above.contains(group);
        let applies = |constraint: &ActionConstraint| match constraint {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(only) => only == action,
            ActionConstraint::In(groups) => groups.iter().any(within),
        };
        let chosen = self.unbound.iter().filter(|unplaced| applies(&unplaced.action));
        chosen.map(|unplaced| Arc::clone(&unplaced.rule)).collect()
    }
}

/// The groups above each action, near and far.
fn ancestors(schema: &Schema) -> HashMap<EntityUid, HashSet<EntityUid>> {
    // The schema was accepted, so its action hierarchy has no cycle, which is the only error here.
    let Ok(entities) = schema.action_entities() else { return HashMap::new() };
    let above = |action: &EntityUid| entities.ancestors(action).into_iter().flatten().cloned().collect();
    schema.actions().map(|action| (action.clone(), above(action))).collect()
}

/// Evaluates those of a slice's policies that `wanted` picks.
pub fn evaluate<'a>(
    slice: &'a [Arc<Rule>],
    wanted: impl Fn(&Rule) -> bool,
    request: &Request,
    entities: &Entities,
) -> Outcome<'a> {
    let evaluator = Evaluator::new(request.as_ref().clone(), entities.as_ref(), Extensions::all_available());
    let view = View::new(request.as_ref(), entities.as_ref());
    let no_slots = HashMap::new();
    let mut outcome = Outcome::default();
    for rule in slice.iter().filter(|rule| wanted(rule)) {
        if view.look(&rule.condition) == Truth::False {
            continue;
        }
        match evaluator.interpret(&rule.condition, &no_slots) {
            Ok(value) => match value.value_kind() {
                ValueKind::Lit(Literal::Bool(true)) => outcome.satisfied(rule),
                ValueKind::Lit(Literal::Bool(false)) => {}
                other => outcome.errors.push((rule, format!("its condition is no boolean but {other}"))),
            },
            Err(error) => outcome.errors.push((rule, error.to_string())),
        }
    }
    outcome
}

impl Outcome<'_> {
    /// Cedar's decision, which skips what it could not evaluate. A caller that must be safe looks at the errors first.
    pub fn allows(&self) -> bool {
        !self.permits.is_empty() && self.forbids.is_empty()
    }
}

impl<'a> Outcome<'a> {
    fn satisfied(&mut self, rule: &'a Rule) {
        match rule.effect {
            Effect::Permit => self.permits.push(rule),
            Effect::Forbid => self.forbids.push(rule),
        }
    }
}

impl Rule {
    fn new(policy: &Policy) -> Result<Self, Box<PolicyToJsonError>> {
        let id: &str = policy.id().as_ref();
        let bare = Policy::from_json(Some(policy.id().clone()), policy.to_json().map_err(Box::new)?);
        // A policy that Cedar wrote it reads again; should it ever not, the located original means the same.
        let condition = condition(bare.as_ref().unwrap_or(policy));
        let placed = looks_at_resource(&condition);
        Ok(Rule {
            id: id.into(),
            effect: policy.effect(),
            reason: policy.annotation("reason").map(str::to_owned),
            safer: policy.annotation("safer").map(str::to_owned),
            staged: mentions_approval(&condition),
            placed,
            places: places(&condition),
            condition,
        })
    }
}

/// What has to hold besides the action. Parts that are always true are left out.
fn condition(policy: &Policy) -> Expr {
    let policy = policy.as_ref();
    let bound = |constraint: &PrincipalOrResourceConstraint| !matches!(constraint, PrincipalOrResourceConstraint::Any);
    let principal = policy.principal_constraint();
    let resource = policy.resource_constraint();
    let principal = bound(principal.as_inner()).then(|| principal.as_expr());
    let resource = bound(resource.as_inner()).then(|| resource.as_expr());
    let body = policy.non_scope_constraints().cloned();
    let parts = [principal, resource, body].into_iter().flatten();
    // A lone body must still be a boolean; `evaluate` looks.
    parts.rev().reduce(|rest, first| Expr::and(first, rest)).unwrap_or_else(|| Expr::val(true))
}

fn looks_at_resource(condition: &Expr) -> bool {
    condition.subexpressions().any(|part| matches!(part.expr_kind(), ExprKind::Var(Var::Resource)))
}

/// The files and directories that a condition names.
fn places(condition: &Expr) -> Vec<String> {
    let named = condition.subexpressions().filter_map(|part| match part.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(uid),
        _ => None,
    });
    let places = named.filter(|uid| matches!(uid.entity_type().to_string().as_str(), "File" | "Directory"));
    places.map(|uid| AsRef::<str>::as_ref(uid.eid()).to_owned()).collect()
}

/// Whether any part reads `context.approval`, or the context as a whole.
fn mentions_approval(condition: &Expr) -> bool {
    let is_context = |expr: &Expr| matches!(expr.expr_kind(), ExprKind::Var(Var::Context));
    let mut whole = 0_usize;
    let mut members = 0_usize;
    for part in condition.subexpressions() {
        match part.expr_kind() {
            ExprKind::Var(Var::Context) => whole += 1,
            ExprKind::GetAttr { expr, attr } if is_context(expr) && attr != "approval" => members += 1,
            ExprKind::HasAttr { expr, attr } if is_context(expr) && attr != "approval" => members += 1,
            _ => {}
        }
    }
    // Each use of the context that is not a member other than the approval counts.
    whole != members
}
