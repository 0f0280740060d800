//! What programs print, where that follows from their arguments and input alone.

use std::io::Read as _;

use base64::Engine as _;

use super::text::{FETCHED, SECRET, STAR, TOKEN, UNKNOWN, decoded, escapes, has_unknown, inert, is_known, taint};
use crate::facts::command::effects::kill;
use crate::facts::command::effects::programs;
use crate::facts::command::effects::target::Target;
use crate::facts::command::shell::exec::quote;
use crate::facts::command::shell::walk::{Walker, passed};
use crate::facts::command::wrappers::find;
use crate::facts::command::wrappers::options::Options;

/// The output of a program that ran with these arguments.
pub(crate) fn output(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let input = walker.env.stdin.clone();
    match name {
        "echo" => echo(args),
        "printf" => printf(args),
        "cat" | "tac" | "head" | "tail" | "nl" | "sort" | "uniq" | "tee" | "pv" | "sponge" | "less" | "more"
        | "zcat" | "gunzip" | "bat" | "fold" | "fmt" | "iconv" | "dos2unix" => {
            files(walker, name, args, input.as_deref())
        }
        "dd" => copied(walker, args, input.as_deref()),
        "rsync" => {
            let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
            if let Some((destination, sources)) = operands.split_last() {
                for source in sources {
                    programs::remember_copy(walker, source, destination);
                }
            }
            String::new()
        }
        "base64" | "openssl" | "base32" => decode(walker, name, args, input.as_deref()),
        "xxd" => hexadecimal(args, input.as_deref(), walker),
        "rev" => of_input(input.as_deref(), |text| {
            text.lines().map(|line| line.chars().rev().collect::<String>() + "\n").collect()
        }),
        "tr" => translate(args, input.as_deref()),
        // Text stays what it is on its way through compression and back.
        "gzip" | "bzip2" | "xz" | "zstd" | "lz4" | "pigz" | "bunzip2" | "unxz" | "unzstd" | "lzma"
            if input.as_deref().is_some_and(is_known) && args.iter().all(|arg| arg.starts_with('-')) =>
        {
            input.as_deref().unwrap_or_default().to_owned()
        }
        "cut" | "sed" | "awk" | "gawk" | "mawk" | "grep" | "egrep" | "jq" | "xargs" | "wc" | "gzip" | "bzip2"
        | "xz" | "zstd" | "od" | "hexdump" | "strings" | "gpg" | "age" | "tar" | "zip" | "split" | "column"
        | "paste" | "perl" | "python3" | "uuencode" => through(walker, name, args, input.as_deref()),
        "basename" => args.iter().find(|arg| !arg.starts_with('-')).map_or_else(String::new, |path| {
            let base = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            format!("{}\n", args.get(1).map_or(base, |suffix| base.strip_suffix(suffix.as_str()).unwrap_or(base)))
        }),
        "dirname" => args.first().map_or_else(String::new, |path| format!("{}\n", dirname(path))),
        "realpath" | "readlink" => match args.iter().find(|arg| !arg.starts_with('-')) {
            Some(path) => {
                let path = walker.target(path).path;
                if path.is_empty() { UNKNOWN.to_string() } else { path + "\n" }
            }
            None => UNKNOWN.to_string(),
        },
        "pwd" => format!("{}\n", walker.env.cwd),
        "mktemp" => format!("/tmp/tmp.{TOKEN}\n"),
        "whoami" | "logname" => walker
            .here
            .home
            .file_name()
            .map_or_else(|| UNKNOWN.to_string(), |name| format!("{}\n", name.to_string_lossy())),
        "yes" => format!("{}\n", if args.is_empty() { "y".to_owned() } else { args.join(" ") }),
        "pgrep" | "pidof" | "ps" if kill::looks_for_keeper(name, args) => {
            format!("{}\n", super::text::KEEPER)
        }
        // Whatever a user runs is what kill(1) means by -1.
        "pgrep" if matches!(args, [option, user] if option == "-u" && kill::is_own(walker, user)) => "-1\n".to_owned(),
        "seq" | "nproc" | "id" | "date" | "hostname" | "uname" | "wc1" | "pgrep" | "pidof" | "stat" | "uuidgen"
        | "sha256sum" => format!("{TOKEN}\n"),
        "find" | "fd" | "fdfind" | "ls" => listing(walker, name, args),
        "cygpath" => args.iter().rev().find(|arg| !arg.starts_with('-')).map_or_else(String::new, |path| cygpath(path)),
        "git" if args.iter().any(|arg| arg == "--show-toplevel") => format!("{}\n", walker.here.workspace.display()),
        "curl" | "wget" | "http" | "https" | "xh" | "lynx" | "aria2c" | "fetch" | "nc" | "ncat" | "netcat"
        | "socat" | "gsutil" | "scp" | "ftp" | "iwr" | "invoke-webrequest" | "irm" => fetched(walker, name, args),
        "true" | "rm" | "mkdir" | "touch" | "cp" | "mv" | "ln" | "chmod" | "chown" | "kill" | "sleep" => String::new(),
        "crontab" => format!("{UNKNOWN}\n"),
        "history" | "env" | "printenv" | "set" => SECRET.to_string(),
        "getent" if args.iter().any(|arg| arg == "passwd") => {
            format!("{UNKNOWN}:{UNKNOWN}:{}\n", walker.here.home.display())
        }
        "security" | "pass" | "op" | "vault" => SECRET.to_string(),
        // Set-up code that a tool prints for the shell to evaluate.
        _ if args.iter().any(|arg| SETUP.contains(&arg.as_str())) => String::new(),
        "dircolors" | "lesspipe" | "resize" | "keychain" => String::new(),
        _ => passed(input.as_deref().filter(|text| text.contains([SECRET, FETCHED]))),
    }
}

