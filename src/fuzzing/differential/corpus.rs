//! Lines that people wrote, with harmless words in the place of theirs: the structure stays, and nothing of what the line
//! did is left.

use super::bash::STUBS;
use crate::fuzzing::random::Random;

/// Words that stay: they are the shell's own, or programs of the yard.
const KEPT: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "until",
    "case",
    "esac",
    "select",
    "function",
    "time",
    "coproc",
    "echo",
    "printf",
    "cd",
    "pushd",
    "popd",
    "pwd",
    "read",
    "eval",
    "exec",
    "source",
    "command",
    "builtin",
    "trap",
    "set",
    "unset",
    "shift",
    "export",
    "declare",
    "local",
    "readonly",
    "typeset",
    "test",
    "true",
    "false",
    "exit",
    "return",
    "break",
    "continue",
    "wait",
    "let",
    "alias",
    "shopt",
    "mapfile",
    "readarray",
    "getopts",
    "env",
    "xargs",
    "timeout",
    "nohup",
    "nice",
    "sh",
    "bash",
    "cat",
    "base64",
    "tr",
    "rev",
    "tee",
    "EXIT",
    "ERR",
    "DEBUG",
    "HOME",
    "IFS",
    "PWD",
    "expand_aliases",
];
const ARGUMENTS: &[&str] = &["k", "l", "a.txt", "sub", "x1", "k=v", "sub/e.txt", "7"];
const PATHS: &[&str] = &["sub", "sub/k", "./k", "sub/deep", "a.txt", "../y", "~/k"];
/// What may be put between two words.
const JOINTS: &[&str] =
    &["; ", " && ", " || ", " | ", " & ", "\n", " > out ", " \"", " '", " $(", ") ", " `", " \\\n", " {a,b} ", " * "];

/// A line with its words replaced; `None` where it might go on for ever.
pub(super) fn harmless(line: &str, random: &mut Random) -> Option<String> {
    const ENDLESS: &[&str] = &[
        "while true",
        "while :",
        "while [ 1",
        "while sleep",
        "while ((1",
        "until false",
        "for ((;;",
        "for((;;",
        "for (( ;",
    ];
    if line.len() > 600 || ENDLESS.iter().any(|text| line.contains(text)) {
        return None;
    }
    let mut out = String::new();
    let mut words: Vec<(&str, &str)> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_alphanumeric() || "_./~-:@%+,".contains(c);
        let end = rest.find(|c| in_word(c) != in_word(first)).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        rest = tail;
        if !in_word(first) || stays(head, &out) {
            out.push_str(head);
            continue;
        }
        let known = words.iter().find(|(word, _)| *word == head).map(|(_, with)| *with);
        let with = known.unwrap_or_else(|| match head {
            _ if head.contains(['/', '~']) => random.pick(PATHS),
            _ if head.contains('.') || random.once_in(3) => random.pick(ARGUMENTS),
            _ => random.pick(STUBS),
        });
        words.push((head, with));
        out.push_str(with);
    }
    if random.once_in(4) {
        let blanks: Vec<usize> = out.match_indices(' ').map(|(at, _)| at).collect();
        if !blanks.is_empty() {
            let at = blanks[random.below(blanks.len())];
            out.replace_range(at..=at, random.pick(JOINTS));
        }
    }
    Some(out)
}

/// Options, numbers, the shell's own words and the names of variables mean nothing but themselves.
fn stays(word: &str, before: &str) -> bool {
    KEPT.contains(&word)
        || word == "/dev/null"
        || word.starts_with('-') && !word.contains('/')
        || word.chars().all(|c| c.is_ascii_digit() || !c.is_alphanumeric() && c != '/')
        || before.ends_with(['$', '!', '\\'])
        || before.ends_with("${")
        || before.ends_with("${#")
}
