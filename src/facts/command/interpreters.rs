//! Interpreters of other languages, and the small languages of sed, awk, make, vim and sqlite3.

use super::inline::{self, Language};
use super::options::Options;
use super::text::{FETCHED, UNKNOWN, has_unknown, inert};
use super::walk::Walker;
use crate::facts::path::Access;

/// Runs an interpreter; `None` where the program is none.
pub(super) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => {
            awk(walker, args);
            None
        }
        "make" | "gmake" => {
            walker.judge(name, args, &[]);
            super::makefile::make(walker, args);
            Some(UNKNOWN.to_string())
        }
        "sqlite3" | "psql" | "mysql" | "mariadb" | "vi" | "vim" | "nvim" | "view" | "ex" | "ed" | "emacs" | "less"
        | "more" | "man" | "fzf" | "sk" | "zip" | "rg" | "scp" | "sftp" | "split" | "wget" | "ansible" | "pdsh"
        | "pssh" | "parallel-ssh" | "clush" | "dsh" | "salt" | "gdb" | "ftp" | "lftp" | "nano" | "tig" | "expect"
        | "osascript" | "xdg-open" => {
            embedded(walker, name, args);
            // What a client reads from its input is judged like an argument.
            if let Some(text) =
                walker.env.stdin.clone().filter(|_| matches!(name, "sqlite3" | "psql" | "mysql" | "mariadb"))
            {
                walker.judge(name, &[text.to_string()], &[]);
            }
            None
        }
        _ => {
            let language = Language::of(name)?;
            walker.judge(name, args, &[]);
            let outer = std::mem::take(&mut walker.inline_output);
            program(walker, language, name, args);
            in_place(walker, language, args);
            let printed = std::mem::replace(&mut walker.inline_output, outer);
            if !printed.is_empty() {
                return Some(printed);
            }
            Some(super::walk::passed(walker.env.stdin.as_deref().filter(|text| has_unknown(text))))
        }
    }
}

/// `perl -i` and `ruby -i` edit their operands.
fn in_place(walker: &mut Walker<'_>, language: Language, args: &[String]) {
    let edits = matches!(language, Language::Perl | Language::Ruby)
        && args.iter().any(|arg| arg.starts_with("-i") || (arg.starts_with("-p") && arg.contains('i')));
    if !edits {
        return;
    }
    let options = Options::read(args, "eEIMm", &[]);
    let acts = walker.acts("edit", &options.operands, false, Access::Write);
    walker.judge("perl", args, &acts);
}

/// What an interpreter runs that is no inline code.
enum Source {
    File(String),
    /// A module by name (`-m`): neither a path operand nor code of ours.
    Module,
    Input,
}

impl From<Option<String>> for Source {
    fn from(file: Option<String>) -> Self {
        file.map_or(Source::Input, Source::File)
    }
}

fn program(walker: &mut Walker<'_>, language: Language, name: &str, args: &[String]) {
    let (codes, file) = codes(language, name, args);
    if !codes.is_empty() {
        for code in codes {
            code_text(walker, language, &code);
        }
        return;
    }
    match file {
        Source::File(path) if matches!(path.as_str(), "-" | "/dev/stdin") => from_input(walker, language),
        Source::File(path) => {
            let target = walker.target(&path);
            let span = walker.span.clone();
            walker.notes.path(&target, Access::Execute, span);
            walker.with_file(&target, |walker, text| code_text(walker, language, text));
        }
        Source::Input => from_input(walker, language),
        Source::Module => {}
    }
}

fn from_input(walker: &mut Walker<'_>, language: Language) {
    if let Some(text) = walker.env.stdin.clone() {
        code_text(walker, language, &text);
    }
}

fn code_text(walker: &mut Walker<'_>, language: Language, text: &str) {
    if text.contains(FETCHED) {
        walker.event("fetch-and-run");
    } else if text.trim().chars().all(super::text::is_unknown) && !text.trim().is_empty() {
        walker.event("run-unknown");
    }
    let code = inert(text);
    walker.deeper(|walker| walker.subshell(|walker| inline::run(walker, language, &code)));
}