/// Subcommands that print code meant for `eval`.
const SETUP: &[&str] = &[
    "shellenv",
    "init",
    "init-",
    "hook",
    "activate",
    "completion",
    "completions",
    "env",
    "docker-env",
    "shell-init",
    "shell-hook",
    "path",
    "--alias",
    "shell",
    "profile",
];

/// dd(1): what it reads goes where it writes.
fn copied(walker: &mut Walker<'_>, args: &[String], input: Option<&str>) -> String {
    let operand = |key: &str| args.iter().find_map(|arg| arg.strip_prefix(key));
    let text = match operand("if=") {
        Some(path) => walker.content(&walker.target(path)),
        None => input.map_or_else(|| UNKNOWN.to_string(), str::to_owned),
    };
    let Some(path) = operand("of=") else { return text };
    walker.store(path, text, false);
    String::new()
}

fn of_input(input: Option<&str>, transform: impl Fn(&str) -> String) -> String {
    match input {
        Some(text) if is_known(text) => transform(text),
        other => passed(other),
    }
}

fn echo(args: &[String]) -> String {
    // It may be an option.
    if args.first().is_some_and(|arg| arg.starts_with('-') && has_unknown(arg)) {
        return UNKNOWN.to_string();
    }
    let mut rest = args;
    let (mut newline, mut escaped) = (true, false);
    while let Some((arg, tail)) = rest.split_first() {
        let flags = arg.strip_prefix('-').unwrap_or_default();
        if flags.is_empty() || !flags.chars().all(|c| "neE".contains(c)) {
            break;
        }
        newline &= !flags.contains('n');
        escaped = (escaped || flags.contains('e')) && !flags.contains('E');
        rest = tail;
    }
    let mut text = rest.join(" ");
    if escaped {
        text = escapes(&inert(&text), false);
    }
    if newline {
        text.push('\n');
    }
    text
}

