//! Stage: sandbox. Maps the confinement that was asked for, and what this kernel gives of it, to findings.

use crate::call::{Call, Origin};
use crate::facts::{Facts, SandboxFacts};
use crate::verdict::{Finding, Severity};

/// Judges the confinement of a call that runs a program.
pub(super) fn judge(call: &Call, facts: &Facts) -> Vec<Finding> {
    match &facts.sandbox {
        // Whether that is good enough is for the policies, which see the tier.
        Some(sandbox) if call.origin == Origin::Hook && sandbox.is_none() => vec![Finding::new(
            "sandbox.unconfined",
            Severity::Note,
            "the agent's own program runs it, and the gateway does not confine it",
        )],
        Some(sandbox) => judge_confinement(sandbox),
        None if facts.command.is_some() => vec![
            Finding::new(
                "sandbox.unknown",
                Severity::Deny,
                format!("`{}` runs a command, and how it would be confined is not known", call.tool),
            )
            .safer("configure a sandbox profile for it"),
        ],
        None => Vec::new(),
    }
}

fn judge_confinement(sandbox: &SandboxFacts) -> Vec<Finding> {
    let network = if sandbox.network { "on" } else { "off" };
    let (profile, tier) = (&sandbox.profile, sandbox.offers.as_str());
    let mut findings = vec![Finding::new(
        "sandbox.profile",
        Severity::Note,
        format!("runs in profile `{profile}`, tier {tier}, network {network}"),
    )];
    let mut missing = sandbox.missing.join(", ");
    if missing.is_empty() && sandbox.offers < sandbox.requires {
        missing = format!("tier {} (this kernel gives {tier})", sandbox.requires.as_str());
    }
    if !missing.is_empty() {
        let severity = if sandbox.ask_when_missing { Severity::Review } else { Severity::Deny };
        findings.push(
            Finding::new(
                "sandbox.missing",
                severity,
                format!("profile `{profile}` requires what this kernel cannot give: {missing}"),
            )
            .safer("run `portcullis doctor` to see what this kernel offers"),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Tier;
    use crate::verdict::{Decision, Level, Stage, StageVerdict};

    fn decision(edit: impl FnOnce(&mut SandboxFacts)) -> Decision {
        let mut facts = SandboxFacts {
            profile: "workspace-write".into(),
            requires: Tier::Landlock,
            offers: Tier::Landlock,
            network: false,
            missing: Vec::new(),
            ask_when_missing: false,
        };
        edit(&mut facts);
        let findings = judge_confinement(&facts);
        assert_eq!(findings[0].id, "sandbox.profile", "the profile is not said");
        StageVerdict::new(Stage::Sandbox, findings).decision
    }

    #[test]
    fn i5_a_missing_confinement_is_never_a_silence() {
        assert_eq!(decision(|_| {}), Decision::Allow);
        assert_eq!(decision(|f| f.missing.push("seccomp filters".into())), Decision::Deny);
        assert_eq!(decision(|f| f.offers = Tier::None), Decision::Deny, "a lower tier without a named layer passed");
        let asks = decision(|f| {
            f.offers = Tier::None;
            f.ask_when_missing = true;
        });
        assert_eq!(asks, Decision::Ask(Level::Reviewer));
    }
}
