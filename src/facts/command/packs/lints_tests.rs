//! What is said of rules that are of no use.

use crate::facts::command::*;

fn found(text: &str) -> Vec<String> {
    let pack = PackSource { file: "mine.toml".into(), text: text.into(), trust: Trust::User };
    lint(&[pack]).expect("the pack is read").iter().map(ToString::to_string).collect()
}

#[test]
fn rules_that_never_fire_or_are_shadowed_are_named_with_their_line() {
    let rule = |id: &str, severity: &str, asks: &str| {
        format!("[[rule]]\nid = \"{id}\"\nseverity = \"{severity}\"\nreason = \"r\"\nmatch = [\"x\"]\n{asks}\n")
    };
    for (asks, said) in [
        (
            "program = [\"x\"]\noption = [\"-a\"]\nno_option = [\"-a\", \"-b\"]",
            "mine.toml:2:6: rule `a` can never fire: every `option`",
        ),
        ("program = [\"x\"]\narg = [\"a\"]\nno_arg = [\"a\"]", "can never fire: every `arg`"),
        ("effect = [\"delete\"]\ntarget = [\"root\"]\nno_target = [\"root\"]", "can never fire: every `target`"),
        ("program = [\"x\"]\nbare = true\noption = [\"-a\"]", "can never fire: a `bare` call"),
    ] {
        let told = found(&rule("a", "warn", asks));
        assert!(told.len() == 1 && told[0].contains(said), "{told:?}");
    }
    let wide = rule("wide", "deny", "program = [\"x\", \"y\"]");
    for (narrow, shadowed) in [
        (rule("b", "deny", "program = [\"x\"]\noption = [\"-a\"]"), true),
        (rule("b", "warn", "program = [\"y\"]"), true),
        (rule("b", "fatal", "program = [\"x\"]"), false),
        (rule("b", "deny", "program = [\"z\"]"), false),
        (rule("b", "deny", "effect = [\"delete\"]"), false),
    ] {
        let told = found(&format!("{wide}{narrow}"));
        assert_eq!(told.iter().any(|line| line.contains("is shadowed: `wide`")), shadowed, "{narrow}: {told:?}");
    }
    let told = found("[[rule]]\nid = \"a\"\nseverity = \"warn\"\nreason = \"r\"\nprogram = [\"x\"]\n");
    assert!(told.len() == 1 && told[0].contains("no `match` example"), "{told:?}");
}