/// printf(1): `%s %b %q %d %i %c %o %x %%` and escapes, the format repeated while arguments last.
pub(crate) fn printf(args: &[String]) -> String {
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    let Some((format, mut rest)) = args.split_first() else { return String::new() };
    let format = inert(format);
    let mut out = String::new();
    for _ in 0..256 {
        let before = rest.len();
        let mut chars = format.chars().peekable();
        // What an escape gives is no conversion.
        let mut plain = String::new();
        loop {
            let c = chars.next();
            if let Some(c) = c.filter(|c| *c != '%') {
                plain.push(c);
                continue;
            }
            out.push_str(&escapes(&std::mem::take(&mut plain), false));
            if c.is_none() {
                break;
            }
            while chars.next_if(|c| c.is_ascii_digit() || "-+ #.*'".contains(*c)).is_some() {}
            let conversion = chars.next().unwrap_or('%');
            if conversion == '%' {
                out.push('%');
                continue;
            }
            let (arg, tail) = match rest.split_first() {
                Some((arg, tail)) => (arg.as_str(), tail),
                None => ("", rest),
            };
            rest = tail;
            convert(conversion, arg, &mut out);
        }
        if rest.is_empty() || rest.len() == before || out.len() > 1 << 20 {
            break;
        }
    }
    out
}

fn convert(conversion: char, arg: &str, out: &mut String) {
    let number = |arg: &str| -> Option<i64> {
        match arg.strip_prefix(['\'', '"']) {
            Some(quoted) => quoted.chars().next().map(|c| i64::from(u32::from(c))),
            None => super::arithmetic::evaluate(arg, &mut super::arithmetic::Constants),
        }
    };
    match conversion {
        's' => out.push_str(arg),
        'b' => out.push_str(&escapes(arg, false)),
        'q' => out.push_str(&quote(arg)),
        'c' => out.extend(arg.chars().next()),
        'd' | 'i' | 'u' | 'o' | 'x' | 'X' if has_unknown(arg) => out.push(TOKEN),
        'd' | 'i' | 'u' => out.push_str(&number(arg).unwrap_or(0).to_string()),
        'o' => out.push_str(&format!("{:o}", number(arg).unwrap_or(0))),
        'x' => out.push_str(&format!("{:x}", number(arg).unwrap_or(0))),
        'X' => out.push_str(&format!("{:X}", number(arg).unwrap_or(0))),
        _ => out.push(UNKNOWN),
    }
}

/// Programs that pass file contents (or their input) on.
fn files(walker: &mut Walker<'_>, name: &str, args: &[String], input: Option<&str>) -> String {
    let valued = match name {
        "head" | "tail" => "nc",
        "sort" => "kotSTt",
        "iconv" => "ft",
        _ => "",
    };
    let options = Options::read(args, valued, &["lines", "bytes", "key", "output"]);
    let cut = matches!(name, "head" | "tail") && !args.is_empty();
    let operands: Vec<String> = if name == "tee" { Vec::new() } else { options.operands };
    let mut out = String::new();
    if operands.is_empty() {
        out = input.map_or_else(|| UNKNOWN.to_string(), str::to_owned);
    }
    for path in &operands {
        let text =
            if path == "-" { input.unwrap_or_default().to_owned() } else { walker.content(&walker.target(path)) };
        out.push_str(&text);
    }
    if name == "tac" && is_known(&out) {
        return out.lines().rev().map(|line| format!("{line}\n")).collect();
    }
    if name == "head" && is_known(&out) && !args.iter().any(|arg| arg.starts_with("-c") || arg.starts_with("--bytes")) {
        let count = options_count(args);
        return out.lines().take(count).map(|line| format!("{line}\n")).collect();
    }
    if cut && is_known(&out) && name == "tail" && !args.iter().any(|arg| arg.starts_with("-c")) {
        let count = options_count(args);
        let lines: Vec<&str> = out.lines().collect();
        return lines.iter().skip(lines.len().saturating_sub(count)).map(|line| format!("{line}\n")).collect();
    }
    out
}

fn options_count(args: &[String]) -> usize {
    args.iter().find_map(|arg| arg.trim_start_matches(['-', 'n', '+']).parse().ok()).unwrap_or(10)
}

