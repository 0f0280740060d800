//! Programs that run the command in their arguments, with the exact arity of their own options: an option too many hides
//! a command, one too few invents one. Sources: the programs' manual pages.

use std::rc::Rc;

use super::env::Value;
use super::options::{Options, command_after};
use super::remote;
use super::text::UNKNOWN;
use super::walk::Walker;

/// How a program takes the command that it runs.
struct Wrapper {
    name: &'static str,
    /// Short options with a value.
    short: &'static str,
    /// Long options whose value may be the next argument.
    long: &'static [&'static str],
    /// Operands of its own before the command.
    operands: usize,
    /// `NAME=value` before the command is environment.
    assignments: bool,
    /// Options whose value is itself a command line.
    text: &'static [&'static str],
}

const fn plain(name: &'static str, short: &'static str) -> Wrapper {
    Wrapper { name, short, long: &[], operands: 0, assignments: false, text: &[] }
}

const fn wrapper(name: &'static str, short: &'static str, long: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { name, short, long, operands, assignments: false, text: &[] }
}

const fn texts(mut wrapper: Wrapper, text: &'static [&'static str]) -> Wrapper {
    wrapper.text = text;
    wrapper
}

const fn with_environment(mut wrapper: Wrapper) -> Wrapper {
    wrapper.assignments = true;
    wrapper
}

const SUDO_LONG: &[&str] = &[
    "user",
    "group",
    "prompt",
    "close-from",
    "chdir",
    "chroot",
    "host",
    "role",
    "type",
    "command-timeout",
    "other-user",
    "login-class",
];
const RUN0_LONG: &[&str] = &[
    "unit",
    "property",
    "description",
    "slice",
    "user",
    "group",
    "nice",
    "chdir",
    "setenv",
    "background",
    "machine",
    "uid",
    "gid",
    "on-active",
    "on-boot",
    "on-calendar",
    "service-type",
    "working-directory",
    "timer-property",
    "host",
];