/// The inline code of an interpreter's arguments, or else the file it runs.
fn codes(language: Language, name: &str, args: &[String]) -> (Vec<String>, Source) {
    let mut codes = Vec::new();
    let mut i = 0;
    let (code_options, valued): (&[&str], &str) = match language {
        Language::Python => (&["c"], "WXmQ"),
        Language::Perl => (&["e", "E"], "IMmxl0DiF"),
        Language::Ruby => (&["e"], "IrCEF"),
        Language::Node => (&["e", "p", "pe"], "rC"),
        Language::Php => (&["r", "B", "R", "E"], "cdzt"),
        Language::Lua => (&["e"], "l"),
    };
    if language == Language::Node && matches!(name, "deno" | "bun") {
        let at = args.iter().position(|arg| arg == "eval" || arg == "-e");
        if let Some(code) =
            at.and_then(|at| args.get(at + 1..)).and_then(|rest| rest.iter().find(|arg| !arg.starts_with('-')))
        {
            return (vec![code.clone()], Source::Input);
        }
        let file = args.iter().filter(|arg| !arg.starts_with('-') && *arg != "run").map(String::clone).next();
        return (codes, file.into());
    }
    while let Some(arg) = args.get(i) {
        i += 1;
        if arg == "--" {
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            match long.split_once('=') {
                Some(("eval" | "print" | "run", code)) => codes.push(code.to_owned()),
                None if matches!(long, "eval" | "print" | "run") => {
                    codes.extend(args.get(i).cloned());
                    i += 1;
                }
                None if matches!(long, "require" | "import" | "loader") => i += 1,
                _ => {}
            }
            continue;
        }
        let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            if codes.is_empty() {
                return (codes, Source::File(arg.clone()));
            }
            break;
        };
        let mut rest = cluster;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            if code_options.contains(&c.to_string().as_str()) {
                // `-pe CODE` and `-eCODE`; in node `-pe` is `-p -e`.
                if rest.is_empty() {
                    codes.extend(args.get(i).cloned());
                    i += 1;
                    break;
                }
                if code_options.contains(&rest) {
                    continue;
                }
                codes.push(rest.to_owned());
                break;
            }
            if valued.contains(c) {
                // A module to run is no code of ours.
                let module = c == 'm' && language == Language::Python;
                if rest.is_empty() && !"li0DF".contains(c) {
                    i += 1;
                }
                if module {
                    return (codes, Source::Module);
                }
                break;
            }
        }
    }
    let file = if codes.is_empty() { args.get(i).cloned() } else { None };
    (codes, file.into())
}

/// sed(1): the `e` command and flag run text, `w` writes a file.
pub(super) fn sed(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "efl", &["expression", "file", "line-length"]);
    let mut scripts = options.values('e');
    scripts.extend(options.long_values("expression"));
    if scripts.is_empty() {
        scripts.extend(options.operands.first().cloned());
    }
    let input = walker.env.stdin.clone();
    for script in scripts {
        let script = inert(&script);
        for command in script.split(['\n', ';']) {
            let command =
                command.trim().trim_start_matches(|c: char| c.is_ascii_digit() || "$,!".contains(c)).trim_start();
            if let Some(text) = command.strip_prefix("e ") {
                walker.subshell(|walker| walker.run_text(text));
            }
        }
        if let Some((replacement, flags)) = substitution(&script) {
            if flags.contains('e') {
                let text = match &input {
                    Some(input) if replacement.contains('&') => replacement.replace('&', input),
                    _ => replacement.clone(),
                };
                walker.subshell(|walker| walker.run_text(&text));
            }
            if let Some((_, path)) = flags.split_once('w') {
                let acts = super::programs::write_to(walker, path.trim(), "overwrite");
                walker.judge("sed", &[], &acts);
            }
        }
        let bytes = script.trim_start();
        if bytes == "e" {
            super::shells::stdin(walker);
        }
    }
}

/// The replacement and flags of an `s` command.
fn substitution(script: &str) -> Option<(String, String)> {
    let at = script.find('s')?;
    let rest = script.get(at + 1..)?;
    let divider = rest.chars().next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace())?;
    let mut parts = vec![String::new()];
    let mut chars = rest.get(divider.len_utf8()..)?.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            let next = chars.next()?;
            if let Some(part) = parts.last_mut() {
                if next != divider {
                    part.push('\\');
                }
                part.push(next);
            }
        } else if c == divider && parts.len() < 3 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    match parts.as_slice() {
        [_, replacement, flags] => {
            Some((replacement.clone(), flags.split([';', '\n', '}']).next().unwrap_or_default().to_owned()))
        }
        _ => None,
    }
}

/// awk(1): `system("...")`, `"..." | getline`, `print | "..."`, `print > "..."`.
fn awk(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "Ffvei", &["field-separator", "file", "assign", "source"]);
    let mut programs = options.values('e');
    if programs.is_empty() && options.values('f').is_empty() {
        programs.extend(options.operands.first().cloned());
    }
    let variables: Vec<(String, String)> = options
        .values('v')
        .iter()
        .filter_map(|text| text.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for path in options.values('f') {
        let target = walker.target(&path);
        walker.with_file(&target, |walker, program| inline::awk(walker, program, &variables));
    }
    for program in programs {
        inline::awk(walker, &inert(&program), &variables);
    }
}

