//! Signals: whom they reach. The gateway, whoever started this shell, and everything that a user runs are told apart from
//! a program of the agent's own.

use super::target::{Kind, Kinds};
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{KEEPER, has_unknown, inert};
use crate::facts::command::wrappers::options::Options;

/// How the gateway's process is named, and called by its path.
const GATEWAY: &[&str] = &["portcullis", "/usr/local/bin/portcullis"];

/// `kill` is any signal to processes, `kill-all` one to all of a user's, `kill-gateway` one to the gateway or to who
/// started this shell.
pub(crate) fn acts(walker: &Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let found = match name {
        "kill" => by_number(args),
        "pkill" => by_pattern(walker, args),
        "killall" => by_name(walker, args),
        "killall5" => Some("kill-all"),
        "skill" | "snice" => {
            let options = Options::read(args, "uctpns", &[]);
            let own = options.values('u').iter().any(|user| is_own(walker, user));
            if own { Some("kill-all") } else { Some("kill") }
        }
        "fuser" => return of_file(walker, args),
        "loginctl" => args
            .iter()
            .any(|arg| {
                matches!(
                    arg.as_str(),
                    "terminate-user" | "kill-user" | "terminate-session" | "kill-session" | "terminate-seat"
                )
            })
            .then_some("kill-all"),
        _ => None,
    };
    let mut acts: Vec<Act> = found.into_iter().map(|effect| Act::new(effect, Kinds::default())).collect();
    if matches!(found, Some("kill-all" | "kill-gateway")) {
        acts.push(Act::new("kill", Kinds::default()));
    }
    acts
}

/// kill(1): processes by number. `-1` after the signal is every process.
fn by_number(args: &[String]) -> Option<&'static str> {
    let (signal, mut rest) = args.split_first()?;
    match signal.as_str() {
        "-l" | "-L" | "--list" | "--table" => return None,
        "-s" | "-n" | "--signal" => rest = rest.get(1..).unwrap_or_default(),
        option if option.starts_with('-') && option.len() > 1 => {}
        _ => rest = args,
    }
    let harmless =
        signal == "-0" || (matches!(signal.as_str(), "-s" | "-n") && args.get(1).is_some_and(|given| given == "0"));
    if harmless {
        return None;
    }
    let mut effect = "kill";
    for id in rest.iter().filter(|id| *id != "--") {
        if id.contains(KEEPER) {
            return Some("kill-gateway");
        }
        if id == "-1" {
            effect = "kill-all";
        }
    }
    Some(effect)
}

