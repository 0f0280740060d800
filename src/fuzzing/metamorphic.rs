//! What no rewriting of a command may change: a denied command stays denied however it is wrapped, written, padded or
//! surrounded, and a harmless one in its place passes.

use std::collections::BTreeMap;
use std::fmt;

use super::random::Random;
use crate::facts::Surroundings;
use crate::facts::command::{CommandFacts, Guard, Parse};
use crate::verdict::{Decision, Stage, StageVerdict};

/// Ways to run a command, all of which do run it. `{}` is the command on lines of its own, `{q}` as one word.
const WRAPPINGS: &[&str] = &[
    "(\n{}\n)",
    "{\n{}\n}",
    "if true; then\n{}\nfi",
    "if false; then :; else\n{}\nfi",
    "if\n{}\nthen :; fi",
    "while true; do\n{}\nbreak; done",
    "while\n{}\nfalse; do :; done",
    "until\n{}\ndo :; done",
    "for i in 1; do\n{}\ndone",
    "for ((i=0; i<1; i++)); do\n{}\ndone",
    "case x in y) ;; x)\n{}\n;; esac",
    "case $x in *)\n{}\nesac",
    "f() {\n{}\n}\nf",
    "function f {\n{}\n}; f",
    "f() { g; }; g() {\n{}\n}; f",
    "x=$(\n{}\n)",
    ": \"$(\n{}\n)\"",
    "echo \"a $(\n{}\n) b\"",
    ": $(( $(\n{}\necho 1\n) ))",
    "a[$(\n{}\necho 1\n)]=1",
    "[[ -n $(\n{}\n) ]]",
    "cat <(\n{}\n)",
    "cat < <(\n{}\n)",
    "echo x > >(\n{}\n)",
    "cat <<EOT\n$(\n{}\n)\nEOT",
    "cat <<< \"$(\n{}\n)\"",
    "coproc {\n{}\n}",
    "true && {\n{}\n}",
    "false || {\n{}\n}",
    "! {\n{}\n}",
    "time {\n{}\n}",
    "{\n{}\n} & wait",
    "{\n{}\n} | cat",
    "true | {\n{}\n}",
    "{\n{}\n} 2>/dev/null",
    "sh -c {q}",
    "bash -c {q} x y",
    "bash -ec {q}",
    "dash -c {q}",
    "eval {q}",
    "eval -- {q}",
    "command eval {q}",
    "builtin eval {q}",
    "trap {q} EXIT",
    "trap {q} 0\nexit 0",
    "x={q}; eval \"$x\"",
    "x={q}; bash -c \"$x\"",
    "echo {q} | sh",
    "printf '%s\\n' {q} | bash",
    "cat <<< {q} | sh",
    "bash <<< {q}",
    "bash <<'EOT'\n{}\nEOT",
    "source /dev/stdin <<< {q}",
    "source <(printf '%s\\n' {q})",
    ". <(printf '%s\\n' {q})",
    "printf '%s\\n' {q} > s.sh; bash s.sh",
    "env sh -c {q}",
    "env A=b bash -c {q}",
    "nice -n 5 sh -c {q}",
    "nohup sh -c {q}",
    "timeout 5 sh -c {q}",
    "timeout -k 1 -s KILL 5s bash -c {q}",
    "setsid -w sh -c {q}",
    "stdbuf -oL sh -c {q}",
    "sudo sh -c {q}",
    "sudo -n -u root bash -c {q}",
    "doas sh -c {q}",
    "xargs -I{} sh -c {q} < list",
    "echo x | xargs -n 1 sh -c {q}",
    "find . -name x -exec sh -c {q} \\;",
    "flock /tmp/l -c {q}",
    "watch -n 1 {q}",
    "exec sh -c {q}",
    "(exec bash -c {q})",
    "shopt -s expand_aliases\nalias k={q}\nk",
    "f() { \"$@\"; }; f sh -c {q}",
    "set -- {q}; sh -c \"$1\"",
    "a=(sh -c {q}); \"${a[@]}\"",
    "python3 -c \"import os; os.system('''true''')\"; sh -c {q}",
];

/// Of the wrappings, those that are a finding whatever they wrap.
const NEVER_HARMLESS: &[&str] = &["sudo ", "doas "];