fn decode(walker: &Walker<'_>, name: &str, args: &[String], input: Option<&str>) -> String {
    let options = Options::read(args, "wi", &["wrap"]);
    let decoding = options.has('d')
        || options.has('D')
        || options.has_long("decode", 1)
        || args.iter().any(|arg| arg == "-d" || arg.starts_with("-di"));
    let operand = options.operands.iter().find(|path| *path != "base64" && *path != "enc");
    let text = match operand {
        Some(path) => walker.content(&walker.target(path)),
        None => input.map_or_else(|| UNKNOWN.to_string(), str::to_owned),
    };
    if !is_known(&text) {
        return taint(&text);
    }
    if name == "openssl" && !args.iter().any(|arg| arg.contains("base64") || arg == "-a") {
        return UNKNOWN.to_string();
    }
    let engine = &base64::engine::general_purpose::STANDARD;
    if !decoding {
        return engine.encode(text) + "\n";
    }
    if name == "base32" {
        return UNKNOWN.to_string();
    }
    from_base64(&text).unwrap_or_else(|| UNKNOWN.to_string())
}

/// Base64 as programs read it: white space and missing padding are forgiven.
pub(crate) fn from_base64(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '=').collect();
    let standard = plain.replace('-', "+").replace('_', "/");
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(standard).ok().map(|bytes| text_of(&bytes))
}

/// Bytes that compressed text may become.
const UNCOMPRESSED: u64 = 1 << 20;

/// The text in bytes that gzip made, where they are such: whoever reads them will take them apart again.
fn uncompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).take(UNCOMPRESSED).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Decoded bytes as text.
fn text_of(bytes: &[u8]) -> String {
    decoded(uncompressed(bytes).as_deref().unwrap_or(bytes))
}

pub(crate) fn from_hex(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    hex::decode(digits).ok().map(|bytes| text_of(&bytes))
}

fn hexadecimal(args: &[String], input: Option<&str>, walker: &Walker<'_>) -> String {
    let reverse = args.iter().any(|arg| arg.starts_with("-r") || arg == "-revert" || arg == "-pr" || arg == "-rp");
    let options = Options::read(args, "cgls", &[]);
    let text = match options.operands.first() {
        Some(path) => walker.content(&walker.target(path)),
        None => input.map_or_else(|| UNKNOWN.to_string(), str::to_owned),
    };
    if !is_known(&text) {
        return taint(&text);
    }
    if reverse { from_hex(&text).unwrap_or_else(|| UNKNOWN.to_string()) } else { hex::encode(text) + "\n" }
}

/// tr(1) with ranges and classes of letters; `-d` deletes.
fn translate(args: &[String], input: Option<&str>) -> String {
    let options = Options::read(args, "", &[]);
    let sets: Vec<Vec<char>> = options.operands.iter().map(|set| set_of(&escapes(&inert(set), false))).collect();
    let complement = options.has('c') || options.has('C');
    of_input(input, |text| match (sets.first(), sets.get(1)) {
        (Some(from), None) if options.has('d') => text.chars().filter(|c| from.contains(c) == complement).collect(),
        (Some(from), Some(to)) if !complement => text
            .chars()
            .map(|c| match from.iter().rposition(|f| *f == c) {
                Some(at) => to.get(at).or(to.last()).copied().unwrap_or(c),
                None => c,
            })
            .collect(),
        _ => text.to_owned(),
    })
}

fn set_of(text: &str) -> Vec<char> {
    let text = text
        .replace("[:lower:]", "a-z")
        .replace("[:upper:]", "A-Z")
        .replace("[:digit:]", "0-9")
        .replace("[:space:]", " \t\n\r\u{b}\u{c}");
    let chars: Vec<char> = text.chars().collect();
    let mut set = Vec::new();
    let mut i = 0;
    while let Some(&low) = chars.get(i) {
        match (chars.get(i + 1), chars.get(i + 2)) {
            (Some('-'), Some(&high)) if low <= high && high as u32 - low as u32 <= 0xFF && set.len() < 4096 => {
                set.extend(low..=high);
                i += 3;
            }
            _ => {
                set.push(low);
                i += 1;
            }
        }
    }
    set
}

