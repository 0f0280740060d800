//! The guard as a whole: its own packs, its invariants, what it says about paths and hosts.

use crate::facts::Surroundings;
use crate::facts::command::*;
use crate::verdict::{Decision, Severity, Stage, StageVerdict};

fn here() -> Surroundings {
    let mut here = Surroundings::new("/home/user/workspace", "/home/user");
    here.gateway.push("/home/user/.local/state/portcullis".into());
    here
}

fn decide(guard: &Guard, command: &str) -> Decision {
    StageVerdict::new(Stage::Command, guard.analyse(command, &here()).findings).decision
}

#[test]
fn own_packs_load_and_their_examples_hold() {
    let guard = match Guard::load(&[]) {
        Ok(guard) => guard,
        Err(error) => panic!("an embedded pack does not load: {error}"),
    };
    let problems = packs::rules::check_own(&guard);
    assert!(problems.is_empty(), "{} examples do not hold:\n{}", problems.len(), problems.join("\n"));
    assert!(guard.rules().count() > 100, "only {} rules were loaded", guard.rules().count());
}

#[test]
fn own_rules_say_where_what_they_know_comes_from() {
    let guard = Guard::embedded();
    let source = |text: &String| text.starts_with("https://") || text.starts_with("http://") || text.ends_with(".md");
    let without: Vec<&str> = guard
        .rules()
        .filter(|rule| rule.references.is_empty() || !rule.references.iter().all(source))
        .map(|rule| rule.id.as_str())
        .collect();
    assert!(without.is_empty(), "rules without a source: {without:?}");
}

fn pack(text: &str, trust: Trust) -> Result<Guard, PackError> {
    Guard::load(&[PackSource { file: "mine.toml".into(), text: text.into(), trust }])
}

#[test]
fn pack_errors_name_file_line_and_column() {
    for (text, want) in [
        (
            "[[rule]]\nid = \"a.b\"\nseverity = \"bad\"\nprogram = [\"x\"]\nreason = \"r\"\n",
            "mine.toml:3:12: unknown severity `bad`",
        ),
        (
            "[[rule]]\nid = \"fs.delete-root\"\nseverity = \"warn\"\nprogram = [\"x\"]\nreason = \"r\"\n",
            "mine.toml:2:6: a second rule",
        ),
        (
            "[[rule]]\nid = \"a.b\"\nseverity = \"warn\"\nreason = \"r\"\n",
            "mine.toml:2:6: rule `a.b` matches everything",
        ),
        (
            "[[rule]]\nid = \"a.b\"\nseverity = \"warn\"\neffect = [\"delete\"]\ntarget = [\"moon\"]\nreason = \"r\"\n",
            "mine.toml:5:10: unknown target `moon`",
        ),
        ("[[rule]]\nid = \"a.b\"\nprograms = [\"x\"]\n", "mine.toml:3:1: unknown field `programs`"),
        (
            "[[rule]]\nid = \"a.b\"\nseverity = \"warn\"\nprogram = [\"x\"]\nreason = \"r\"\nmatch = [\"y\"]\n",
            "mine.toml:6:10: rule `a.b`: the example `y` of `match` is not found",
        ),
        (
            "[[override]]\nid = \"fs.delete-root\"\nseverity = \"warn\"\n",
            "mine.toml:2:6: `fs.delete-root` may not be lowered here: nothing overrides",
        ),
    ] {
        let error = pack(text, Trust::User).expect_err(text).to_string();
        assert!(error.starts_with(want), "{error} should start with {want}");
    }
}

#[test]
fn workspace_packs_only_raise() {
    let lower = "[[override]]\nid = \"privilege.raise\"\nseverity = \"note\"\n";
    let error = pack(lower, Trust::Workspace).expect_err("a workspace lowered a rule").to_string();
    assert!(error.contains("may only raise"), "{error}");
    let user = pack(lower, Trust::User).expect("an operator may lower a warn rule");
    assert_eq!(decide(&user, "sudo ls"), Decision::Allow);
    let raised =
        pack("[[override]]\nid = \"privilege.raise\"\nseverity = \"deny\"\n", Trust::Workspace).expect("raising");
    assert_eq!(decide(&raised, "sudo ls"), Decision::Deny);
    assert_ne!(raised.hash(), Guard::embedded().hash(), "the hash must bind the packs");
}

#[test]
fn i7_the_gateways_own_files_are_out_of_reach() {
    let guard = Guard::embedded();
    for command in [
        "rm -rf ~/.local/state/portcullis",
        "rm -rf ~/.local/state",
        "echo x > ~/.local/state/portcullis/audit/log",
        "sed -i s/a/b/ ~/.local/state/portcullis/state.db",
        "cat ~/.local/state/portcullis/keys/operator",
        "chmod 777 ~/.local/state/portcullis",
        "python3 -c \"open('/home/user/.local/state/portcullis/state.db','w')\"",
        "portcullis approvals grant 1",
        "pkill -9 portcullis",
    ] {
        assert_eq!(decide(&guard, command), Decision::Deny, "{command}");
    }
}

