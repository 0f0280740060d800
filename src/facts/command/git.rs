//! git(1): its options and settings that run programs, and what its commands do to history.

use super::notes::Act;
use super::options::Options;
use super::walk::Walker;
use crate::facts::path::Access;

/// Settings whose value is a command line.
const PROGRAMS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.gitproxy",
    "core.askpass",
    "sequence.editor",
    "diff.external",
    "gpg.program",
    "credential.helper",
    "uploadpack.packobjectshook",
    "core.alternaterefscommand",
    "interactive.difffilter",
    "init.templatedir",
];

/// Options of git itself with a value.
const OWN: &[&str] = &["git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path"];

pub(super) fn acts(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let mut i = 0;
    let mut aliases = Vec::new();
    let mut directory = None;
    while let Some(arg) = args.get(i) {
        let value = args.get(i + 1).map(String::as_str).unwrap_or_default();
        match arg.as_str() {
            "-c" => {
                setting(walker, value, &mut aliases);
                i += 1;
            }
            "-C" => {
                directory = Some(value.to_owned());
                i += 1;
            }
            long if long.strip_prefix("--").is_some_and(|name| OWN.contains(&name)) => i += 1,
            option if option.starts_with('-') => {}
            _ => break,
        }
        i += 1;
    }
    let Some(command) = args.get(i) else { return Vec::new() };
    let rest = args.get(i + 1..).unwrap_or_default();
    if let Some((_, text)) = aliases.iter().find(|(name, _)| name == command) {
        let text = format!("{text} {}", rest.join(" "));
        walker.subshell(|walker| match text.strip_prefix('!') {
            Some(text) => walker.run_text(text),
            None => walker.run_text(&format!("git {text}")),
        });
    }
    let saved = directory.map(|directory| {
        let cwd = walker.target(&directory).path;
        std::mem::replace(&mut walker.env.cwd, cwd)
    });
    runs(walker, command, rest);
    let mut acts = files(walker, command, rest);
    acts.extend(super::files::git(walker, command, rest));
    if let Some(cwd) = saved {
        walker.env.cwd = cwd;
    }
    acts
}

fn setting(walker: &mut Walker<'_>, setting: &str, aliases: &mut Vec<(String, String)>) {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.to_ascii_lowercase();
    if let Some(name) = key.strip_prefix("alias.") {
        aliases.push((name.to_owned(), value.to_owned()));
        return;
    }
    let named = PROGRAMS.contains(&key.as_str())
        || [
            "pager.",
            "difftool.",
            "mergetool.",
            "filter.",
            "browser.",
            "man.",
            "merge.",
            "diff.",
            "trailer.",
            "remote.",
            "url.",
            "submodule.",
            "credential.",
        ]
        .iter()
        .any(|prefix| {
            key.starts_with(prefix)
                && [
                    ".cmd",
                    ".clean",
                    ".smudge",
                    ".process",
                    ".driver",
                    ".textconv",
                    ".command",
                    ".uploadpack",
                    ".receivepack",
                    ".helper",
                    ".update",
                    ".program",
                ]
                .iter()
                .any(|end| key.ends_with(end))
        })
        || key.starts_with("pager.");
    if named && !matches!(value, "true" | "false" | "") {
        let text = value.trim_start_matches('!').to_owned();
        walker.subshell(|walker| walker.run_text(&text));
    }
}

/// Options of git's commands that run programs.
fn runs(walker: &mut Walker<'_>, command: &str, rest: &[String]) {
    let texts: Vec<String> = match command {
        "rebase" => {
            let options = Options::read(rest, "xXsC", &["exec", "onto"]);
            options.values('x').into_iter().chain(options.long_values("exec")).collect()
        }
        "submodule" => match rest.iter().position(|arg| arg == "foreach") {
            Some(at) => vec![
                rest.get(at + 1..)
                    .unwrap_or_default()
                    .iter()
                    .filter(|arg| *arg != "--recursive" && *arg != "-q")
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(" "),
            ],
            None => Vec::new(),
        },
        "bisect" if rest.first().is_some_and(|arg| arg == "run") => vec![rest.get(1..).unwrap_or_default().join(" ")],
        "grep" => rest
            .iter()
            .filter_map(|arg| arg.strip_prefix("-O").or_else(|| arg.strip_prefix("--open-files-in-pager=")))
            .map(str::to_owned)
            .collect(),
        "difftool" | "mergetool" => {
            let options = Options::read(rest, "xt", &["extcmd", "tool"]);
            options.values('x').into_iter().chain(options.long_values("extcmd")).collect()
        }
        "filter-branch" => {
            let names = [
                "tree-filter",
                "index-filter",
                "env-filter",
                "msg-filter",
                "parent-filter",
                "commit-filter",
                "tag-name-filter",
                "setup",
            ];
            let options = Options::read(rest, "", &names);
            names.iter().flat_map(|name| options.long_values(name)).collect()
        }
        "config" => {
            let operands: Vec<&String> = rest.iter().filter(|arg| !arg.starts_with('-')).collect();
            let operands = if operands.first().is_some_and(|arg| *arg == "set") {
                operands.get(1..).unwrap_or_default()
            } else {
                &operands
            };
            if let [key, value] = operands {
                let mut aliases = Vec::new();
                setting(walker, &format!("{key}={value}"), &mut aliases);
                aliases.into_iter().filter_map(|(_, text)| text.strip_prefix('!').map(str::to_owned)).collect()
            } else {
                Vec::new()
            }
        }
        "log" | "diff" | "show" => Vec::new(),
        _ => {
            let options = Options::read(rest, "u", &["upload-pack", "receive-pack", "exec", "config"]);
            let mut texts = options.long_values("upload-pack");
            texts.extend(options.long_values("receive-pack"));
            texts.extend(options.long_values("exec"));
            if matches!(command, "clone" | "fetch" | "ls-remote") {
                texts.extend(options.values('u'));
            }
            for operand in &options.operands {
                if let Some(text) = operand.strip_prefix("ext::") {
                    texts.push(text.to_owned());
                }
            }
            texts
        }
    };
    for text in texts {
        walker.subshell(|walker| walker.run_text(&text));
    }
}

fn files(walker: &mut Walker<'_>, command: &str, rest: &[String]) -> Vec<Act> {
    match command {
        "rm" => {
            let options = Options::read(rest, "", &["pathspec-from-file"]);
            if options.has_long("cached", 3) || options.has('n') || options.has_long("dry-run", 3) {
                return Vec::new();
            }
            walker.acts("delete", &options.operands, options.has('r'), Access::Delete)
        }
        "clean" => {
            let options = Options::read(rest, "e", &["exclude"]);
            if options.has('n') || options.has_long("dry-run", 3) || !(options.has('f') || options.has_long("force", 2))
            {
                return Vec::new();
            }
            let mut operands = options.operands.clone();
            if operands.is_empty() {
                operands.push(".".to_owned());
            }
            walker.acts("delete", &operands, options.has('d'), Access::Delete)
        }
        _ => Vec::new(),
    }
}
