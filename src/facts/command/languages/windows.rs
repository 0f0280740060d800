//! `cmd /c` and PowerShell, as far as their plain commands go.

use std::collections::HashMap;

use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::inert;

/// The most statements that are looked at.
const STATEMENTS: usize = 500;

pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    if name == "cmd" {
        if let Some(text) = cmd_text(args) {
            for statement in split(&text, &['&', '|', '\n']) {
                run_words(walker, words(&statement));
            }
        }
        return Vec::new();
    }
    let text = match powershell_text(args) {
        Some(text) if text != "-" => Some(text),
        _ => walker.env.stdin.as_deref().map(str::to_owned),
    };
    if let Some(text) = text {
        let mut variables = HashMap::new();
        powershell(walker, &inert(&text), &mut variables);
    }
    Vec::new()
}

type Variables = HashMap<String, String>;

fn powershell(walker: &mut Walker<'_>, text: &str, variables: &mut Variables) {
    let mut given = Vec::new();
    let statements = split(text, &[';', '|', '\n', '{', '}']);
    if statements.len() > STATEMENTS {
        walker.limited("inline code");
    }
    for statement in statements.iter().take(STATEMENTS) {
        let statement = statement.trim();
        if let Some((name, value)) = statement.strip_prefix('$').and_then(|rest| rest.split_once('='))
            && name.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            let value = joined(value, variables);
            variables.insert(name.trim().to_ascii_lowercase(), value);
            continue;
        }
        static_calls(walker, statement, variables);
        nested(walker, statement);
        let mut argv = words(&joined(statement, variables));
        if let Some(first) = argv.first_mut() {
            *first = first.trim_start_matches(['&', '(', '@', '.']).trim_end_matches(')').to_ascii_lowercase();
        }
        argv.retain(|word| !word.is_empty() && word != "(" && word != ")");
        let Some((first, rest)) = argv.split_first() else { continue };
        let rest = rest.to_vec();
        walker.judge(first, &rest, &[]);
        match first.as_str() {
            "invoke-expression" | "iex" | "invoke-command" | "icm" => {
                let text = rest.iter().filter(|word| !word.starts_with('-')).cloned().collect::<Vec<_>>().join(" ");
                let text = text.trim_matches(['(', ')', '{', '}']).to_owned();
                if !text.is_empty() {
                    walker.deeper(|walker| powershell(walker, &text, variables));
                }
            }
            "start-process" | "saps" | "start" => {
                let options =
                    ["-filepath", "-argumentlist", "-args", "-wait", "-nonewwindow", "-verb", "runas", "-passthru"];
                let words = rest.iter().flat_map(|word| word.split(','));
                let argv: Vec<String> = words
                    .filter(|word| !word.is_empty() && !options.contains(&word.to_ascii_lowercase().as_str()))
                    .map(str::to_owned)
                    .collect();
                run_words(walker, argv);
            }
            "remove-item" | "ri" | "rm" | "del" | "rmdir" if rest.iter().all(|word| word.starts_with('-')) => {
                // What comes through the pipe is removed.
                let argv = std::iter::once("remove-item".to_owned()).chain(rest).chain(given.clone()).collect();
                run_words(walker, argv);
            }
            _ => run_words(walker, argv.clone()),
        }
        given = argv.iter().skip(1).filter(|word| !word.starts_with('-')).cloned().collect();
    }
}

fn run_words(walker: &mut Walker<'_>, argv: Vec<String>) {
    if argv.first().is_some_and(|first| !first.is_empty()) {
        walker.subshell(|walker| walker.exec_texts(argv));
    }
}

/// `[System.IO.Directory]::Delete('/', $true)`.
fn static_calls(walker: &mut Walker<'_>, statement: &str, variables: &Variables) {
    let lower = statement.to_ascii_lowercase();
    let Some(at) = lower.find("]::delete(") else { return };
    let args = statement.get(at + 10..).unwrap_or_default();
    let args = joined(args.split(')').next().unwrap_or_default(), variables);
    let path = args.split(',').next().unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned();
    let mut argv = vec!["remove-item".to_owned(), path];
    if lower.contains("directory]") {
        argv.push("-recurse".to_owned());
    }
    run_words(walker, argv);
}