/// Commands that mean no harm, to stand before and after.
const NEIGHBOURS: &[&str] = &[
    "true",
    ":",
    "ls -la",
    "cd .",
    "echo done",
    "git status",
    "x=1",
    "export A=b",
    "# a note",
    "mkdir -p out",
    "test -e x || true",
    "cat README.md | head -3",
    "printf '%s\\n' 'rm -rf /'",
    "for i in 1 2; do echo $i; done",
    "f2() { echo; }",
    "cargo test > log 2>&1",
];

/// Commands that mean no harm, to stand in the place of one that does.
const HARMLESS: &[&str] =
    &["ls -la src", "echo hello world", "cat README.md", "git status --short", "grep -rn TODO src", "wc -l Cargo.toml"];

type Rewrite = fn(&str, &mut Random) -> Option<String>;

const PROPERTIES: &[(&str, Rewrite)] = &[
    ("wrapped", wrapped),
    ("wrapped twice", |text, random| wrapped(&wrapped(text, random)?, random)),
    ("quoted otherwise", quoted),
    ("padded", padded),
    ("options reordered", reordered),
    ("among harmless commands", among),
    ("several at once", |text, random| {
        among(&wrapped(&quoted(text, random).unwrap_or_else(|| text.to_owned()), random)?, random)
    }),
];
const WITHOUT_PAYLOAD: &str = "harmless in its place";

/// What was tried, and what broke.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases and failures of each property.
    pub rows: BTreeMap<&'static str, (u64, u64)>,
    /// The first failures of each: the property, the command, what became of it.
    pub broken: Vec<(&'static str, String, String)>,
}

/// How many failures of a property are kept.
const KEPT: u64 = 10;