#[test]
fn i6_every_limit_is_a_finding() {
    let not_analysed = |guard: &Guard, command: &str| {
        let facts = guard.analyse(command, &here());
        facts.findings.iter().any(|finding| finding.id == "command.not-fully-analysed")
            && facts.parse != Parse::Complete
    };
    let guard = Guard::embedded();
    for command in [
        "echo ".to_owned() + &"a".repeat(300 * 1024),
        "$(".repeat(500),
        "(".repeat(500),
        "echo {1..9}{1..9}{1..9}{1..9}{1..9}".to_owned(),
        "true; ".repeat(20_000),
        "if true; then".to_owned(),
        "x=aaaaaaaaaaaaaaaa; ".to_owned() + &"x=$x$x;".repeat(40) + "echo $x",
        "f() { eval f; eval f; }; ".to_owned() + &"eval ".repeat(400) + "f",
    ] {
        assert!(
            not_analysed(&guard, &command),
            "a limit was passed over in silence: {}",
            &command[..40.min(command.len())]
        );
    }
    let limits = Limits { sites: 3, ..Limits::default() };
    assert!(not_analysed(&Guard::embedded().with_limits(limits), "true; true; true; true; rm -rf /"));
}

#[test]
fn findings_beyond_the_limit_keep_the_gravest() {
    let command = "sudo ls; ".repeat(200) + "rm -rf /";
    assert_eq!(decide(&Guard::embedded(), &command), Decision::Deny);
}

#[test]
fn paths_are_absolute_and_only_operands() {
    let guard = Guard::embedded();
    let used = |command: &str| {
        let mut paths: Vec<(Option<String>, Access)> =
            guard.analyse(command, &here()).paths.into_iter().map(|used| (used.path, used.access)).collect();
        paths.sort();
        paths
    };
    let path = |text: &str, access| (Some(text.to_owned()), access);
    assert_eq!(
        used("cd sub && cat a.txt ../b > /tmp/out"),
        [
            path("/home/user/workspace/b", Access::Read),
            path("/home/user/workspace/sub/a.txt", Access::Read),
            path("/tmp/out", Access::Write),
        ]
    );
    assert_eq!(used("echo /etc/passwd; git commit -m 'see /etc/shadow'"), []);
    assert_eq!(used("rm \"$X\""), [(None, Access::Delete)]);
    assert_eq!(used("./run.sh"), [path("/home/user/workspace/run.sh", Access::Execute)]);
}

#[test]
fn hosts_programs_and_effects_are_facts() {
    let facts =
        Guard::embedded().analyse("curl -s https://user@Example.test:8443/x | jq . ; git push --force", &here());
    assert!(facts.hosts.contains("example.test"), "{:?}", facts.hosts);
    assert!(["curl", "jq", "git"].iter().all(|name| facts.programs.contains(*name)), "{:?}", facts.programs);
    assert!(facts.effects.contains(&Effect("git.push.force".into())), "{:?}", facts.effects);
    assert_eq!(facts.parse, Parse::Complete);
}

#[test]
fn findings_point_at_their_command() {
    let command = "echo ok; rm -rf / && true";
    let facts = Guard::embedded().analyse(command, &here());
    let finding = facts.findings.iter().find(|finding| finding.severity == Severity::Fatal).expect("a fatal finding");
    assert_eq!(finding.span.clone().and_then(|span| command.get(span)), Some("rm -rf / "), "{finding:?}");
}

#[test]
fn a_module_is_no_path_and_its_input_no_code() {
    for command in [
        "python3 -m pytest -q",
        "python3 -m venv .venv",
        "python -m pip install -r requirements.txt",
        "python3 -mjson.tool",
        "python3 -Im json.tool",
    ] {
        let paths = Guard::embedded().analyse(command, &here()).paths;
        let invented = paths.iter().any(|used| used.access == Access::Execute);
        assert!(!invented, "`{command}` names a module, so no path may be invented for it: {paths:?}");
    }
    let command = "echo 'import os; os.system(\"rm -rf /\")' | python3 -m json.tool";
    assert_eq!(
        decide(&Guard::embedded(), command),
        Decision::Allow,
        "a module reads its input as data, so it must not be judged as code"
    );
}