/// Filters whose output is not modelled: what they read taints it.
fn through(walker: &mut Walker<'_>, name: &str, args: &[String], input: Option<&str>) -> String {
    if name == "grep" && input.is_some_and(|text| !is_known(text)) && kill::names_gateway(args) {
        // A line of a list of processes.
        return format!("{}\n", super::text::KEEPER);
    }
    if matches!(name, "cut" | "grep") && input.is_some_and(is_known) && args.iter().all(|arg| is_known(arg)) {
        return selected(name, args, input.unwrap_or_default());
    }
    if name == "sed"
        && let Some(text) = substituted(walker, args, input)
    {
        return text;
    }
    if matches!(name, "awk" | "gawk" | "mawk")
        && let (Some(text), [program]) = (input, args)
        && is_known(text)
        && program.trim() == "{print $1}"
    {
        return text.lines().map(|line| line.split_whitespace().next().unwrap_or_default().to_owned() + "\n").collect();
    }
    let mut read = passed(input.filter(|text| has_unknown(text)));
    for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
        let text = walker.content(&walker.target(arg));
        if text.contains(SECRET) {
            read.push(SECRET);
        }
    }
    taint(&read)
}

/// `cut -c`, `cut -d X -f N` and plain `grep` over known text.
fn selected(name: &str, args: &[String], text: &str) -> String {
    if name == "grep" {
        let options = Options::read(args, "emABC", &[]);
        let Some(pattern) = options.operands.first() else { return UNKNOWN.to_string() };
        let keep = |line: &&str| line.contains(pattern.as_str()) != options.has('v');
        return text.lines().filter(keep).map(|line| format!("{line}\n")).collect();
    }
    let options = Options::read(args, "cbdf", &["delimiter", "fields", "characters"]);
    let range = |spec: &str| -> Option<(usize, usize)> {
        let (from, to) = spec.split_once('-').unwrap_or((spec, spec));
        let from = if from.is_empty() { 1 } else { from.parse().ok()? };
        let to = if to.is_empty() { usize::MAX } else { to.parse().ok()? };
        // Positions count from 1; 0 is an error of cut(1).
        Some((from, to)).filter(|(from, _): &(usize, usize)| *from > 0)
    };
    let delimiter = options.values('d').first().cloned().unwrap_or_else(|| "\t".to_owned());
    let cut = |line: &str| -> Option<String> {
        if let Some(spec) = options.values('c').first() {
            let (from, to) = range(spec)?;
            return Some(
                line.chars().skip(from.saturating_sub(1)).take(to.saturating_sub(from).saturating_add(1)).collect(),
            );
        }
        let (from, to) = range(options.values('f').first()?)?;
        let fields: Vec<&str> = line
            .split(delimiter.as_str())
            .skip(from.saturating_sub(1))
            .take(to.saturating_sub(from).saturating_add(1))
            .collect();
        Some(fields.join(&delimiter))
    };
    let mut out = String::new();
    for line in text.lines() {
        match cut(line) {
            Some(line) => out.push_str(&line),
            None => return UNKNOWN.to_string(),
        }
        out.push('\n');
    }
    out
}

