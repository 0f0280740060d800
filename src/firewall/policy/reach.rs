//! What a principal could ever be allowed: for listing tools, not for deciding calls.

use std::collections::HashMap;

use cedar_policy::{Effect, Entities, Request};
use cedar_policy_core::ast::{Expr, ExprKind, Literal, UnaryOp, ValueKind, Var};
use cedar_policy_core::evaluator::Evaluator;
use cedar_policy_core::extensions::Extensions;

use crate::call::Principal;
use crate::firewall::policy::judge::HIGHEST;
use crate::firewall::policy::load::Policies;
use crate::firewall::policy::standing_level;

/// Whether some call of the tool could be allowed to this principal, given every approval that it can get.
///
/// Only what holds for all calls answers no: no permit can apply, or a forbid applies whatever the arguments and their
/// facts are. Where it is not known, the answer is yes, and the decision on the call itself tells.
pub fn could_allow(who: &Principal, origin: &str, tool: &str, policies: &Policies) -> bool {
    let Some(action) = policies.actions.get(tool) else { return false };
    // The lint keeps policies monotone in the approval, so the highest level is the best case.
    let level = if who.unattended { standing_level(who) } else { HIGHEST };
    let Ok((request, entities)) = action.outline(who, origin, level) else { return true };
    let known = Known { request: &request, entities: &entities };
    let permitted = action.slice.iter().any(|r| r.effect == Effect::Permit && known.holds(&r.condition) != Some(false));
    let forbidden = action.slice.iter().any(|r| r.effect == Effect::Forbid && known.holds(&r.condition) == Some(true));
    permitted && !forbidden
}

/// A request of which the principal, the action, the origin and the approval are known, and nothing else.
struct Known<'a> {
    request: &'a Request,
    entities: &'a Entities,
}

impl Known<'_> {
    /// Whether a condition holds for every call, for none, or for some.
    fn holds(&self, condition: &Expr) -> Option<bool> {
        match condition.expr_kind() {
            ExprKind::And { left, right } => match (self.holds(left), self.holds(right)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            ExprKind::Or { left, right } => match (self.holds(left), self.holds(right)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => self.holds(arg).map(|holds| !holds),
            ExprKind::If { test_expr, then_expr, else_expr } => match self.holds(test_expr) {
                Some(true) => self.holds(then_expr),
                Some(false) => self.holds(else_expr),
                None => {
                    let (then, otherwise) = (self.holds(then_expr), self.holds(else_expr));
                    then.filter(|_| then == otherwise)
                }
            },
            _ => is_settled(condition).then(|| self.value(condition)).flatten(),
        }
    }

    fn value(&self, condition: &Expr) -> Option<bool> {
        let request = self.request.as_ref().clone();
        let evaluator = Evaluator::new(request, self.entities.as_ref(), Extensions::all_available());
        match evaluator.interpret(condition, &HashMap::new()).ok()?.value_kind() {
            ValueKind::Lit(Literal::Bool(holds)) => Some(*holds),
            _ => None,
        }
    }
}

/// Whether a condition reads nothing but what is known.
fn is_settled(condition: &Expr) -> bool {
    let is_context = |expr: &Expr| matches!(expr.expr_kind(), ExprKind::Var(Var::Context));
    let (mut whole, mut known) = (0_usize, 0_usize);
    for part in condition.subexpressions() {
        match part.expr_kind() {
            ExprKind::Var(Var::Resource) | ExprKind::Slot(_) | ExprKind::Unknown(_) => return false,
            ExprKind::Var(Var::Context) => whole += 1,
            ExprKind::GetAttr { expr, attr } if is_context(expr) && (attr == "approval" || attr == "origin") => {
                known += 1;
            }
            _ => {}
        }
    }
    whole == known
}