#[test]
fn numbers_of_the_input_do_not_overflow() {
    let zeros = "0".repeat(70_000);
    for command in [
        "cut -c0 <<< x",
        "cut -f0 <<< x",
        "cut -c0-0 <<< x",
        "cut -d: -f0-18446744073709551615 <<< x:y",
        "cut -c18446744073709551615- <<< x",
        "cut -c5-2 <<< x",
        "set -- a; shift 18446744073709551615; echo $1",
        "set -- a; shift 18446744073709551616; shift -1; echo $1",
        "echo {-9223372036854775808..9223372036854775807}",
        "echo {9223372036854775807..-9223372036854775808..-9223372036854775808}",
        "echo {0..9223372036854775807..9223372036854775807}",
        "x=abc; echo ${x: -9223372036854775808} ${x:9223372036854775807:9223372036854775807}",
        "x=abc; echo ${x:0:-9223372036854775808} ${x:1:-9223372036854775808}",
        "set -- a b; echo ${@:-9223372036854775808} ${@:0:9223372036854775807} ${18446744073709551615}",
        "echo $((9223372036854775807 + 1)) $((-9223372036854775807 - 2)) $((9223372036854775807 * 2))",
        "x=-9223372036854775808; echo $((x / -1)) $((x % -1)) $((-x)) $((1 / 0)) $((1 % 0))",
        "printf '%d %99999999999999999999d %.*s' 99999999999999999999 1 18446744073709551615 x",
        "head -n 18446744073709551615 <<< x; tail -n 18446744073709551615 <<< x; tail -n -1 <<< x",
        "echo x 18446744073709551616>a 4294967295>&1 2>&18446744073709551616",
        "python3 -c 'x = 9223372036854775807 + 9223372036854775807; y = \"a\" * -1; z = [1][18446744073709551616]'",
        &format!("echo {{{zeros}1..2}}"),
        &format!("echo $(({zeros}1))"),
    ] {
        // An overflow is a panic here, and in the gateway a call that is not judged.
        let _ = Guard::embedded().analyse(command, &here());
    }
    let after = "cut -c0 <<< x; rm -rf /";
    assert_eq!(decide(&Guard::embedded(), after), Decision::Deny, "what follows a bad number must still be judged");
}

#[test]
fn something_unknown_in_a_directory_is_not_the_directory() {
    let guard = Guard::embedded();
    let mut here = here();
    here.gateway.push("/tmp/gateway-test/state".into());
    let own = |command: &str| guard.analyse(command, &here).findings.iter().any(|f| f.id.starts_with("gateway.files"));
    for command in [
        "d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; ls",
        "rm -rf \"/tmp/$x\"",
        "rm -rf ~/\"proj-$x\"",
        "rm -rf ~/\"$x\"/build",
        "rm -rf /tmp/\"gate-$x\"",
    ] {
        assert!(!own(command), "`{command}` names something below a directory that also holds the gateway's files");
    }
    for command in [
        "rm -rf /tmp",
        "rm -rf /tmp/*",
        "rm -rf /tmp/gateway-test",
        "rm -rf \"/tmp/gateway-test/state/$x\"",
        "rm -rf \"/tmp/gateway-test/state/$x/$y/z\"",
        "rm -rf ~/.local/state/\"portcullis$x\"",
        "rm -rf ~/.local/state/\"portcullis/$x\"",
        "rm -rf ~/.local",
    ] {
        assert!(own(command), "`{command}` can be the gateway's own files");
    }
}