/// Programs whose own commands can start a shell.
pub(super) fn embedded(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    let mut texts: Vec<String> = Vec::new();
    match name {
        "sqlite3" | "psql" | "mysql" | "mariadb" | "ftp" | "lftp" => {
            let input = walker.env.stdin.as_deref().map(str::to_owned);
            for text in args.iter().cloned().chain(input) {
                for line in text.lines() {
                    let line = line.trim();
                    let found = [".shell ", ".system ", "\\! ", "\\!", "system ", "! ", "!"]
                        .iter()
                        .find_map(|prefix| line.strip_prefix(prefix));
                    texts.extend(found.map(str::to_owned));
                }
            }
        }
        "vi" | "vim" | "nvim" | "view" | "ex" | "less" | "more" | "ed" => {
            let input =
                walker.env.stdin.as_deref().filter(|_| matches!(name, "ed" | "ex" | "vi" | "vim")).map(str::to_owned);
            for text in args
                .iter()
                .flat_map(|arg| arg.split('|'))
                .map(str::to_owned)
                .chain(input.iter().flat_map(|text| text.lines().map(str::to_owned)))
            {
                let text = text.trim_start_matches(['+', ':', ' ', '%']);
                let text = ["silent! ", "silent ", "silent", "r ", "read ", "exec "]
                    .iter()
                    .find_map(|word| text.strip_prefix(word))
                    .unwrap_or(text);
                texts.extend(text.trim_start_matches(['\'', '"', ' ', ':']).strip_prefix('!').map(str::to_owned));
                for call in text.split("system(").skip(1) {
                    texts.push(
                        call.trim_start_matches(['"', '\''])
                            .split(['"', '\'', ')'])
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                    );
                }
            }
        }
        "man" => {
            let options = Options::read(args, "PCELMSsemrRH", &["pager"]);
            texts.extend(options.values('P'));
            texts.extend(options.long_values("pager"));
        }
        "fzf" | "sk" => {
            let options = Options::read(args, "q", &["bind", "preview", "query"]);
            texts.extend(options.long_values("preview"));
            for bind in options.long_values("bind") {
                for open in [
                    "execute(",
                    "execute-silent(",
                    "become(",
                    "reload(",
                    "execute:",
                    "become:",
                    "reload:",
                    "transform(",
                ] {
                    texts
                        .extend(bind.split(open).skip(1).map(|part| part.strip_suffix(')').unwrap_or(part).to_owned()));
                }
            }
        }
        "zip" => {
            let options = Options::read(args, "bntx", &["unzip-command"]);
            texts.extend(options.long_values("unzip-command"));
            if let Some(at) = args.iter().position(|arg| arg == "-TT") {
                texts.extend(args.get(at + 1).cloned());
            }
        }
        "scp" | "sftp" => texts.extend(Options::read(args, "SFiJPlocX", &[]).values('S')),
        "split" => texts.extend(Options::read(args, "abCln", &["filter"]).long_values("filter")),
        "wget" => texts.extend(Options::read(args, "", &["use-askpass"]).long_values("use-askpass")),
        "ansible" => {
            let options = Options::read(args, "maiu", &["args", "module-name"]);
            texts.extend(options.values('a').into_iter().chain(options.long_values("args")));
        }
        "pdsh" | "pssh" | "parallel-ssh" | "clush" | "dsh" => {
            let (_, argv) =
                super::options::command_after(args, "wxlhHtpgfrmoO", &["host", "hosts", "user", "group"], 0, false);
            texts.push(argv.join(" "));
        }
        "salt" => texts.extend(args.iter().position(|arg| arg == "cmd.run").and_then(|at| args.get(at + 1)).cloned()),
        "rg" => {
            let options = Options::read(args, "", &["pre"]);
            texts.extend(options.long_values("pre"));
        }
        "gdb" => {
            let options = Options::read(args, "x", &["eval-command", "ex"]);
            for command in options
                .long_values("ex")
                .into_iter()
                .chain(options.long_values("eval-command"))
                .chain(args.iter().cloned())
            {
                texts.extend(command.strip_prefix('!').or_else(|| command.strip_prefix("shell ")).map(str::to_owned));
            }
        }
        "expect" => {
            let options = Options::read(args, "c", &[]);
            for code in options.values('c') {
                for part in code.split([';', '\n']) {
                    let part = part.trim();
                    texts.extend(part.strip_prefix("spawn ").or_else(|| part.strip_prefix("exec ")).map(str::to_owned));
                }
            }
        }
        "osascript" => {
            for text in args {
                texts.extend(
                    text.split("do shell script \"")
                        .skip(1)
                        .map(|part| part.split('"').next().unwrap_or_default().to_owned()),
                );
            }
        }
        _ => {}
    }
    for text in texts.iter().take(32) {
        walker.subshell(|walker| walker.run_text(text));
    }
}
