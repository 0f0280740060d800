//! The grammar against bash's own: trees of bash 5.3, and what `bash -n` accepts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::parse::parse;
use super::syntax::{Command, Kind, List, Pipeline};
use crate::facts::command::limits::Limits;

fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PORTCULLIS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join(path);
    path.exists().then_some(path)
}

fn files(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "tests") {
            out.push(path);
        }
    }
}

/// The cases of a file: `=== name`, the input, `---`, the tree, `---`.
fn cases(text: &str) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("=== ") else { continue };
        let mut part = || lines.by_ref().take_while(|line| *line != "---").collect::<Vec<_>>().join("\n");
        let (input, tree) = (part(), part());
        out.push((name.to_owned(), input, tree));
    }
    out
}

/// The first words of the commands in a tree, as written.
fn words_of_tree(tree: &str) -> Vec<String> {
    let mut out = Vec::new();
    for rest in tree.split("(command ").skip(1) {
        let mut rest = rest;
        while let Some(word) = rest.strip_prefix("(word \"") {
            let mut text = String::new();
            let mut chars = word.char_indices();
            let mut end = word.len();
            while let Some((i, c)) = chars.next() {
                match c {
                    '\\' => match chars.next() {
                        Some((_, 'n')) => text.push('\n'),
                        Some((_, 't')) => text.push('\t'),
                        Some((_, c)) => text.push(c),
                        None => {}
                    },
                    '"' => {
                        end = i;
                        break;
                    }
                    c => text.push(c),
                }
            }
            if !is_assignment(&text) {
                out.push(text);
                break;
            }
            rest = word.get(end + 1..).unwrap_or_default().trim_start_matches([')', ' ']);
        }
    }
    out
}

fn is_assignment(text: &str) -> bool {
    let name = text.split(['=', '[', '+']).next().unwrap_or_default();
    text.len() > name.len()
        && !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && (text.get(name.len()..).is_some_and(|rest| {
            rest.starts_with('=') || rest.starts_with("+=") || rest.contains("]=") || rest.contains("]+=")
        }))
}

/// A word up to its first quote or expansion, which bash prints in its own way.
fn start(text: &str) -> String {
    let end = text.find(['\'', '"', '\\', '$', '`', '<', '>']).unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}

fn words_of_list(list: &List, text: &str, out: &mut BTreeSet<String>) {
    for item in list {
        for pipeline in std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)) {
            words_of_pipeline(pipeline, text, out);
        }
    }
}

fn words_of_pipeline(pipeline: &Pipeline, text: &str, out: &mut BTreeSet<String>) {
    for command in &pipeline.commands {
        words_of_command(command, text, out);
    }
}

fn words_of_command(command: &Command, text: &str, out: &mut BTreeSet<String>) {
    let mut list = |list: &List| words_of_list(list, text, out);
    match &command.kind {
        Kind::Simple { words, .. } => {
            if let Some(word) = words.first() {
                out.insert(start(text.get(word.span.clone()).unwrap_or_default()));
            }
        }
        Kind::Group(body) | Kind::Subshell(body) | Kind::For { body, .. } | Kind::ArithmeticFor { body, .. } => {
            list(body)
        }
        Kind::If { branches, otherwise } => {
            for (condition, then) in branches {
                list(condition);
                list(then);
            }
            otherwise.iter().for_each(list);
        }
        Kind::While { condition, body, .. } => {
            list(condition);
            list(body);
        }
        Kind::Case { arms, .. } => arms.iter().for_each(|arm| list(&arm.list)),
        Kind::Function { body, .. } => words_of_command(body, text, out),
        Kind::Coprocess(command) => words_of_command(command, text, out),
        Kind::Arithmetic(_) | Kind::Test(_) => {}
    }
}

#[test]
fn every_command_word_of_bashs_own_trees_is_found() {
    let Some(root) = shared("cases/parable/tests") else {
        eprintln!("SKIPPED: the trees of bash are not here; 0 inputs looked at");
        return;
    };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let (mut all, mut words) = (0_usize, 0_usize);
    let (mut missing, mut unparsed) = (Vec::new(), Vec::new());
    for path in paths {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("readable")).into_owned();
        for (name, input, tree) in cases(&text) {
            if tree.trim() == "<error>" || tree.trim().is_empty() {
                continue;
            }
            all += 1;
            let parsed = parse(&input, None, &Limits::default());
            let label = format!("{} `{name}`: {input:?}", path.file_name().unwrap_or_default().to_string_lossy());
            if let Some(problem) = parsed.problem {
                unparsed.push(format!("{label}: {problem:?}"));
                continue;
            }
            let mut found = BTreeSet::new();
            words_of_list(&parsed.list, &input, &mut found);
            for word in words_of_tree(&tree) {
                words += 1;
                // Extended patterns are off in scripts: there `!` is a negation.
                if !found.contains(&start(&word)) && !word.starts_with('!') {
                    missing.push(format!("{word:?} of {label} (found {found:?})"));
                }
            }
        }
    }
    println!("{all} inputs with {words} command words: {} missing, {} not analysable", missing.len(), unparsed.len());
    for line in missing.iter().chain(&unparsed) {
        println!("{line}");
    }
    assert!(missing.is_empty(), "{} command words were not found:\n{}", missing.len(), missing.join("\n"));
    assert!(unparsed.len() * 100 < all, "{} of {all} are not analysable:\n{}", unparsed.len(), unparsed.join("\n"));
}