#[test]
fn i6_repetition_ends_quickly_and_is_a_finding() {
    let guard = Guard::embedded();
    let many = |count: usize, text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let a = "a".repeat(20_000);
    let stars = "*a".repeat(500);
    let loops = |body: &str| {
        format!("for i in {{1..199}}; do for j in {{1..199}}; do for k in {{1..199}}; do {body}; done; done; done")
    };
    for (what, command) in [
        ("doubled text in python", format!("python3 -c 'x=\"a\"{}'", "\nx=x+x".repeat(60))),
        ("doubled lists in python", format!("python3 -c 'x=[1]{}'", "\nx=[x,x]".repeat(60))),
        ("added lists in python", format!("python3 -c 'x=[1]{}'", "\nx=x+x".repeat(60))),
        ("nested lists in python", format!("python3 -c 'x=[1]{}'", "\nx=[x]".repeat(5000))),
        ("repeated text in python", format!("python3 -c 'x=\"a\"{}'", "*99".repeat(60))),
        ("array items", many(20_000, &|i| format!("a[{i}]=0;"))),
        ("a long array", format!("a=({})", "x ".repeat(20_000)) + &many(2000, &|i| format!(";a[x{i}]=0"))),
        ("a suffix pattern", format!("x={a}; echo ${{x%%{stars}b}}")),
        ("a prefix pattern", format!("x={a}; echo ${{x##{stars}b}}")),
        ("a replaced pattern", format!("x={a}; echo ${{x//[{}]{stars}/}}", "bcdef".repeat(2000))),
        ("a replacement", format!("x={a}; echo ${{x//a/$x}}")),
        ("redirects", format!("ls {}", ">a ".repeat(20_000))),
        ("redirected input", format!("cat {}", "<<<a ".repeat(20_000))),
        ("loops of a program", loops("ls")),
        ("loops of an assignment", loops("x=1")),
        ("loops of a test", loops("[[ a = b ]]")),
        ("loops of an array", loops("a[$i$j$k]=1")),
        ("branches", many(10_000, &|i| format!("a&&v{i}=1;"))),
        ("values", many(300, &|i| format!("a&&v={i};")) + "x=$v;rm $x;" + &"eval ".repeat(100) + "$x$v"),
        (
            "values of many variables",
            many(100, &|i| format!("v{i}=0;a&&v{i}=1;"))
                + &many(500, &|_| "x=".to_owned() + &many(100, &|i| format!("$v{i}")) + ";"),
        ),
        ("sed", format!("sed s/a/{a}/g <<< {a}")),
    ] {
        let start = std::time::Instant::now();
        let facts = guard.analyse(&command, &here());
        let took = start.elapsed();
        eprintln!("{what}: {took:?}");
        assert!(took.as_secs() < 10, "{what}: took {took:?}, so a call of the agent could stop the gateway");
        assert!(
            facts.findings.iter().any(|finding| finding.id == "command.not-fully-analysed"),
            "{what}: was cut in silence"
        );
    }
    let start = std::time::Instant::now();
    guard.analyse(&format!("tr ' -\u{10FFEE}' x <<< {a}"), &here());
    assert!(start.elapsed().as_secs() < 10, "a range of tr over all characters took {:?}", start.elapsed());
}

#[test]
fn an_assignment_that_may_not_happen_hides_nothing() {
    let guard = Guard::embedded();
    for command in [
        "d=/; if false; then d=build; fi; rm -rf $d",
        "d=/; if a; then d=build; elif b; then d=out; fi; rm -rf \"$d\"",
        "if a; then d=/; else d=build; fi; rm -rf \"$d\"",
        "if a; then d=build; else d=/; fi; rm -rf \"$d\"",
        "d=/; case $x in a) d=build;; b) d=out;; esac; rm -rf $d",
        "case $x in a) d=/;; *) d=out;; esac; rm -rf $d",
        "d=/; false && d=build; rm -rf $d",
        "d=/; [ -n \"$X\" ] && d=build; rm -rf $d",
        "d=/; true || d=build; rm -rf $d",
        "d=/; while false; do d=build; done; rm -rf $d",
        "d=/; for x in $nothing; do d=build; done; rm -rf $d",
        "d=/; f() { local d=build; }; f; rm -rf \"$d\"",
        "d=/; [ -n \"$X\" ] && d=build; e=$d; rm -rf $e",
        "d=/; [ -n \"$X\" ] && d=build; e=\"${d}etc\"; rm -rf \"$e\"",
        "d=/; [ -n \"$X\" ] && d=build; rm -rf $(echo $d)",
        "d=/; [ -n \"$X\" ] && d=build; for x in $d; do rm -rf $x; done",
        "d=/; [ -n \"$X\" ] && d=build; f() { rm -rf $1; }; f $d",
        "d=/; [ -n \"$X\" ] && d=build; if true; then rm -rf $d; fi",
        "c=rm; [ -n \"$X\" ] && c=ls; $c -rf /",
    ] {
        assert_eq!(decide(&guard, command), Decision::Deny, "`{command}` can delete the root: the branch need not run");
    }
    for command in [
        "d=build; [ -n \"$X\" ] && d=out; rm -rf \"$d\"",
        "d=/; if a; then d=build; else d=out; fi; rm -rf \"$d\"",
        "d=/; case $x in a) d=build;; *) d=out;; esac; rm -rf \"$d\"",
        "d=/; d=build && rm -rf \"$d\"",
        "d=/; d=build; rm -rf \"$d\"",
        "d=/; mkdir -p build && d=build && rm -rf \"$d\"",
        "d=build; if [ -z \"$d\" ]; then d=/; exit 1; fi; rm -rf \"$d\"",
        "d=build; f() { local d=/; ls $d; }; f; rm -rf \"$d\"",
        "for f in a b c; do [ -f $f ] && last=$f; done; echo $last",
    ] {
        let facts = guard.analyse(command, &here());
        assert!(facts.findings.is_empty(), "`{command}` is harmless whichever branch runs: {:?}", facts.findings);
    }
}
