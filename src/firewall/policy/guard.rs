//! A quick look at a policy's condition. Most policies of a slice do not concern the call at hand, and most say so in
//! their first words (`context.command.effects.contains("delete") && ...`). A guard reads those words straight from the
//! request's values; only what it cannot answer with a plain *false* goes to Cedar's evaluator.
//!
//! It is exact, not a guess: conditions are read in Cedar's own order, and a part that could err, or that is not read
//! here, is unknown. The corpus test runs through it.

use cedar_policy_core::ast::{
    BinaryOp, Context, Entity, EntityUID, Expr, ExprKind, Literal, PartialValue, Request, UnaryOp, Value, ValueKind,
    Var,
};
use cedar_policy_core::entities::{Dereference, Entities};

/// What a guard can tell. `Unknown` stands for an error as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    False,
    True,
    Unknown,
}

impl From<Option<bool>> for Truth {
    fn from(answer: Option<bool>) -> Self {
        match answer {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => Truth::Unknown,
        }
    }
}

/// What guards read of one request.
pub(super) struct View<'a> {
    context: Option<&'a Context>,
    principal: Party<'a>,
    resource: Party<'a>,
}

type Party<'a> = Option<(&'a EntityUID, Option<&'a Entity>)>;

impl<'a> View<'a> {
    pub fn new(request: &'a Request, entities: &'a Entities) -> Self {
        let party = |uid: Option<&'a EntityUID>| {
            let uid = uid?;
            match entities.entity(uid) {
                Dereference::Data(entity) => Some((uid, Some(entity))),
                Dereference::NoSuchEntity => Some((uid, None)),
                Dereference::Residual(_) => None,
            }
        };
        View {
            context: request.context(),
            principal: party(request.principal().uid()),
            resource: party(request.resource().uid()),
        }
    }

    fn party(&self, variable: Var) -> Party<'a> {
        match variable {
            Var::Principal => self.principal,
            Var::Resource => self.resource,
            Var::Action | Var::Context => None,
        }
    }

    /// The value of an access such as `context.command.effects`.
    fn value(&self, expr: &Expr) -> Option<&'a Value> {
        let ExprKind::GetAttr { expr, attr } = expr.expr_kind() else { return None };
        match expr.expr_kind() {
            ExprKind::Var(Var::Context) => match self.context? {
                Context::Value(members) => members.get(attr.as_str()),
                Context::RestrictedResidual(_) => None,
            },
            ExprKind::Var(variable) => match self.party(*variable)?.1?.get(attr)? {
                PartialValue::Value(value) => Some(value),
                PartialValue::Residual(_) => None,
            },
            _ => match self.value(expr)?.value_kind() {
                ValueKind::Record(members) => members.get(attr.as_str()),
                _ => None,
            },
        }
    }

    /// Looks at a condition, as far as it is simple.
    pub fn look(&self, condition: &Expr) -> Truth {
        match condition.expr_kind() {
            ExprKind::And { left, right } => match self.look(left) {
                Truth::True => self.look(right),
                settled => settled,
            },
            ExprKind::Or { left, right } => match self.look(left) {
                Truth::False => self.look(right),
                settled => settled,
            },
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => match self.look(arg) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::Unknown => Truth::Unknown,
            },
            ExprKind::Lit(Literal::Bool(flag)) => Some(*flag).into(),
            ExprKind::GetAttr { .. } => self.value(condition).and_then(boolean).into(),
            ExprKind::Is { expr, entity_type } => {
                let ExprKind::Var(variable) = expr.expr_kind() else { return Truth::Unknown };
                self.party(*variable).map(|(uid, _)| uid.entity_type() == entity_type).into()
            }
            ExprKind::BinaryApp { op, arg1, arg2 } => self.relation(*op, arg1, arg2).into(),
            _ => Truth::Unknown,
        }
    }

    fn relation(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Option<bool> {
        match op {
            BinaryOp::Eq | BinaryOp::In if matches!(left.expr_kind(), ExprKind::Var(_)) => {
                let (ExprKind::Var(variable), ExprKind::Lit(Literal::EntityUID(group))) =
                    (left.expr_kind(), right.expr_kind())
                else {
                    return None;
                };
                let (uid, entity) = self.party(*variable)?;
                let below = || op == BinaryOp::In && entity.is_some_and(|entity| entity.is_descendant_of(group));
                Some(uid == &**group || below())
            }
            BinaryOp::Eq => Some(literal(self.value(left)?)? == literal_of(right)?),
            BinaryOp::Less => self.numbers(left, right).map(|(left, right)| left < right),
            BinaryOp::LessEq => self.numbers(left, right).map(|(left, right)| left <= right),
            BinaryOp::Contains | BinaryOp::ContainsAny => {
                let ValueKind::Set(set) = self.value(left)?.value_kind() else { return None };
                let has = |word: &Expr| Some(set.fast.as_ref()?.contains(literal_of(word)?));
                match right.expr_kind() {
                    ExprKind::Set(words) if op == BinaryOp::ContainsAny => {
                        let answers: Option<Vec<bool>> = words.iter().map(has).collect();
                        Some(answers?.contains(&true))
                    }
                    _ if op == BinaryOp::Contains => has(right),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn numbers(&self, left: &Expr, right: &Expr) -> Option<(i64, i64)> {
        let number = |expr: &Expr| match literal_of(expr).or_else(|| literal(self.value(expr)?))? {
            Literal::Long(number) => Some(*number),
            _ => None,
        };
        Some((number(left)?, number(right)?))
    }
}

fn literal(value: &Value) -> Option<&Literal> {
    match value.value_kind() {
        ValueKind::Lit(literal) => Some(literal),
        _ => None,
    }
}

fn literal_of(expr: &Expr) -> Option<&Literal> {
    match expr.expr_kind() {
        ExprKind::Lit(literal) => Some(literal),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match literal(value)? {
        Literal::Bool(flag) => Some(*flag),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy_core::evaluator::Evaluator;
    use cedar_policy_core::extensions::Extensions;
    use serde_json::json;

    use super::*;

    /// Conditions with what a look at them must tell; each is compared with Cedar's evaluator as well.
    const CONDITIONS: &[(&str, Truth)] = &[
        (r#"context.effects.contains("delete")"#, Truth::True),
        (r#"context.effects.contains("mount")"#, Truth::False),
        (r#"context.effects.contains(1)"#, Truth::False),
        (r#"context.effects.containsAny(["a", "delete"])"#, Truth::True),
        (r#"context.effects.containsAny(["a", "b"]) && context.none == 1"#, Truth::False),
        (r#"context.none.contains("x") && false"#, Truth::Unknown),
        (r#"context.deep.calls > 3 && context.deep.calls <= 5"#, Truth::True),
        (r#"context.deep.calls < 5 || context.none"#, Truth::Unknown),
        (r#"!(context.deep.calls >= 5)"#, Truth::False),
        (r#"principal.unattended && context.none"#, Truth::False),
        (r#"principal.mode == "plan""#, Truth::True),
        (r#"principal.mode == 1"#, Truth::False),
        (r#"principal.none == 1"#, Truth::Unknown),
        (r#"principal in Team::"t" && principal in Team::"other""#, Truth::False),
        (r#"principal == Agent::"a" && resource is Workspace"#, Truth::True),
        (r#"resource in Workspace::"w" && resource is File"#, Truth::False),
        (r#"resource.unattended"#, Truth::Unknown),
        (r#"context.effects == ["delete"]"#, Truth::Unknown),
        (r#"context.deep.calls + 9223372036854775807 > 0 && false"#, Truth::Unknown),
        (r#"if true then false else true"#, Truth::Unknown),
    ];

    #[test]
    fn i2_a_look_never_tells_what_cedar_would_not() {
        let context = json!({ "effects": ["delete", "fetch"], "deep": { "calls": 5 } });
        let context = cedar_policy::Context::from_json_value(context, None).unwrap();
        let uid = |text: &str| text.parse::<cedar_policy::EntityUid>().unwrap();
        let (who, what) = (uid(r#"Agent::"a""#), uid(r#"Workspace::"w""#));
        let request = cedar_policy::Request::new(who, uid(r#"Action::"x""#), what, context, None).unwrap();
        let entities = json!([{
            "uid": { "type": "Agent", "id": "a" },
            "attrs": { "mode": "plan", "unattended": false },
            "parents": [{ "type": "Team", "id": "t" }],
        }]);
        let entities = cedar_policy::Entities::from_json_value(entities, None).unwrap();
        let view = View::new(request.as_ref(), entities.as_ref());
        let evaluator = Evaluator::new(request.as_ref().clone(), entities.as_ref(), Extensions::all_available());
        for (text, expected) in CONDITIONS {
            let condition: cedar_policy::Expression = text.parse().unwrap();
            let looked = view.look(condition.as_ref());
            assert_eq!(looked, *expected, "{text}");
            let cedar = evaluator.interpret(condition.as_ref(), &Default::default()).ok().and_then(|v| boolean(&v));
            assert!(looked == Truth::Unknown || looked == cedar.into(), "{text}: Cedar says {cedar:?}");
        }
    }
}
