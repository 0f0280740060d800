//! git(1): its options and settings that run programs, and what its commands do to files. History is the rules' matter.

use crate::facts::command::notes::Act;
use crate::facts::command::shell::env;
use crate::facts::command::shell::exec;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::wrappers;
use crate::facts::command::wrappers::options;
use crate::facts::command::wrappers::options::{Options, shell_words};
use crate::facts::path::Access;

/// Settings whose value is a command line, in full or by their section and last part.
const PROGRAMS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.gitproxy",
    "core.askpass",
    "core.alternaterefscommand",
    "sequence.editor",
    "diff.external",
    "interactive.difffilter",
    "uploadpack.packobjectshook",
    "gpg.*.program",
    "gpg.program",
    "gpg.ssh.defaultkeycommand",
    "credential.*.helper",
    "credential.helper",
    "difftool.*.cmd",
    "difftool.*.path",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "browser.*.cmd",
    "browser.*.path",
    "man.*.cmd",
    "man.*.path",
    "filter.*.clean",
    "filter.*.smudge",
    "filter.*.process",
    "merge.*.driver",
    "diff.*.textconv",
    "diff.*.command",
    "diff.*.external",
    "trailer.*.command",
    "trailer.*.cmd",
    "remote.*.uploadpack",
    "remote.*.receivepack",
    "remote.*.vcs",
    "submodule.*.update",
    "tar.*.command",
    "sendemail.smtpserver",
    "sendemail.*.smtpserver",
    "sendemail.tocmd",
    "sendemail.cccmd",
    "sendemail.headercmd",
    "sendemail.sendmailcmd",
    "web.browser",
    "instaweb.httpd",
    "imap.tunnel",
    "hook.*.command",
    "guitool.*.cmd",
    "pager.*",
];

/// Options of git itself with a value.
const OWN: &[&str] = &["git-dir", "work-tree", "namespace", "super-prefix", "config-env", "attr-source"];

pub(crate) fn acts(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    // `-C`, `--work-tree` and aliases end with this command.
    let saved = walker.env.clone();
    let acts = command(walker, args);
    walker.env = saved;
    acts
}

fn command(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let mut i = 0;
    let mut aliases = Vec::new();
    let mut tree = walker.env.get("GIT_WORK_TREE").map(|value| match value {
        env::Value::Text(text) => text.clone(),
        _ => text::UNKNOWN.to_string(),
    });
    while let Some(arg) = args.get(i) {
        let value = args.get(i + 1).map(String::as_str).unwrap_or_default();
        match arg.as_str() {
            "-c" => {
                setting(walker, value, &mut aliases);
                i += 1;
            }
            "-C" => {
                walker.env.cwd = walker.target(value).path;
                walker.env.other_cwds.clear();
                i += 1;
            }
            "--work-tree" => {
                tree = Some(value.to_owned());
                i += 1;
            }
            "--config-env" => {
                from_environment(walker, value, &mut aliases);
                i += 1;
            }
            "--exec-path" => {}
            long if long.strip_prefix("--").is_some_and(|name| OWN.contains(&name)) => i += 1,
            option if option.starts_with('-') => {
                tree = option.strip_prefix("--work-tree=").map(str::to_owned).or(tree);
                if let Some(value) = option.strip_prefix("--config-env=") {
                    from_environment(walker, value, &mut aliases);
                }
            }
            _ => break,
        }
        i += 1;
    }
    environment_aliases(walker, &mut aliases);
    let Some(command) = args.get(i) else { return Vec::new() };
    let rest = args.get(i + 1..).unwrap_or_default();
    if let Some((_, text)) = aliases.iter().find(|(name, _)| name == command) {
        run_alias(walker, text, rest);
    }
    runs(walker, command, rest);
    if let Some(tree) = tree {
        walker.env.cwd = walker.target(&tree).path;
    }
    let mut acts = files(walker, command, rest);
    acts.extend(super::files::git(walker, command, rest));
    acts
}

/// An alias: `!` starts a shell's text, anything else is a command of git.
fn run_alias(walker: &mut Walker<'_>, text: &str, rest: &[String]) {
    let quoted: Vec<String> = rest.iter().map(|arg| exec::quote(arg)).collect();
    match text.strip_prefix('!') {
        Some(text) => walker.subshell(|walker| walker.run_text(&format!("{text} {}", quoted.join(" ")))),
        None => {
            let argv = std::iter::once("git".to_owned()).chain(shell_words(text)).chain(rest.iter().cloned()).collect();
            walker.subshell(|walker| walker.exec_texts(argv))
        }
    };
}

/// `--config-env=name=VARIABLE`.
fn from_environment(walker: &mut Walker<'_>, text: &str, aliases: &mut Vec<(String, String)>) {
    if let Some((key, variable)) = text.rsplit_once('=')
        && let Some(env::Value::Text(value)) = walker.env.get(variable).cloned()
    {
        setting(walker, &format!("{key}={value}"), aliases);
    }
}