impl Report {
    fn count(&mut self, name: &'static str, held: bool, before: &str, after: &str) {
        let row = self.rows.entry(name).or_default();
        row.0 += 1;
        if !held {
            row.1 += 1;
            if row.1 <= KEPT {
                self.broken.push((name, before.to_owned(), after.to_owned()));
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26} {:>9} {:>9}", "property", "cases", "BROKEN")?;
        self.rows.iter().try_for_each(|(name, (cases, broken))| writeln!(f, "{name:<26} {cases:>9} {broken:>9}"))
    }
}

/// Tries each property so many times on the commands of `corpus` that are denied.
pub fn run(guard: &Guard, corpus: &[String], cases: u64, seed: u64) -> Report {
    let here = Surroundings::new("/home/alice/proj", "/home/alice");
    let analyse = |text: &str| guard.analyse(text, &here);
    let whole = |facts: &CommandFacts| facts.parse != Parse::Opaque && !has_not_analysed(facts);
    let denied: Vec<&String> = corpus
        .iter()
        .filter(|text| text.len() < 1000 && !text.contains("<<") && !text.contains('\0'))
        .filter(|text| {
            let facts = analyse(text);
            decision(&facts) == Decision::Deny && whole(&facts)
        })
        .collect();
    let mut report = Report::default();
    if denied.is_empty() {
        return report;
    }
    for (index, (name, rewrite)) in PROPERTIES.iter().enumerate() {
        let mut random = Random::new(seed ^ (index as u64) << 32);
        let (mut done, mut tries) = (0, 0);
        while done < cases && tries < cases.saturating_mul(50) {
            tries += 1;
            let text = denied.get(random.below(denied.len())).map_or("", |text| text.as_str());
            let Some(after) = rewrite(text, &mut random) else { continue };
            done += 1;
            let facts = analyse(&after);
            // What a limit cut off asks, and says so.
            let limited = facts.findings.iter().any(|finding| finding.message.contains("the limit of"));
            report.count(name, limited || decision(&facts) == Decision::Deny, text, &after);
        }
    }
    let mut random = Random::new(seed);
    for _ in 0..cases {
        let text = random.pick(HARMLESS);
        let padding = padded(text, &mut random).unwrap_or_default();
        let Some(after) = wrapped(&padding, &mut random).and_then(|text| among(&text, &mut random)) else { continue };
        if !NEVER_HARMLESS.iter().any(|start| after.contains(start)) {
            report.count(WITHOUT_PAYLOAD, analyse(&after).findings.is_empty(), text, &after);
        }
    }
    report
}

fn decision(facts: &CommandFacts) -> Decision {
    StageVerdict::new(Stage::Command, facts.findings.clone()).decision
}

fn has_not_analysed(facts: &CommandFacts) -> bool {
    facts.findings.iter().any(|finding| finding.id == "command.not-fully-analysed")
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `None` where the text would not be the same command inside.
fn wrapped(text: &str, random: &mut Random) -> Option<String> {
    let template = random.pick(WRAPPINGS);
    // A continued last line takes what follows along; an alias is one line.
    let open = text.ends_with('\\') || text.contains("EOT") && template.contains("EOT");
    let one_line = template.starts_with("shopt") || template.starts_with("watch") || template.starts_with("xargs -I{}");
    // Both put words of their own for `{}` within the command.
    let fills = template.starts_with("xargs -I{}") || template.starts_with("find ");
    if open || one_line && text.contains('\n') || fills && text.contains("{}") {
        return None;
    }
    let (slot, fill) = if template.contains("{q}") { ("{q}", single(text)) } else { ("{}", text.to_owned()) };
    Some(template.replacen(slot, &fill, 1))
}

fn among(text: &str, random: &mut Random) -> Option<String> {
    let mut lines: Vec<&str> = (0..random.below(3)).map(|_| random.pick(NEIGHBOURS)).collect();
    lines.push(text);
    lines.extend((0..random.below(3)).map(|_| random.pick(NEIGHBOURS)));
    (!text.ends_with('\\')).then(|| lines.join("\n"))
}

fn padded(text: &str, random: &mut Random) -> Option<String> {
    let before = random.pick(&["", " ", "\t", "\n", "  \n\t", ":;", "# note\n", "\\\n", "true;"]);
    let after = random.pick(&["", " ", "\t", "\n", " # end", "\n# end", ";", " ;:", " \n\n"]);
    let cut = text.ends_with(['\\', '&', ';', '|']) && after.starts_with([' ', ';']);
    (!cut && !text.contains('#')).then(|| format!("{before}{text}{after}"))
}

/// A single simple command of ordinary words, which mean the same however they are quoted.
fn plain_words(text: &str) -> Option<Vec<&str>> {
    const RESERVED: &[&str] = &[
        "if", "then", "for", "in", "until", "while", "do", "done", "case", "esac", "coproc", "select", "function",
        "time",
    ];
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b" /._-:@%+,".contains(&byte);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let first = words.first()?;
    (text.bytes().all(ordinary) && !RESERVED.contains(first)).then_some(words)
}

fn quoted(text: &str, random: &mut Random) -> Option<String> {
    let mut spell = |word: &str| match random.below(7) {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => word.chars().flat_map(|letter| ['\\', letter]).collect(),
        3 => format!("''{word}\"\""),
        4 => word.bytes().fold("$'".to_owned(), |text, byte| format!("{text}\\x{byte:02x}")) + "'",
        5 => word.chars().map(|letter| format!("'{letter}'")).collect(),
        _ => word.to_owned(),
    };
    Some(plain_words(text)?.into_iter().map(&mut spell).collect::<Vec<_>>().join(" "))
}

/// Programs whose short options are switches and may come in any order.
const SWITCHES: &[&str] = &["rm", "chmod", "chown", "cp", "mv"];

fn reordered(text: &str, random: &mut Random) -> Option<String> {
    let words = plain_words(text)?;
    let (program, rest) = words.split_first()?;
    let mut letters: Vec<char> = Vec::new();
    let mut long: Vec<&str> = Vec::new();
    let mut operands: Vec<&str> = Vec::new();
    for word in rest {
        match word.strip_prefix('-') {
            _ if *word == "--" => return None,
            Some(name) if name.starts_with('-') => long.push(word),
            Some(cluster) if cluster.chars().all(char::is_alphabetic) && !cluster.is_empty() => {
                letters.extend(cluster.chars())
            }
            _ => operands.push(word),
        }
    }
    if !SWITCHES.contains(program) || letters.len() + long.len() < 1 {
        return None;
    }
    let mut options: Vec<String> = long.into_iter().map(str::to_owned).collect();
    while !letters.is_empty() {
        let take = 1 + random.below(letters.len());
        let cluster: String = (0..take).map(|_| letters.swap_remove(random.below(letters.len()))).collect();
        options.push(format!("-{cluster}"));
    }
    let mut out = vec![(*program).to_owned()];
    let mut operands = operands.into_iter();
    while !options.is_empty() {
        // The mode of chmod stays the first operand.
        if random.once_in(3)
            && let Some(operand) = operands.next()
        {
            out.push(operand.to_owned());
        }
        out.push(options.swap_remove(random.below(options.len())));
    }
    out.extend(operands.map(str::to_owned));
    Some(out.join(" "))
}
