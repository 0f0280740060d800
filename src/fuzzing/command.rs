//! The command guard, on any text.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::facts::Surroundings;
use crate::facts::command::{CommandFacts, Guard, Parse};
use crate::verdict::{Decision, Finding, Stage, StageVerdict};

/// Longer texts are cut: what wraps them must stay far from the guard's own limits.
const LONGEST: usize = 2048;
/// What one analysis may take. Generous, for machines that do other things as well.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 5 });
const NOT_ANALYSED: &str = "command.not-fully-analysed";

/// Two, so that nothing may depend on the order of a hash map.
static GUARDS: LazyLock<[Guard; 2]> = LazyLock::new(|| [Guard::embedded(), Guard::embedded()]);
static HERE: LazyLock<Surroundings> = LazyLock::new(|| {
    let mut here = Surroundings::new("/home/alice/proj", "/home/alice");
    here.gateway.push("/home/alice/.local/state/portcullis".into());
    here
});

/// Any text is analysed, in bounded time, always the same way; what was not understood is said; and no wrapping or
/// spelling makes a denied command look better.
///
/// # Panics
///
/// Where that does not hold.
pub fn command(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    let facts = analyse(text);
    sound(text, &facts);
    first_line_counts(text);
    let whole = facts.parse == Parse::Complete && !has(&facts, NOT_ANALYSED);
    if whole && decision(&facts) == Decision::Deny {
        wrapping_never_lowers(text);
    }
    if whole && plain(text) {
        quoting_changes_nothing(text, &facts);
    }
}

fn analyse(text: &str) -> CommandFacts {
    let [guard, other] = &*GUARDS;
    let began = Instant::now();
    let facts = guard.analyse(text, &HERE);
    let took = began.elapsed();
    assert!(took < PATIENCE, "analysing {} bytes took {took:?}: {text:?}", text.len());
    assert_eq!(facts, other.analyse(text, &HERE), "a second analysis of {text:?} came out differently");
    facts
}

fn decision(facts: &CommandFacts) -> Decision {
    StageVerdict::new(Stage::Command, facts.findings.clone()).decision
}

fn has(facts: &CommandFacts, id: &str) -> bool {
    facts.findings.iter().any(|finding| finding.id == id)
}

/// What holds of the facts of any text.
fn sound(text: &str, facts: &CommandFacts) {
    if facts.parse == Parse::Opaque || text.contains('\0') {
        assert!(has(facts, NOT_ANALYSED), "nothing is known of {text:?}, and no finding says so");
    }
    let within = |finding: &Finding| finding.span.as_ref().is_none_or(|span| text.get(span.clone()).is_some());
    let beyond = facts.findings.iter().find(|finding| !within(finding));
    assert_eq!(beyond, None, "the place of a finding is no part of the text {text:?}");
    let absolute = |path: &String| path.starts_with('/') || path.get(1..3) == Some(":\\");
    let paths = facts.paths.iter().find(|used| !used.path.as_ref().is_none_or(absolute));
    assert_eq!(paths, None, "a path that {text:?} uses is not absolute");
    let recorded = serde_json::to_string(facts).expect("facts can be recorded");
    let replayed: CommandFacts = serde_json::from_str(&recorded).expect("recorded facts can be read");
    assert_eq!(&replayed, facts, "the facts of {text:?} do not survive the record");
}

/// Bash reads and runs a script line by line: the first line runs whatever comes after it, a syntax error too.
fn first_line_counts(text: &str) {
    let script = format!("rm -rf /\n{text}");
    assert_eq!(decision(&analyse(&script)), Decision::Deny, "what follows hides a first line: {script:?}");
}

/// The name of a function that no script calls itself: that would be another script.
const FUNCTION: &str = "_wrapped";

/// Ways to run a script that is given as text, and to run it within another.
fn wrapped(text: &str) -> Vec<String> {
    // What begins like an option is taken for one by `sh -c`, `eval` and `trap`.
    let word = if text.starts_with(['-', '+']) { quoted(&format!(" {text}")) } else { quoted(text) };
    vec![
        format!("true\n{text}"),
        format!("{text}\ntrue"),
        format!("sh -c {word}"),
        format!("bash -c {word} x y"),
        format!("eval {word}"),
        format!("env A=b bash -c {word}"),
        format!("sudo -n bash -c {word}"),
        format!("nice -n 5 timeout 5 nohup bash -c {word}"),
        format!("find . -name x -exec sh -c {word} \\;"),
        format!("echo x | xargs -n 1 bash -c {word}"),
        format!("printf %s {word} | bash"),
        format!("bash <<< {word}"),
        format!("(\n{text}\n)"),
        format!("{{\n{text}\n}}"),
        format!("x=$(\n{text}\n)"),
        format!("cat <(\n{text}\n)"),
        format!("if true; then\n{text}\nfi"),
        format!("while true; do\n{text}\ndone"),
        format!("for i in 1; do\n{text}\ndone"),
        format!("case x in x)\n{text}\nesac"),
        format!("{FUNCTION}() {{\n{text}\n}}\n{FUNCTION}"),
        format!("trap {word} EXIT"),
    ]
}

fn wrapping_never_lowers(text: &str) {
    // A last backslash takes the next line in.
    if text.ends_with('\\') {
        return;
    }
    for script in wrapped(text) {
        // find(1) puts a path for `{}` within its arguments, too, which makes another script of it.
        if script.starts_with("find ") && text.contains("{}") {
            continue;
        }
        if text.contains(FUNCTION) {
            continue;
        }
        // A heredoc that lacks its end takes in what follows, the closing word too.
        if text.contains("<<") && !script.contains(&quoted(text)) {
            continue;
        }
        let facts = analyse(&script);
        let limited = facts.findings.iter().any(|finding| finding.message.contains("the limit of"));
        assert!(
            limited || decision(&facts) == Decision::Deny,
            "{text:?} is denied, and {script:?} is {}: {:?}",
            decision(&facts),
            facts.findings
        );
    }
}

/// As one word of a shell, whatever it holds.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A single simple command of ordinary words, which mean the same however they are quoted.
fn plain(text: &str) -> bool {
    const RESERVED: &[&str] = &[
        "if", "then", "elif", "else", "fi", "time", "for", "in", "until", "while", "do", "done", "case", "esac",
        "coproc", "select", "function",
    ];
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b" /._-:@%+,".contains(&byte);
    let first = text.split(' ').find(|word| !word.is_empty());
    text.bytes().all(ordinary) && first.is_some_and(|first| !RESERVED.contains(&first))
}

fn quoting_changes_nothing(text: &str, facts: &CommandFacts) {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let spellings: [fn(&str) -> String; 6] = [
        |word| format!("'{word}'"),
        |word| format!("\"{word}\""),
        |word| word.chars().flat_map(|letter| ['\\', letter]).collect(),
        |word| format!("''{word}\"\""),
        |word| word.bytes().fold("$'".to_owned(), |text, byte| format!("{text}\\x{byte:02x}")) + "'",
        |word| word.chars().map(|letter| format!("'{letter}'")).collect(),
    ];
    for spell in spellings {
        let script = words.iter().map(|word| spell(word)).collect::<Vec<_>>().join(" ");
        let other = analyse(&script);
        assert!(
            decision(&other) >= decision(facts) && facts.effects.is_subset(&other.effects),
            "{text:?} is {} with {:?}, and {script:?} is {} with {:?}",
            decision(facts),
            facts.effects,
            decision(&other),
            other.effects
        );
    }
}