/// Aliases among the settings of `GIT_CONFIG_KEY_n` and `GIT_CONFIG_VALUE_n`.
fn environment_aliases(walker: &mut Walker<'_>, aliases: &mut Vec<(String, String)>) {
    for n in 0..16 {
        let text = |name: &str| match walker.env.get(&format!("GIT_CONFIG_{name}_{n}")) {
            Some(env::Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let (Some(key), Some(value)) = (text("KEY"), text("VALUE")) else { return };
        setting(walker, &format!("{key}={value}"), aliases);
    }
}

/// Settings in `GIT_CONFIG_PARAMETERS`: `'key=value'` or `'key'='value'`.
pub(crate) fn parameters(walker: &mut Walker<'_>, text: &str) {
    let mut aliases = Vec::new();
    for word in shell_words(text) {
        setting(walker, &word, &mut aliases);
    }
    run_aliases(walker, aliases);
}

/// Which command will use an alias is not known here.
fn run_aliases(walker: &mut Walker<'_>, aliases: Vec<(String, String)>) {
    for (_, text) in aliases {
        if let Some(text) = text.strip_prefix('!') {
            walker.subshell(|walker| walker.run_text(text));
        }
    }
}

/// Whether a setting's value is a command line.
fn is_program(key: &str) -> bool {
    PROGRAMS.iter().any(|known| match known.split_once('*') {
        Some((start, end)) => key.len() > start.len() + end.len() && key.starts_with(start) && key.ends_with(end),
        None => key == *known,
    })
}

fn setting(walker: &mut Walker<'_>, setting: &str, aliases: &mut Vec<(String, String)>) {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.trim().to_ascii_lowercase();
    if let Some(name) = key.strip_prefix("alias.") {
        aliases.push((name.to_owned(), value.to_owned()));
        return;
    }
    if matches!(key.as_str(), "include.path") || (key.starts_with("includeif.") && key.ends_with(".path")) {
        included(walker, value, aliases);
        return;
    }
    if key.ends_with(".insteadof") || key.ends_with(".pushinsteadof") {
        // `url.ext::sh -c ....insteadOf`: the key is what becomes of the address.
        if let Some(text) = setting.strip_prefix("url.").and_then(|text| text.rsplit_once('.')) {
            address(walker, text.0);
        }
        return;
    }
    if key.starts_with("remote.") && (key.ends_with(".url") || key.ends_with(".pushurl")) {
        address(walker, value);
        return;
    }
    // A host's name runs nothing.
    let plain = key.ends_with("smtpserver") && !value.starts_with(['/', '~']) && !value.contains(' ');
    let unchanged = matches!(value, "true" | "false" | "" | "merge" | "rebase" | "none" | "checkout" | "0" | "1");
    if is_program(&key) && !plain && !unchanged {
        let text = value.trim_start_matches('!').to_owned();
        walker.subshell(|walker| walker.run_text(&text));
    }
}

/// A file of settings that the command itself wrote, or its input.
fn included(walker: &mut Walker<'_>, path: &str, aliases: &mut Vec<(String, String)>) {
    let text = if matches!(path, "/dev/stdin" | "/dev/fd/0") {
        walker.env.stdin.as_deref().map(str::to_owned)
    } else {
        let target = walker.target(path);
        walker.files.get(&target.path).cloned()
    };
    let mut found = Vec::new();
    settings_of(walker, &text.unwrap_or_default(), &mut found);
    aliases.extend(found);
}

/// Settings in the form of a configuration file.
fn settings_of(walker: &mut Walker<'_>, text: &str, aliases: &mut Vec<(String, String)>) {
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((head, tail)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            section = head.replace(" \"", ".").replace('"', "");
            line = tail.trim();
        }
        if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"').replace("\\\"", "\"");
            // No file includes others here.
            if !section.to_ascii_lowercase().starts_with("include") {
                setting(walker, &format!("{section}.{}={value}", key.trim()), aliases);
            }
        }
    }
}

/// `ext::command` runs the command.
fn address(walker: &mut Walker<'_>, address: &str) {
    if let Some(text) = address.strip_prefix("ext::") {
        let text = text.replace("%S", "git-upload-pack").replace("% ", " ");
        walker.subshell(|walker| walker.run_text(&text));
    }
}

const FILTERS: &[&str] = &[
    "tree-filter",
    "index-filter",
    "env-filter",
    "msg-filter",
    "parent-filter",
    "commit-filter",
    "tag-name-filter",
    "subdirectory-filter",
    "setup",
    "original",
    "state-branch",
];

