//! What Cedar cannot know about our policies: that an approval may only ever help, that a workspace may only forbid, and
//! that matching a command's text is no protection.

use cedar_policy::{Effect, Policy};
use serde_json::Value;

use crate::firewall::policy::source::Trust;

/// A finding of the lint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub message: &'static str,
    pub help: &'static str,
    /// The text in the policy to point at.
    pub word: &'static str,
    pub warning: bool,
}

const APPROVAL: Complaint = Complaint {
    message: "an approval may only help: `context.approval` can stand here only as `context.approval.level >= 1` \
              (or 2), in the `unless` of a forbid or the `when` of a permit, and not under `!` or in the condition of an `if`",
    help: "write `forbid (...) when { ... } unless { context.approval.level >= 1 };`",
    word: "approval",
    warning: false,
};

const CONTEXT: Complaint = Complaint {
    message: "`context` is used as a whole, which reads the approval in passing",
    help: "name the attribute that is meant, such as `context.command`",
    word: "context",
    warning: false,
};

const PERMIT: Complaint = Complaint {
    message: "a workspace may only tighten: this policy permits",
    help: "write it as a `forbid`, or let the operator put it into the user's policies",
    word: "permit",
    warning: false,
};

const LIKE: Complaint = Complaint {
    message: "matching the text of a command protects from nothing: the same command can be spelled in endless ways",
    help: "test what the command does: `context.command.effects.contains(\"delete\")`, programs, scopes or findings",
    word: "like",
    warning: true,
};

/// Everything that is wrong with a policy, given Cedar's own JSON form of it.
pub(super) fn complaints(policy: &Policy, form: &Value, trust: Trust) -> Vec<Complaint> {
    let mut found = Vec::new();
    if trust == Trust::Workspace && policy.effect() == Effect::Permit {
        found.push(PERMIT);
    }
    for clause in form.get("conditions").and_then(Value::as_array).into_iter().flatten() {
        let kind = clause.get("kind").and_then(Value::as_str).unwrap_or_default();
        let Some(body) = clause.get("body") else { continue };
        let helps = matches!((policy.effect(), kind), (Effect::Forbid, "unless") | (Effect::Permit, "when"));
        found.extend(approval(body, helps));
        if policy.effect() == Effect::Forbid && matches_command_text(body) {
            found.push(LIKE);
        }
    }
    found
}

/// Walks an expression; `helps` says whether making it truer can only loosen the policy.
fn approval(node: &Value, helps: bool) -> Option<Complaint> {
    if is_threshold(node) {
        return (!helps).then_some(APPROVAL);
    }
    if let Some(object) = accessed(node)
        && is_context(object)
    {
        // `context has approval.level` names a path; its first step is what is read of the context.
        let name = member(node).map(|(_, name)| name);
        return (name.is_none() || name == Some("approval")).then_some(APPROVAL);
    }
    if is_context(node) {
        return Some(CONTEXT);
    }
    let (operator, operand) = node.as_object().and_then(|object| object.iter().next())?;
    match operator.as_str() {
        "Value" | "Var" => None,
        "&&" | "||" => children(operand).find_map(|child| approval(child, helps)),
        "if-then-else" => {
            let part = |name: &str, helps: bool| operand.get(name).and_then(|part| approval(part, helps));
            part("if", false).or_else(|| part("then", helps)).or_else(|| part("else", helps))
        }
        // Under everything else an approval could turn an answer around.
        _ => children(operand).find_map(|child| approval(child, false)),
    }
}

/// `context.approval.level >= 1` or `>= 2`, and nothing else.
fn is_threshold(node: &Value) -> bool {
    let Some(comparison) = node.get(">=") else { return false };
    let level = comparison.get("left").and_then(member).filter(|(_, name)| *name == "level");
    let approval = level.and_then(|(object, _)| member(object)).filter(|(_, name)| *name == "approval");
    let literal = comparison.pointer("/right/Value").and_then(Value::as_i64);
    approval.is_some_and(|(object, _)| is_context(object)) && matches!(literal, Some(1 | 2))
}