/// `'a' + 'b'` put together, and variables in their place.
fn joined(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    for (i, part) in text.split('+').enumerate() {
        let before = out.trim_end();
        let after = part.trim_start();
        let texts = before.ends_with(['\'', '"']) && after.starts_with(['\'', '"']);
        if texts {
            out.truncate(before.len() - 1);
            out.push_str(after.get(1..).unwrap_or_default());
        } else {
            if i > 0 {
                out.push('+');
            }
            out.push_str(part);
        }
    }
    let mut rest = out.as_str();
    let mut filled = String::new();
    while let Some((head, tail)) = rest.split_once('$') {
        filled.push_str(head);
        let len = tail.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':')).count();
        let (name, after) = tail.split_at_checked(len).unwrap_or((tail, ""));
        match variables.get(&name.to_ascii_lowercase()) {
            Some(value) if filled.len() + value.len() < 64 * 1024 => filled.push_str(value.trim()),
            _ => {
                filled.push('$');
                filled.push_str(name);
            }
        }
        rest = after;
    }
    filled + rest
}

/// What stands in parentheses runs first: `iex (iwr https://...)`.
fn nested(walker: &mut Walker<'_>, statement: &str) {
    let lower = statement.to_ascii_lowercase();
    let evaluates = ["iex", "invoke-expression"].iter().any(|name| lower.contains(name));
    let fetches = ["iwr", "irm", "invoke-webrequest", "invoke-restmethod", "downloadstring", "curl", "wget"]
        .iter()
        .any(|name| lower.contains(name));
    if evaluates && fetches && lower.contains('(') {
        walker.event("fetch-and-run");
    }
}

fn cmd_text(args: &[String]) -> Option<String> {
    let at = args.iter().position(|arg| arg.eq_ignore_ascii_case("/c") || arg.eq_ignore_ascii_case("/k"))?;
    Some(args.get(at + 1..)?.join(" "))
}

fn powershell_text(args: &[String]) -> Option<String> {
    const VALUED: &[&str] = &[
        "-executionpolicy",
        "-ep",
        "-ex",
        "-windowstyle",
        "-version",
        "-outputformat",
        "-inputformat",
        "-workingdirectory",
        "-wd",
    ];
    let mut i = 0;
    while let Some(arg) = args.get(i) {
        let lower = arg.to_ascii_lowercase();
        if lower == "-" {
            return Some("-".to_owned());
        }
        if lower.len() > 1 && "-command".starts_with(&lower) {
            return Some(args.get(i + 1..)?.join(" "));
        }
        if lower.len() > 1 && "-encodedcommand".starts_with(&lower) || matches!(lower.as_str(), "-enc" | "-ec") {
            return decode_utf16(args.get(i + 1)?);
        }
        if !lower.starts_with('-') {
            return Some(args.get(i..)?.join(" "));
        }
        i += if VALUED.contains(&lower.as_str()) { 2 } else { 1 };
    }
    None
}

/// `-EncodedCommand` is UTF-16 in base64.
fn decode_utf16(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()?;
    let units: Vec<u16> =
        bytes.chunks_exact(2).filter_map(|pair| <[u8; 2]>::try_from(pair).ok()).map(u16::from_le_bytes).collect();
    Some(text::sanitise(&String::from_utf16_lossy(&units)).into_owned())
}

fn split(text: &str, at: &[char]) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if at.contains(&c) => {
                out.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    out
}

/// Words as quotes keep them together.
fn words(text: &str) -> Vec<String> {
    split(text, &[' ', '\t'])
        .into_iter()
        .map(|word| word.replace(['"', '\''], ""))
        .filter(|word| !word.is_empty())
        .collect()
}