/// `sed s/literal/text/` over known input.
fn substituted(walker: &mut Walker<'_>, args: &[String], input: Option<&str>) -> Option<String> {
    let text = input.filter(|text| is_known(text))?;
    let [script] = args else { return None };
    let body = script.strip_prefix('s')?;
    let divider = body.chars().next()?;
    let mut parts = body.get(divider.len_utf8()..)?.split(divider);
    let (from, to, flags) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    if parts.next().is_some() || flags.contains(['e', 'w']) {
        return None;
    }
    let pattern =
        regex::RegexBuilder::new(&from.replace("\\(", "(").replace("\\)", ")")).size_limit(1 << 16).build().ok()?;
    let longest = text.len().saturating_add(text.len().saturating_mul(to.len()));
    if longest > 1 << 20 {
        let places: usize = text.lines().map(|line| pattern.find_iter(line).count()).sum();
        let ampersands = to.matches('&').count().saturating_mul(text.len());
        if places.saturating_mul(to.len()).saturating_add(ampersands) > 1 << 20 {
            walker.limited("text that sed makes");
            return Some(UNKNOWN.to_string());
        }
    }
    let to = to.replace('$', "$$").replace('&', "${0}");
    let line = |line: &str| {
        if flags.contains('g') {
            pattern.replace_all(line, to.as_str()).into_owned()
        } else {
            pattern.replace(line, to.as_str()).into_owned()
        }
    };
    Some(text.lines().map(|text| line(text) + "\n").collect())
}

fn dirname(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((head, _)) => head.to_owned(),
        None if trimmed.is_empty() => "/".to_owned(),
        None => ".".to_owned(),
    }
}

/// Names that a listing gives: unknown, but below where it looked.
fn listing(walker: &Walker<'_>, name: &str, args: &[String]) -> String {
    if name == "ls" {
        let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        if args.iter().any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('d')) {
            return operands.iter().map(|operand| format!("{operand}\n")).collect();
        }
        // The shell has already turned patterns into the names they match.
        let matched: String = operands
            .iter()
            .filter(|operand| super::text::has_glob(operand))
            .map(|operand| format!("{operand}\n"))
            .collect();
        return if matched.is_empty() { format!("{UNKNOWN}\n") } else { matched };
    }
    if name != "find" {
        return Target::inside(".", true) + "\n";
    }
    let find = find::Find::read(args);
    let _ = walker;
    let mut out = String::new();
    for root in &find.roots {
        if !find.narrowed && !find.below_only {
            out.push_str(root);
            out.push('\n');
        }
        out.push_str(&Target::inside(root, find.narrowed).replace(STAR, &UNKNOWN.to_string()));
        out.push('\n');
    }
    out
}

fn cygpath(path: &str) -> String {
    let mut chars = path.chars();
    match (chars.next(), chars.next()) {
        (Some(drive), Some(':')) => {
            format!("/mnt/{}{}\n", drive.to_ascii_lowercase(), chars.as_str().replace('\\', "/").trim_end_matches('/'))
        }
        _ => format!("{path}\n"),
    }
}

/// What a download gives, and where it goes.
fn fetched(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let options = match name {
        "curl" => Options::read(
            args,
            "oodFHXTubAekmrwxKEtyYzC",
            &["output", "data", "header", "request", "user", "form", "upload-file", "data-binary"],
        ),
        "wget" => {
            Options::read(args, "OPoaeUitTwQ", &["output-document", "directory-prefix", "post-file", "post-data"])
        }
        _ => return FETCHED.to_string(),
    };
    let local = args.iter().any(|arg| arg == "--version" || arg == "--help" || arg == "-V");
    if local {
        return UNKNOWN.to_string();
    }
    let (short, long) = if name == "curl" { ('o', "output") } else { ('O', "output-document") };
    let file = options.values(short).into_iter().chain(options.long_values(long)).next();
    let remote_name = (name == "curl" && (options.has('O') || options.has_long("remote-name", 8)))
        || (name == "wget" && file.is_none());
    if let Some(path) = file.filter(|path| path != "-" && path != "/dev/stdout") {
        walker.store(&path, FETCHED.to_string(), false);
        return String::new();
    }
    if remote_name {
        for url in options.operands.iter().filter(|url| url.contains('/')) {
            let base =
                url.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
            if !base.is_empty() {
                walker.store(&base, FETCHED.to_string(), false);
            }
        }
        return String::new();
    }
    FETCHED.to_string()
}