/// The object of `object.name` or `object has name`.
fn accessed(node: &Value) -> Option<&Value> {
    node.get(".").or_else(|| node.get("has"))?.get("left")
}

/// The object and the name of `object.name`, or of `object has name`, where a path has its first step for a name.
fn member(node: &Value) -> Option<(&Value, &str)> {
    let access = node.get(".").or_else(|| node.get("has"))?;
    let name = access.get("attr")?;
    let name = name.as_str().or_else(|| name.get(0).and_then(Value::as_str))?;
    Some((access.get("left")?, name))
}

fn is_context(node: &Value) -> bool {
    node.get("Var").is_some_and(|name| name == "context")
}

/// The operands of an operator, whatever their form.
fn children(operand: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match operand {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(parts) => Box::new(parts.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn matches_command_text(node: &Value) -> bool {
    let text = node.pointer("/like/left").and_then(member);
    let is_command = text.is_some_and(|(object, name)| {
        name == "command" && member(object).is_some_and(|(context, name)| is_context(context) && name == "input")
    });
    is_command || children(node).any(matches_command_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(policy: &str, trust: Trust) -> Vec<&'static str> {
        let policy = Policy::parse(None, policy).expect("the test's policy parses");
        complaints(&policy, &policy.to_json().unwrap(), trust).into_iter().map(|complaint| complaint.word).collect()
    }

    #[test]
    fn an_approval_may_only_help() {
        let forbid = |rest: &str| format!("forbid (principal, action, resource) {rest};");
        let permit = |rest: &str| format!("permit (principal, action, resource) {rest};");
        let level = "context.approval.level >= 1";
        for accepted in [
            forbid(&format!("unless {{ {level} }}")),
            forbid(&format!("when {{ context.origin == \"cli\" }} unless {{ context.origin == \"x\" || {level} }}")),
            permit(&format!("when {{ {level} && principal.mode == \"default\" }}")),
            permit("when { if principal.unattended then false else context.approval.level >= 2 }"),
            permit("when { context has input && context.input has path }"),
            permit("when { context has input.approval }"),
        ] {
            assert_eq!(words(&accepted, Trust::Operator), Vec::<&str>::new(), "refused: {accepted}");
        }
        for (word, refused) in [
            ("approval", forbid(&format!("when {{ {level} }}"))),
            ("approval", permit(&format!("unless {{ {level} }}"))),
            ("approval", permit(&format!("when {{ !({level}) }}"))),
            ("approval", permit(&format!("when {{ ({level}) == false }}"))),
            ("approval", permit("when { context.approval.level == 1 }")),
            ("approval", permit("when { context.approval.level >= 0 }")),
            ("approval", permit("when { context.approval.level >= 3 }")),
            ("approval", permit("when { 1 <= context.approval.level }")),
            ("approval", permit("when { context[\"approval\"].level > 0 }")),
            ("approval", permit("when { context has approval }")),
            ("approval", permit("when { context has approval.level }")),
            ("approval", permit(&format!("when {{ if {level} then true else false }}"))),
            ("approval", permit("when { [context.approval].contains({level: 1}) }")),
            ("context", permit("when { context == {} }")),
            ("context", permit("when { (if true then context else context).approval.level >= 1 }")),
            ("context", permit("when { {c: context}.c.approval.level >= 1 }")),
        ] {
            assert_eq!(words(&refused, Trust::Operator), [word], "accepted: {refused}");
        }
    }

    #[test]
    fn a_workspace_may_only_forbid() {
        let policy = "permit (principal, action, resource);";
        assert_eq!(words(policy, Trust::Workspace), ["permit"]);
        assert_eq!(words(policy, Trust::Operator), Vec::<&str>::new());
    }

    #[test]
    fn a_pattern_on_a_commands_text_is_false_safety() {
        let pattern = r#"when { principal.unattended && !(context.input.command like "*rm -rf /*") };"#;
        assert_eq!(words(&format!("forbid (principal, action, resource) {pattern}"), Trust::Operator), ["like"]);
        assert_eq!(words(&format!("permit (principal, action, resource) {pattern}"), Trust::Operator), [""; 0]);
    }
}
