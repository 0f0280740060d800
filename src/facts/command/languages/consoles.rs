//! Programs with a command language of their own that can start a shell: editors, pagers, database and file clients,
//! debuggers. Their commands come from options, from operands, or from standard input.

use super::inline::{self, Language};
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::inert;
use crate::facts::command::wrappers::launchers::single_dashed;
use crate::facts::command::wrappers::options::Options;
use crate::facts::command::wrappers::wrapper_table::Wrapper;

/// A program whose commands, one a line, run a shell where they start with a prefix.
struct Console {
    names: &'static [&'static str],
    prefixes: &'static [&'static str],
    /// What else divides commands.
    divider: Option<char>,
    /// Short and long options with a value, and those of them that hold commands or name a file of them.
    short: &'static str,
    long: &'static [&'static str],
    commands: &'static [&'static str],
    files: &'static [&'static str],
    /// Operands are commands too.
    operands: bool,
    /// It reads commands from standard input.
    input: bool,
}

const fn console(
    names: &'static [&'static str],
    prefixes: &'static [&'static str],
    short: &'static str,
    commands: &'static [&'static str],
) -> Console {
    Console {
        names,
        prefixes,
        divider: None,
        short,
        long: commands,
        commands,
        files: &[],
        operands: false,
        input: true,
    }
}

impl Console {
    const fn files(mut self, files: &'static [&'static str]) -> Self {
        self.files = files;
        self
    }

    const fn operands(mut self) -> Self {
        self.operands = true;
        self
    }

    const fn divided(mut self, divider: char) -> Self {
        self.divider = Some(divider);
        self
    }

    const fn long(mut self, long: &'static [&'static str]) -> Self {
        self.long = long;
        self
    }
}

const CONSOLES: &[Console] = &[
    console(
        &["sqlite3", "sqlite", "sqlcipher", "duckdb"],
        &[".shell ", ".system ", ".sh ", ".once |", ".output |"],
        "",
        &[],
    )
    .operands(),
    console(&["psql", "pgcli"], &["\\!", "\\o |", "\\g |"], "cdfhpUvLoPRT", &["c", "command"])
        .long(&["command", "file", "dbname", "host", "port", "username", "set", "variable", "output"])
        .files(&["f", "file"]),
    console(&["mysql", "mariadb", "mycli"], &["\\!", "system ", "pager ", "\\P "], "eDhPuS", &["e", "execute"])
        .long(&["execute", "database", "host", "port", "user", "socket", "init-command"]),
    console(&["sftp"], &["!"], "BbcDFiJloPRSsX", &[]).files(&["b"]),
    console(&["ftp", "tnftp", "tftp", "telnet", "psftp"], &["!", "z "], "b", &[]).files(&["b"]),
    console(&["lftp"], &["!", "shell "], "cefpu", &["c", "e"]).files(&["f"]).divided(';'),
    console(&["smbclient", "rpcclient"], &["!"], "cUIpmnW", &["c", "command"]).divided(';'),
    console(&["dc"], &["!"], "ef", &["e", "expression"]).files(&["f", "file"]),
    console(&["mail", "mailx", "mutt"], &["~!", "!", "~|"], "sabcr", &["exec"]),
    console(&["gnuplot"], &["!", "shell "], "e", &["e"]).divided(';'),
    console(
        &["gdb", "cgdb", "gdb-multiarch"],
        &["!", "shell ", "pipe ", "make "],
        "xpc",
        &["eval-command", "ex", "iex"],
    )
    .operands(),
    console(&["lldb"], &["platform shell ", "shell ", "pl sh "], "oOsSkKpn", &["o", "O", "one-line", "k"])
        .files(&["s", "source"]),
    console(&["less", "more", "most", "pg", "tig", "lynx", "links", "w3m"], &["!", "|"], "kopPtTxyz", &[]).operands(),
    console(&["ed", "red"], &["!", "r !", "w !", "e !", "r!", "w!"], "p", &[]),
    console(&["r2", "radare2", "rizin"], &["!", "!!"], "ceipsb", &["c"]).divided(';').files(&["i"]),
    console(&["tdbtool", "ginsh", "cpan", "iftop", "debugfs"], &["!"], "Rf", &["R"]),
    console(&["ipython", "ipython3", "jupyter"], &["!", "%sx ", "%system "], "c", &["c"]),
    console(&["msfconsole"], &["exec ", "! "], "xr", &["x", "execute-command"]).divided(';').files(&["r"]),
    console(&["nmap"], &["!"], "", &[]),
    console(&["zathura", "feh", "mpv"], &["exec ", "run "], "c", &["c"]).divided(';'),
];