/// pkill(1): processes by an expression, a user, a parent.
fn by_pattern(walker: &Walker<'_>, args: &[String]) -> Option<&'static str> {
    // A signal is an option of its own: `-9`, `-KILL`.
    let args: Vec<String> = args.iter().filter(|arg| !is_signal(arg)).cloned().collect();
    let long = [
        "signal",
        "euid",
        "uid",
        "group",
        "pgroup",
        "parent",
        "session",
        "terminal",
        "pidfile",
        "ns",
        "nslist",
        "runstates",
        "older",
        "queue",
    ];
    let options = Options::read(&args, "uUgGPstFrOq", &long);
    if args.iter().any(|arg| arg.contains(KEEPER)) {
        return Some("kill-gateway");
    }
    if options.has('v') || options.has_long("inverse", 3) {
        return Some("kill-all");
    }
    match options.operands.first() {
        Some(pattern) => {
            let whole = options.has('x') || options.has_long("exact", 2);
            let caseless = options.has('i') || options.has_long("ignore-case", 2);
            Some(if reaches(pattern, whole, caseless) { "kill-gateway" } else { "kill" })
        }
        None => {
            let mut users =
                [options.values('u'), options.values('U'), options.long_values("euid"), options.long_values("uid")]
                    .concat()
                    .into_iter();
            let own = users.any(|user| is_own(walker, &user));
            Some(if own { "kill-all" } else { "kill" })
        }
    }
}

/// killall(1): processes by their whole name, or by an expression with `-r`.
fn by_name(walker: &Walker<'_>, args: &[String]) -> Option<&'static str> {
    let args: Vec<String> = args.iter().filter(|arg| !is_signal(arg)).cloned().collect();
    let options = Options::read(&args, "usoyZn", &["user", "signal", "older-than", "younger-than", "context", "ns"]);
    if options.has('l') || options.has_long("list", 2) {
        return None;
    }
    if options.operands.is_empty() {
        let own = options.values('u').into_iter().chain(options.long_values("user")).any(|user| is_own(walker, &user));
        return Some(if own { "kill-all" } else { "kill" });
    }
    let pattern = options.has('r') || options.has_long("regexp", 3);
    let caseless = options.has('I') || options.has_long("ignore-case", 2);
    let found = options.operands.iter().any(|name| {
        let base = name.rsplit('/').next().unwrap_or_default();
        if pattern { reaches(name, false, caseless) } else { GATEWAY.iter().any(|own| own.eq_ignore_ascii_case(base)) }
    });
    Some(if found { "kill-gateway" } else { "kill" })
}

/// `fuser -k path`: whoever has it open.
fn of_file(walker: &Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "nN", &["namespace", "signal"]);
    if !options.has('k') && !options.has_long("kill", 1) {
        return Vec::new();
    }
    let mut acts = vec![Act::new("kill", Kinds::default())];
    for path in &options.operands {
        let kinds = walker.kinds_of(path);
        if kinds.has(Kind::Gateway) {
            acts.push(Act::new("kill-gateway", Kinds::default()));
        } else if kinds.fatal() {
            acts.push(Act::new("kill-all", Kinds::default()));
        }
    }
    acts
}

fn is_signal(arg: &str) -> bool {
    let Some(name) = arg.strip_prefix('-').filter(|name| !name.is_empty()) else { return false };
    let known =
        ["HUP", "INT", "QUIT", "KILL", "TERM", "STOP", "CONT", "USR1", "USR2", "ABRT", "SEGV", "PIPE", "ALRM", "TSTP"];
    name.bytes().all(|b| b.is_ascii_digit()) || known.contains(&name.trim_start_matches("SIG"))
}

/// Whether a user is the one whose processes these are; one that cannot be known may be.
pub(crate) fn is_own(walker: &Walker<'_>, user: &str) -> bool {
    let own = walker.here.home.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    user.split(',').any(|user| user == own || has_unknown(user) || matches!(user, "root" | "0" | "1000"))
}

/// Whether an expression asks for a letter that the gateway's names do not have, which is seen without building it.
fn lacks(pattern: &str) -> bool {
    let plain = pattern.chars().all(|c| c.is_ascii_alphanumeric() || "^$.+ _-/=:,;@~\"'".contains(c));
    plain
        && pattern.chars().any(|c| {
            let same = |own: char| own.eq_ignore_ascii_case(&c);
            !"^$.+".contains(c) && !GATEWAY.iter().any(|own| own.chars().any(same))
        })
}

/// Whether an expression finds the gateway's process.
fn reaches(pattern: &str, whole: bool, caseless: bool) -> bool {
    let pattern = inert(pattern);
    if has_unknown(&pattern) || pattern.len() > 256 || lacks(&pattern) {
        return false;
    }
    let text = if whole { format!("^(?:{pattern})$") } else { pattern };
    let built = regex::RegexBuilder::new(&text).case_insensitive(caseless).size_limit(64 * 1024).build();
    match built {
        Ok(expression) => GATEWAY.iter().any(|own| expression.is_match(own)),
        Err(_) => false,
    }
}

/// Whether some arguments look for the gateway by its name, as `grep '[p]ortcullis'` does.
pub(crate) fn names_gateway(args: &[String]) -> bool {
    args.iter().filter(|arg| !arg.starts_with('-')).any(|arg| arg.len() > 5 && reaches(arg, false, true))
}

/// `pgrep portcullis`, `ps -o ppid= -p $$`.
pub(crate) fn looks_for_keeper(name: &str, args: &[String]) -> bool {
    match name {
        "ps" => args.iter().enumerate().any(|(i, arg)| {
            // `--ppid X` lists the children of X: whoever runs beside this shell, not X.
            let children = i.checked_sub(1).and_then(|before| args.get(before)).is_some_and(|arg| arg == "--ppid")
                || arg.starts_with("--ppid=");
            matches!(arg.as_str(), "ppid=" | "ppid" | "-oppid=" | "-oppid") || (arg.contains(KEEPER) && !children)
        }),
        "pidof" => args.iter().any(|arg| arg == "portcullis" || arg.ends_with("/portcullis")),
        _ => names_gateway(args),
    }
}