const WRAPPERS: &[Wrapper] = &[
    with_environment(wrapper("sudo", "ugpCcDhrRtTUa", SUDO_LONG, 0)),
    with_environment(plain("doas", "uCa")),
    wrapper("pkexec", "", &["user"], 0),
    with_environment(wrapper("run0", "", RUN0_LONG, 0)),
    wrapper("systemd-run", "pHMutrE", RUN0_LONG, 0),
    wrapper("gosu", "", &[], 1),
    wrapper("su-exec", "", &[], 1),
    texts(wrapper("sg", "c", &[], usize::MAX), &["c"]),
    wrapper("setpriv", "", &["reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set"], 0),
    wrapper("nice", "n", &["adjustment"], 0),
    plain("nohup", ""),
    wrapper("setsid", "", &[], 0),
    wrapper("ionice", "cnpPu", &["class", "classdata", "pid"], 0),
    wrapper("chrt", "TPD", &["sched-runtime", "sched-period", "sched-deadline"], 1),
    wrapper("taskset", "", &[], 1),
    wrapper("timeout", "ks", &["kill-after", "signal"], 1),
    wrapper("gtimeout", "ks", &["kill-after", "signal"], 1),
    wrapper("stdbuf", "ioe", &["input", "output", "error"], 0),
    wrapper("time", "fo", &["format", "output"], 0),
    wrapper("strace", "aeoOpPsSuEIXbUz", &["output", "trace", "attach", "env", "user"], 0),
    wrapper("ltrace", "aAeFlnopsuwx", &["output"], 0),
    wrapper("valgrind", "", &[], 0),
    wrapper(
        "unshare",
        "SGRw",
        &[
            "root",
            "wd",
            "setuid",
            "setgid",
            "map-user",
            "map-group",
            "map-users",
            "map-groups",
            "propagation",
            "boottime",
            "monotonic",
        ],
        0,
    ),
    wrapper("nsenter", "tSGrwW", &["target", "setuid", "setgid", "root", "wd"], 0),
    wrapper("setarch", "", &[], 1),
    plain("linux32", ""),
    plain("linux64", ""),
    wrapper("systemd-inhibit", "", &["what", "who", "why", "mode"], 0),
    wrapper("ssh-agent", "atEPO", &[], 0),
    wrapper("dbus-run-session", "", &["config-file", "dbus-daemon"], 0),
    wrapper("dbus-launch", "", &[], 0),
    wrapper("xvfb-run", "nefpsw", &["server-num", "server-args", "auth-file", "error-file", "wait"], 0),
    wrapper("caffeinate", "tw", &[], 0),
    plain("fakeroot", "lfisbu"),
    plain("fakechroot", ""),
    wrapper("firejail", "", &[], 0),
    wrapper("numactl", "CNmipP", &["cpunodebind", "physcpubind", "membind", "interleave", "preferred"], 0),
    wrapper("prlimit", "", &["pid"], 0),
    wrapper("cgexec", "g", &[], 0),
    plain("torsocks", "uaP"),
    plain("torify", ""),
    plain("tsocks", ""),
    wrapper("proxychains", "f", &[], 0),
    wrapper("proxychains4", "f", &[], 0),
    plain("unbuffer", ""),
    plain("rlwrap", "bcCDfFgHlmMpPsStwz"),
    plain("catchsegv", ""),
    plain("chronic", ""),
    wrapper("ts", "", &[], 0),
    wrapper("eatmydata", "", &[], 0),
    wrapper("softlimit", "admoscflnprtvx", &[], 0),
    wrapper("setlock", "", &[], 1),
    wrapper("chpst", "uUbeodmnlpfcrtn/", &[], 0),
    wrapper("envdir", "", &[], 1),
    wrapper("uncache", "", &[], 0),
    plain("retry", "dtu"),
    wrapper("cpulimit", "lpe", &["limit", "pid", "exe"], 0),
    wrapper("daemonize", "aceolpuE", &[], 0),
    wrapper("daemon", "", &["name", "user", "chdir"], 0),
    wrapper("pipenv", "", &[], 1),
    wrapper("poetry", "CP", &["directory", "project"], 1),
    wrapper("pdm", "", &[], 1),
    wrapper("bundle", "", &[], 1),
    wrapper("mise", "C", &["cd"], 1),
    wrapper("asdf", "", &[], 2),
    wrapper("direnv", "", &[], 2),
    wrapper("doppler", "pc", &["project", "config"], 1),
    wrapper("op", "", &["env-file"], 1),
    wrapper("chamber", "", &[], 2),
    wrapper("aws-vault", "", &[], 2),
    wrapper("dotenv", "fec", &["file"], 0),
    wrapper("cross-env", "", &[], 0),
    wrapper("conda", "npn", &["name", "prefix"], 1),
    wrapper("pyenv", "", &[], 1),
    wrapper("rbenv", "", &[], 1),
    wrapper("entr", "", &[], 0),
    wrapper("coproc", "", &[], 0),
    wrapper("bwrap", "", &["bind", "ro-bind", "dev-bind", "symlink"], 0),
    wrapper("start-stop-daemon", "", &[], 0),
    wrapper("perf", "eopFCc", &["event", "output", "pid"], 1),
    wrapper("busybox", "", &[], 0),
    wrapper("toybox", "", &[], 0),
    wrapper("gdb", "x", &[], 0),
    wrapper(
        "hyperfine",
        "wrmMPpcSnu",
        &["warmup", "runs", "prepare", "cleanup", "setup", "export-json", "export-markdown"],
        usize::MAX,
    ),
    texts(wrapper("flock", "wEc", &["timeout", "conflict-exit-code", "command"], 1), &["c", "command"]),
    texts(
        wrapper(
            "script",
            "cBIOTtmEo",
            &["command", "log-io", "log-out", "log-in", "log-timing", "echo", "output-limit"],
            usize::MAX,
        ),
        &["c", "command"],
    ),
    texts(wrapper("npm", "cwC", &["call", "workspace", "prefix"], usize::MAX), &["c", "call"]),
    texts(wrapper("npx", "cpw", &["call", "package"], 0), &["c", "call"]),
    texts(wrapper("pnpx", "cp", &["call", "package"], 0), &["c", "call"]),
    texts(wrapper("bunx", "", &[], 0), &[]),
    texts(wrapper("uvx", "", &["from", "with", "python"], 0), &[]),
    texts(wrapper("nix-shell", "pAIE", &["run", "command", "packages", "attr"], usize::MAX), &["run", "command"]),
    texts(wrapper("vagrant", "c", &["command"], usize::MAX), &["c", "command"]),
    texts(wrapper("screen", "cdehprsStTX", &[], 0), &[]),
];

/// A wrapper whose arguments no table describes.
type Special = fn(&mut Walker<'_>, &str, &[String]) -> String;

/// Wrappers that are subcommands of larger tools.
const RUNNERS: &[&str] = &[
    "pipenv",
    "poetry",
    "pdm",
    "bundle",
    "mise",
    "asdf",
    "direnv",
    "doppler",
    "op",
    "chamber",
    "aws-vault",
    "conda",
    "pyenv",
    "rbenv",
];

/// The names of all wrappers.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS
        .iter()
        .map(|wrapper| wrapper.name)
        .chain(["env", "su", "runuser", "xargs", "parallel", "watch", "ssh", "docker", "podman", "chroot"])
}

