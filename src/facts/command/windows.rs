//! `cmd /c` and PowerShell, as far as their plain commands go.

use super::notes::Act;
use super::walk::Walker;

pub(super) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let text = if name == "cmd" { cmd_text(args) } else { powershell_text(args) };
    let Some(text) = text else { return Vec::new() };
    for statement in split(&text, if name == "cmd" { &['&', '|', '\n'] } else { &[';', '|', '\n', '{', '}'] }) {
        let mut argv = words(&statement);
        if let Some(first) = argv.first_mut() {
            *first = first.trim_start_matches(['&', '(', '@']).to_ascii_lowercase();
        }
        if argv.first().is_some_and(|first| !first.is_empty()) {
            if statement.contains('(') {
                nested(walker, &statement);
            }
            walker.subshell(|walker| walker.exec_texts(argv));
        }
    }
    Vec::new()
}

/// What stands in parentheses runs first: `iex (iwr https://...)`.
fn nested(walker: &mut Walker<'_>, statement: &str) {
    let lower = statement.to_ascii_lowercase();
    let evaluates = ["iex", "invoke-expression"].iter().any(|name| lower.contains(name));
    let fetches = ["iwr", "irm", "invoke-webrequest", "invoke-restmethod", "downloadstring", "curl", "wget"]
        .iter()
        .any(|name| lower.contains(name));
    if evaluates && fetches {
        walker.event("fetch-and-run");
    }
}

fn cmd_text(args: &[String]) -> Option<String> {
    let at = args.iter().position(|arg| arg.eq_ignore_ascii_case("/c") || arg.eq_ignore_ascii_case("/k"))?;
    Some(args.get(at + 1..)?.join(" "))
}

fn powershell_text(args: &[String]) -> Option<String> {
    for (i, arg) in args.iter().enumerate() {
        let lower = arg.to_ascii_lowercase();
        if lower.len() > 1 && "-command".starts_with(&lower) {
            return Some(args.get(i + 1..)?.join(" "));
        }
        if lower.len() > 1 && "-encodedcommand".starts_with(&lower) || lower == "-enc" {
            return decode_utf16(args.get(i + 1)?);
        }
    }
    args.iter().find(|arg| !arg.starts_with('-')).cloned()
}

/// `-EncodedCommand` is UTF-16 in base64.
fn decode_utf16(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()?;
    let units: Vec<u16> =
        bytes.chunks_exact(2).filter_map(|pair| <[u8; 2]>::try_from(pair).ok()).map(u16::from_le_bytes).collect();
    Some(super::text::sanitise(&String::from_utf16_lossy(&units)).into_owned())
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
pub(super) fn words(text: &str) -> Vec<String> {
    split(text, &[' ', '\t'])
        .into_iter()
        .map(|word| word.replace(['"', '\''], ""))
        .filter(|word| !word.is_empty())
        .collect()
}