/// Runs the commands of a program that has such a language.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    match name {
        "vi" | "vim" | "nvim" | "view" | "ex" | "gvim" | "vimdiff" | "rvim" | "rview" | "neovim" | "elvis" | "nvi"
        | "vim.basic" | "vim.tiny" => return vim(walker, name, args),
        "gdb" | "lldb" | "cgdb" | "gdb-multiarch" => debugged(walker, name, args),
        "psql" | "pgcli" => copies_of_programs(walker, args),
        "osascript" => return apple_script(walker, args),
        _ => {}
    }
    for console in CONSOLES.iter().filter(|console| console.names.contains(&name)) {
        for text in texts(walker, console, args) {
            commands(walker, console, &text);
        }
    }
}

/// Where a console's commands stand.
fn texts(walker: &mut Walker<'_>, console: &Console, args: &[String]) -> Vec<String> {
    let options = Options::read(args, console.short, console.long);
    let mut texts = Wrapper::values(&options, console.commands);
    for name in console.commands.iter().filter(|name| name.len() > 1) {
        texts.extend(single_dashed(args, name));
    }
    if console.operands {
        texts.extend(args.iter().map(|arg| arg.trim_start_matches('+').to_owned()));
    }
    for path in Wrapper::values(&options, console.files) {
        if path == "-" {
            continue;
        }
        let target = walker.target(&path);
        texts.extend(walker.files.get(&target.path).cloned());
    }
    if console.input {
        texts.extend(walker.env.stdin.as_deref().map(str::to_owned));
    }
    texts.into_iter().map(|text| inert(&text)).collect()
}

fn commands(walker: &mut Walker<'_>, console: &Console, text: &str) {
    for line in text.lines() {
        let line = line.trim();
        // What follows a prefix is the shell's, dividers and all.
        let parts: Vec<&str> = match console.divider {
            Some(divider) if !console.prefixes.iter().any(|prefix| line.starts_with(prefix)) => {
                line.split(divider).collect()
            }
            _ => vec![line],
        };
        for part in parts {
            let part = part.trim();
            if let Some(rest) = console.prefixes.iter().find_map(|prefix| part.strip_prefix(prefix)) {
                walker.subshell(|walker| walker.run_text(rest));
            }
        }
    }
}

/// `python ...` and `script ...` of debuggers, and the program after `--args`.
fn debugged(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    for arg in args {
        let code =
            ["python ", "python-interactive ", "pi ", "py ", "script "].iter().find_map(|word| arg.strip_prefix(word));
        if let Some(code) = code {
            walker.deeper(|walker| inline::run(walker, Language::Python, &inert(code)));
        }
    }
    let mark = |arg: &String| matches!(arg.as_str(), "--args" | "-args") || (name == "lldb" && arg == "--");
    if let Some(argv) = args.iter().position(mark).and_then(|at| args.get(at + 1..)).filter(|argv| !argv.is_empty()) {
        let argv = argv.to_vec();
        walker.subshell(|walker| walker.exec_texts(argv));
    }
}

/// `COPY table FROM PROGRAM '...'`.
fn copies_of_programs(walker: &mut Walker<'_>, args: &[String]) {
    let input = walker.env.stdin.as_deref().map(str::to_owned);
    for text in args.iter().cloned().chain(input) {
        let text = inert(&text);
        // The words are ASCII: places in the one text are places in the other.
        let lower = text.to_ascii_lowercase();
        for (at, _) in lower.match_indices(" program ").take(64) {
            let quoted = text.get(at + 9..).unwrap_or_default().trim_start();
            if let Some(rest) = quoted.strip_prefix('\'') {
                let command = rest.split('\'').next().unwrap_or_default().to_owned();
                walker.subshell(|walker| walker.run_text(&command));
            }
        }
    }
}

/// `do shell script "..."` and `do script "..."`.
fn apple_script(walker: &mut Walker<'_>, args: &[String]) {
    let input = walker.env.stdin.as_deref().map(str::to_owned);
    let javascript = args.iter().any(|arg| arg == "JavaScript");
    for text in args.iter().cloned().chain(input) {
        let text = inert(&text);
        if javascript {
            walker.deeper(|walker| inline::run(walker, Language::Node, &text));
            continue;
        }
        for word in ["do shell script", "do script"] {
            for part in text.split(word).skip(1) {
                let command = joined_strings(part);
                walker.subshell(|walker| walker.run_text(&command));
            }
        }
    }
}