/// Runs what a wrapper runs; `None` where the program is none.
pub(super) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    let special: Option<Special> = match name {
        "env" | "genv" => Some(env),
        "su" | "runuser" => Some(su),
        "xargs" | "gxargs" => Some(xargs),
        "parallel" => Some(parallel),
        "watch" => Some(watch),
        "ssh" | "autossh" | "mosh" | "sshpass" | "docker" | "podman" | "nerdctl" | "kubectl" | "oc"
        | "docker-compose" | "lxc" | "chroot" | "systemd-nspawn" | "arch-chroot" => {
            return remote::run(walker, name, args);
        }
        "tmux" => Some(tmux),
        "capsh" => Some(capsh),
        "uv" | "nix" | "pnpm" | "yarn" | "cargo-watch" | "watchexec" | "nodemon" | "reflex" | "bun" | "make-watch" => {
            return dashed(walker, name, args);
        }
        _ => None,
    };
    if let Some(special) = special {
        walker.judge(name, args, &[]);
        return Some(special(walker, name, args));
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    // Tools that do many things run a command only when asked to.
    if RUNNERS.contains(&name) && !args.iter().take(4).any(|arg| matches!(arg.as_str(), "run" | "exec" | "x")) {
        return None;
    }
    let wrapper_acts = super::programs::acts(walker, name, args);
    walker.judge(name, args, &wrapper_acts);
    Some(unwrap(walker, wrapper, args))
}

fn unwrap(walker: &mut Walker<'_>, wrapper: &Wrapper, args: &[String]) -> String {
    let mut printed = String::new();
    let options = Options::read(args, wrapper.short, wrapper.long);
    for option in wrapper.text {
        let mut chars = option.chars();
        let values = match (chars.next(), chars.next()) {
            (Some(short), None) => options.values(short),
            _ => options.long_values(option),
        };
        for text in values {
            printed.push_str(&walker.run_text(&text));
        }
    }
    if wrapper.operands == usize::MAX {
        // Every operand is a command line of its own (hyperfine), or none is.
        if wrapper.name == "hyperfine" {
            for text in &options.operands {
                walker.run_text(text);
            }
        }
        let from = args.iter().position(|arg| arg == "--").map(|at| at + 1);
        if let Some(argv) = from.and_then(|from| args.get(from..)).filter(|argv| !argv.is_empty()) {
            printed.push_str(&walker.exec_texts(argv.to_vec()));
        }
        return if printed.is_empty() { UNKNOWN.to_string() } else { printed };
    }
    let (assignments, argv) = command_after(args, wrapper.short, wrapper.long, wrapper.operands, wrapper.assignments);
    match wrapper.name {
        "gdb" => super::interpreters::embedded(walker, "gdb", args),
        "start-stop-daemon" => return start_stop_daemon(walker, args),
        "strace" => {
            for option in options.values('o') {
                if let Some(command) = option.strip_prefix(['|', '!']) {
                    walker.run_text(command);
                }
            }
        }
        "sudo" | "doas" | "run0" if argv.is_empty() => {
            // An interactive shell, or one that reads its input.
            if (options.has('s') || options.has('i')) && walker.env.stdin.is_some() {
                return super::shells::stdin(walker);
            }
            return String::new();
        }
        "flock" if argv.first().is_some_and(|arg| arg == "-c" || arg == "--command") => {
            return argv.get(1).map(|text| walker.run_text(text)).unwrap_or_default();
        }
        _ => {}
    }
    if argv.is_empty() {
        return if printed.is_empty() { UNKNOWN.to_string() } else { printed };
    }
    let argv = argv.to_vec();
    printed + &with_variables(walker, &assignments, |walker| walker.subshell(|walker| walker.exec_texts(argv)))
}