/// Options of git's commands that run programs.
fn runs(walker: &mut Walker<'_>, command: &str, rest: &[String]) {
    let both = |options: &Options, short: char, long: &str| [options.values(short), options.long_values(long)].concat();
    let texts: Vec<String> = match command {
        "rebase" => {
            let long = ["exec", "onto", "strategy", "strategy-option", "whitespace", "empty", "!exclude"];
            both(&Options::read(rest, "xXsC", &long), 'x', "exec")
        }
        "submodule" => match rest.iter().position(|arg| arg == "foreach") {
            Some(at) => {
                let operands = rest.get(at + 1..).unwrap_or_default();
                let operands = operands.iter().skip_while(|arg| arg.starts_with('-'));
                vec![operands.cloned().collect::<Vec<_>>().join(" ")]
            }
            None => Vec::new(),
        },
        "bisect" if rest.first().is_some_and(|arg| arg == "run") => {
            let argv = rest.get(1..).unwrap_or_default().to_vec();
            walker.subshell(|walker| wrappers::exec_or_text(walker, argv));
            Vec::new()
        }
        "for-each-repo" => {
            let (_, argv) = options::command_after(rest, "", &["config"], 0, false);
            let argv = std::iter::once("git".to_owned()).chain(argv.iter().cloned()).collect();
            walker.subshell(|walker| walker.exec_texts(argv));
            Vec::new()
        }
        "grep" => rest
            .iter()
            .filter_map(|arg| arg.strip_prefix("-O").or_else(|| arg.strip_prefix("--open-files-in-pager=")))
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect(),
        "difftool" | "mergetool" => both(&Options::read(rest, "xt", &["extcmd", "tool", "!tool-help"]), 'x', "extcmd"),
        "filter-branch" => {
            let options = Options::read(rest, "d", FILTERS);
            let runs = FILTERS.iter().filter(|name| name.ends_with("filter") || **name == "setup");
            runs.flat_map(|name| options.long_values(name)).filter(|text| !text.is_empty()).collect()
        }
        "config" => {
            configured(walker, rest);
            Vec::new()
        }
        "send-email" => {
            let long = ["smtp-server", "to-cmd", "cc-cmd", "header-cmd", "sendmail-cmd", "to", "cc", "from", "subject"];
            let options = Options::read(rest, "", &long);
            let programs = ["to-cmd", "cc-cmd", "header-cmd", "sendmail-cmd"];
            let server = options.long_values("smtp-server").into_iter().filter(|text| text.contains(['/', ' ']));
            programs.iter().flat_map(|name| options.long_values(name)).chain(server).collect()
        }
        "interpret-trailers" | "log" | "diff" | "show" | "commit" | "status" | "add" | "checkout" => Vec::new(),
        "clone" | "fetch" | "pull" | "push" | "ls-remote" | "archive" | "fetch-pack" | "send-pack" | "remote"
        | "p4" => {
            return transports(walker, command, rest);
        }
        _ => Vec::new(),
    };
    for text in texts {
        walker.subshell(|walker| walker.run_text(&text));
    }
}

/// Commands that talk to other repositories.
fn transports(walker: &mut Walker<'_>, command: &str, rest: &[String]) {
    let cloning = command == "clone";
    let valued = match command {
        "clone" => "ucobj",
        "push" => "o",
        _ => "oj",
    };
    let long = [
        "upload-pack",
        "receive-pack",
        "exec",
        "config",
        "remote",
        "template",
        "branch",
        "depth",
        "origin",
        "reference",
    ];
    let options = Options::read(rest, valued, &long);
    let mut texts = Vec::new();
    for name in ["upload-pack", "receive-pack", "exec"] {
        texts.extend(options.long_values(name));
    }
    if cloning {
        texts.extend(options.values('u'));
        let mut aliases = Vec::new();
        for text in options.values('c').into_iter().chain(options.long_values("config")) {
            setting(walker, &text, &mut aliases);
        }
        run_aliases(walker, aliases);
    }
    for text in texts {
        walker.subshell(|walker| walker.run_text(&text));
    }
    for operand in options.operands.iter().chain(&options.long_values("remote")) {
        address(walker, operand);
    }
}

/// `git config key value`: the value runs later.
fn configured(walker: &mut Walker<'_>, rest: &[String]) {
    let options = Options::read(rest, "f", &["file", "type", "default", "comment", "value", "blob"]);
    let operands: &[String] = match options.operands.split_first() {
        Some((first, rest)) if first == "set" => rest,
        _ => &options.operands,
    };
    if let [key, value, ..] = operands {
        let mut aliases = Vec::new();
        setting(walker, &format!("{key}={value}"), &mut aliases);
        run_aliases(walker, aliases);
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
        "diff" | "log" | "show" | "archive" | "format-patch" | "bundle" | "fast-export" | "shortlog" => {
            let short = if matches!(command, "archive" | "format-patch") { "o" } else { "" };
            let options = Options::read(rest, short, &["output"]);
            let paths = [options.values('o'), options.long_values("output")].concat();
            paths.iter().flat_map(|path| super::programs::write_to(walker, path, "overwrite")).collect()
        }
        _ => Vec::new(),
    }
}