/// `"rm " & "-rf /"`.
fn joined_strings(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim_start();
    while let Some(body) = rest.strip_prefix('"') {
        let mut end = None;
        let mut escaped = false;
        for (i, c) in body.char_indices() {
            match c {
                _ if escaped => {
                    out.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = Some(i);
                    break;
                }
                _ => out.push(c),
            }
        }
        rest = end.and_then(|end| body.get(end + 1..)).unwrap_or_default().trim_start();
        match rest.strip_prefix('&') {
            Some(tail) => rest = tail.trim_start(),
            None => break,
        }
    }
    out
}

/// vi and its kin: `-c command`, `+command`, `--cmd command`, and commands on standard input of `ex`.
fn vim(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    let options = Options::read(args, "cSTtiuUrw", &["cmd", "startuptime"]);
    let mut texts = options.values('c');
    texts.extend(options.long_values("cmd"));
    texts.extend(args.iter().filter_map(|arg| arg.strip_prefix('+').map(str::to_owned)));
    for path in options.values('S').into_iter().chain(options.values('u')) {
        let target = walker.target(&path);
        texts.extend(walker.files.get(&target.path).cloned());
    }
    let reads = name == "ex" || args.iter().any(|arg| arg.starts_with("-e") || arg.starts_with("-E") || arg == "-s");
    if reads || matches!(name, "vi" | "vim") {
        texts.extend(walker.env.stdin.as_deref().map(str::to_owned));
    }
    for text in texts {
        for line in inert(&text).lines() {
            ex_command(walker, line);
        }
    }
}

/// One line of ex commands, as far as they run something.
pub(crate) fn ex_command(walker: &mut Walker<'_>, line: &str) {
    let mut rest = line;
    // Each `|` but those of a shell's text divides commands.
    for _ in 0..64 {
        let command =
            rest.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || ":%$.,'<>;".contains(c));
        let modifiers = ["silent! ", "silent ", "sil! ", "sil ", "noautocmd ", "keepalt ", "verbose "];
        let command = modifiers.iter().find_map(|word| command.strip_prefix(word)).unwrap_or(command);
        let command = command.trim_start_matches([':', ' ', '%']);
        if let Some(text) = shell_text(command) {
            walker.subshell(|walker| walker.run_text(text));
            return;
        }
        let (command, tail) = first_command(command);
        if inner_language(walker, command) || tail.is_empty() {
            return;
        }
        rest = tail;
    }
}

/// What stands before the first `|` outside quotes, and what follows it.
fn first_command(text: &str) -> (&str, &str) {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '|' => return (text.get(..i).unwrap_or_default(), text.get(i + 1..).unwrap_or_default()),
            _ => {}
        }
    }
    (text, "")
}

/// What a command of ex gives to a shell.
fn shell_text(command: &str) -> Option<&str> {
    let starts = |words: &[&str]| words.iter().find_map(|word| command.strip_prefix(word));
    let words = [
        "!",
        "r !",
        "r!",
        "re !",
        "read !",
        "read!",
        "w !",
        "write !",
        "term ",
        "term! ",
        "terminal ",
        "terminal! ",
        "te ",
        "ter ",
    ];
    let found = starts(&words)?;
    let found = found.trim_start();
    Some(found.strip_prefix("++close ").or_else(|| found.strip_prefix("++curwin ")).unwrap_or(found))
}

/// Commands that run code of another language, or an expression.
fn inner_language(walker: &mut Walker<'_>, command: &str) -> bool {
    let word: String = command.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    let tail = command.get(word.len()..).unwrap_or_default().trim_start_matches('!').trim_start();
    let language = match word.as_str() {
        "lua" => Language::Lua,
        "py" | "py3" | "python" | "python3" | "pyx" | "pythonx" => Language::Python,
        "perl" | "pe" => Language::Perl,
        "ruby" | "rub" => Language::Ruby,
        "tcl" | "tc" => {
            super::tcl::run(walker, tail);
            return true;
        }
        "exe" | "exec" | "execute" => {
            let text = evaluated(tail);
            walker.deeper(|walker| ex_command(walker, &text));
            return true;
        }
        "call" | "cal" | "let" | "echo" | "ec" | "if" | "eval" | "echom" | "put" => Language::Vim,
        _ => return false,
    };
    walker.deeper(|walker| inline::run(walker, language, tail));
    // `call f() | quit` goes on.
    language != Language::Vim
}

/// The text of a string expression: `"!rm " . "-rf"`.
fn evaluated(expression: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in expression.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => out.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    out
}