/// Runs with more environment.
fn with_variables(
    walker: &mut Walker<'_>,
    assignments: &[(String, String)],
    run: impl FnOnce(&mut Walker<'_>) -> String,
) -> String {
    if assignments.is_empty() {
        return run(walker);
    }
    let saved = Rc::clone(&walker.env.variables);
    for (name, value) in assignments {
        walker.env.set(name, Value::Text(value.clone()));
        let span = walker.span.clone();
        walker.environment_changed(name, span);
    }
    let printed = run(walker);
    walker.env.variables = saved;
    printed
}

fn start_stop_daemon(walker: &mut Walker<'_>, args: &[String]) -> String {
    let options =
        Options::read(args, "axpnucNrPIkdOCgMR", &["exec", "startas", "pidfile", "name", "user", "chuid", "chdir"]);
    let Some(program) =
        options.long_values("exec").into_iter().chain(options.values('x')).chain(options.long_values("startas")).next()
    else {
        return String::new();
    };
    let mut argv = vec![program];
    argv.extend(options.operands.iter().cloned());
    walker.exec_texts(argv)
}

/// env(1): its assignments are the command's environment, and `-S` splits a text into arguments.
fn env(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let mut expanded = Vec::new();
    let mut i = 0;
    while let Some(arg) = args.get(i) {
        i += 1;
        let split = if arg == "-S"
            || arg == "--split-string"
            || (arg.starts_with('-') && !arg.starts_with("--") && arg.ends_with('S'))
        {
            let text = args.get(i).cloned();
            i += 1;
            text
        } else {
            arg.strip_prefix("--split-string=")
                .or_else(|| arg.strip_prefix("-S").filter(|rest| !rest.is_empty()))
                .map(str::to_owned)
        };
        match split {
            Some(text) => {
                expanded.extend(super::windows::words(&text));
                expanded.extend(args.iter().skip(i).cloned());
                break;
            }
            None => expanded.push(arg.clone()),
        }
    }
    let (assignments, argv) = command_after(&expanded, "uCa", &["unset", "chdir", "argv0"], 0, true);
    let argv = argv.to_vec();
    if argv.is_empty() {
        // It prints the environment.
        return super::text::SECRET.to_string();
    }
    let program = argv.first().cloned().unwrap_or_default();
    super::variables::for_program(walker, &program, &assignments);
    with_variables(walker, &assignments, |walker| walker.subshell(|walker| walker.exec_texts(argv)))
}

fn su(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let options = Options::read(
        args,
        "cgGswTu",
        &["command", "session-command", "group", "supp-group", "shell", "whitelist-environment", "user"],
    );
    let mut printed = String::new();
    for text in options
        .values('c')
        .into_iter()
        .chain(options.long_values("command"))
        .chain(options.long_values("session-command"))
    {
        printed.push_str(&walker.run_text(&text));
    }
    if name == "runuser" && !options.values('u').is_empty() {
        let argv = options.operands_from_first(args);
        if !argv.is_empty() {
            printed.push_str(&walker.exec_texts(argv));
        }
    } else if printed.is_empty() && walker.env.stdin.is_some() {
        return super::shells::stdin(walker);
    }
    printed
}

/// xargs(1): appends its input to the command.
fn xargs(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    const VALUED: &str = "adEIJLnPRSs";
    const LONG: &[&str] = &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"];
    let options = Options::read(args, VALUED, LONG);
    let (_, argv) = command_after(args, VALUED, LONG, 0, false);
    let mut argv = argv.to_vec();
    if argv.is_empty() {
        argv.push("echo".to_owned());
    }
    let input = match options.values('a').into_iter().chain(options.long_values("arg-file")).next() {
        Some(path) => {
            let span = walker.span.clone();
            walker.read_file(&path, &span)
        }
        None => walker.env.stdin.as_deref().map_or_else(|| UNKNOWN.to_string(), str::to_owned),
    };
    let replace = options
        .values('I')
        .into_iter()
        .chain(options.long_values("replace"))
        .next()
        .or_else(|| (options.has('i') || options.has_long("replace", 7)).then(|| "{}".to_owned()));
    let lines = replace.is_some() || options.has('0') || options.has_long("null", 4) || !options.values('d').is_empty();
    let words: Vec<String> = if lines {
        input.split(['\n', '\0']).filter(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
    } else {
        input.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()
    };
    if words.len() > walker.limits.words {
        walker.limited("words");
    }
    let outer = std::mem::replace(&mut walker.bulk, true);
    let printed = xargs_run(walker, &argv, words, replace);
    walker.bulk = outer;
    printed
}

fn xargs_run(walker: &mut Walker<'_>, argv: &[String], words: Vec<String>, replace: Option<String>) -> String {
    match replace {
        Some(mark) if !mark.is_empty() => {
            let mut printed = String::new();
            for word in words.iter().take(64) {
                let argv = argv.iter().map(|arg| arg.replace(&mark, word)).collect();
                printed.push_str(&walker.subshell(|walker| walker.exec_texts(argv)));
            }
            printed
        }
        _ => {
            let argv = argv.iter().cloned().chain(words.into_iter().take(walker.limits.words)).collect();
            walker.subshell(|walker| {
                // The command does not read the list as its own input.
                walker.env.stdin = None;
                walker.exec_texts(argv)
            })
        }
    }
}

/// parallel(1): the command and its inputs after `:::`, or from standard input; texts run in a shell.
fn parallel(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    const VALUED: &str = "jaSdNnLCIPsx";
    let (_, rest) = command_after(
        args,
        VALUED,
        &[
            "jobs", "arg-file", "delay", "joblog", "timeout", "retries", "sshlogin", "colsep", "results", "tmpdir",
            "workdir",
        ],
        0,
        false,
    );
    let mut parts = rest.split(|arg| matches!(arg.as_str(), ":::" | ":::+" | "::::"));
    let command = parts.next().unwrap_or_default().join(" ");
    let mut inputs: Vec<String> = parts.flatten().cloned().collect();
    if inputs.is_empty() {
        let text = walker.env.stdin.as_deref().unwrap_or(&UNKNOWN.to_string()).to_owned();
        inputs = text.lines().map(str::to_owned).collect();
    }
    let mut printed = String::new();
    for input in inputs.iter().take(64) {
        let text = if command.is_empty() {
            input.clone()
        } else if ["{}", "{.}", "{/}", "{//}", "{1}"].iter().any(|mark| command.contains(mark)) {
            ["{}", "{.}", "{/}", "{//}", "{1}"].iter().fold(command.clone(), |text, mark| text.replace(mark, input))
        } else {
            format!("{command} {}", super::exec::quote(input))
        };
        printed.push_str(&walker.subshell(|walker| walker.run_text(&text)));
    }
    printed
}

/// watch(1) gives its operands to a shell.
fn watch(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let (_, argv) = command_after(args, "nqs", &["interval", "equexit", "shotsdir"], 0, false);
    let text = argv.join(" ");
    walker.subshell(|walker| walker.run_text(&text))
}

/// capsh(1) gives what follows `--` to bash.
fn capsh(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let Some(at) = args.iter().position(|arg| arg == "--") else { return String::new() };
    let argv = std::iter::once("bash".to_owned()).chain(args.iter().skip(at + 1).cloned()).collect();
    walker.exec_texts(argv)
}

/// tmux(1): new windows run a shell command, and keys that are sent are typed into one.
fn tmux(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let (_, argv) = command_after(args, "cfLST", &[], 0, false);
    let Some((command, rest)) = argv.split_first() else { return String::new() };
    let runs = [
        "new",
        "new-session",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "respawn-pane",
        "respawn-window",
        "run-shell",
        "run",
        "if-shell",
        "popup",
        "display-popup",
        "send-keys",
        "send",
        "pipe-pane",
    ];
    if runs.contains(&command.as_str()) {
        let (_, operands) = command_after(rest, "cefFnNstxyl", &[], 0, false);
        let keys: Vec<String> =
            operands.iter().filter(|key| !matches!(key.as_str(), "Enter" | "C-m" | "KPEnter")).cloned().collect();
        walker.subshell(|walker| walker.run_text(&keys.join(" ")));
    }
    String::new()
}

/// Tool runners: the command follows `run`, `exec` or `--`.
fn dashed(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    walker.judge(name, args, &[]);
    let at = args
        .iter()
        .position(|arg| arg == "--" || arg == "-c" || arg == "--command")
        .or_else(|| args.iter().position(|arg| matches!(arg.as_str(), "run" | "exec" | "dlx" | "x")));
    if let Some(at) = at {
        let (_, argv) = command_after(
            args.get(at + 1..).unwrap_or_default(),
            "pC",
            &["with", "python", "package", "extra", "env-file", "project", "directory"],
            0,
            false,
        );
        if !argv.is_empty() {
            let argv = argv.to_vec();
            return Some(walker.subshell(|walker| walker.exec_texts(argv)));
        }
    } else if matches!(name, "watchexec" | "nodemon") {
        let (_, argv) = command_after(args, "wefidxp", &["watch", "exts", "exec", "ext"], 0, false);
        let argv = argv.to_vec();
        for text in Options::read(args, "x", &["exec"])
            .values('x')
            .into_iter()
            .chain(Options::read(args, "x", &["exec"]).long_values("exec"))
        {
            walker.run_text(&text);
        }
        if !argv.is_empty() {
            walker.subshell(|walker| walker.exec_texts(argv));
        }
    } else if args.first().is_some_and(|arg| arg == "-e" || arg == "eval") {
        return None;
    }
    Some(UNKNOWN.to_string())
}
