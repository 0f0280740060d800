//! The wrappers: programs that run the command in their arguments, with the exact arity of their own options. An option
//! too many hides a command, one too few invents one. Sources: the programs' manual pages and `--help`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::options::{Options, command_after};

/// What a wrapper makes of what follows its own arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// A program and its arguments.
    Arguments,
    /// Words that are joined and given to a shell.
    Shell,
    /// One command line in each.
    Each,
    /// A program and its arguments, only after one of these words.
    After(&'static [&'static str]),
    /// Nothing: only options of it run something.
    Nothing,
}

/// How a program takes the command that it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    pub names: &'static [&'static str],
    /// Short options with a value.
    pub short: &'static str,
    /// Long options whose value may be the next argument.
    pub long: &'static [&'static str],
    /// It wraps only as one of these subcommands.
    pub verbs: &'static [&'static str],
    /// Operands of its own before the command.
    pub operands: usize,
    pub runs: Runs,
    /// Options whose value is itself a command line.
    pub text: &'static [&'static str],
    /// `NAME=value` before the command is environment.
    pub assignments: bool,
    /// Options that name the directory it runs in.
    pub directory: &'static [&'static str],
}

const fn wrap(names: &'static [&'static str], short: &'static str, long: &'static [&'static str]) -> Wrapper {
    Wrapper {
        names,
        short,
        long,
        verbs: &[],
        operands: 0,
        runs: Runs::Arguments,
        text: &[],
        assignments: false,
        directory: &[],
    }
}

impl Wrapper {
    const fn operands(mut self, operands: usize) -> Self {
        self.operands = operands;
        self
    }

    const fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.verbs = verbs;
        self
    }

    const fn runs(mut self, runs: Runs) -> Self {
        self.runs = runs;
        self
    }

    const fn text(mut self, text: &'static [&'static str]) -> Self {
        self.text = text;
        self
    }

    const fn environment(mut self) -> Self {
        self.assignments = true;
        self
    }

    const fn directory(mut self, directory: &'static [&'static str]) -> Self {
        self.directory = directory;
        self
    }

    /// The wrapper of this name that these arguments make one.
    pub fn of<'a>(name: &str, args: &'a [String]) -> Option<(&'static Wrapper, &'a [String])> {
        BY_NAME.get(name)?.iter().find_map(|wrapper| Some((*wrapper, wrapper.after_verb(args)?)))
    }

    /// The arguments after the subcommand; all of them where it has none.
    fn after_verb<'a>(&self, args: &'a [String]) -> Option<&'a [String]> {
        if self.verbs.is_empty() {
            return Some(args);
        }
        let (_, rest) = command_after(args, self.short, self.long, 0, false);
        self.verbs.iter().find_map(|verb| {
            let mut rest = rest;
            for word in verb.split(' ') {
                rest = match rest.split_first() {
                    Some((first, tail)) if first == word => tail,
                    _ => return None,
                };
            }
            Some(rest)
        })
    }

    /// The values of options by their names; a single letter is a short one.
    pub fn values(options: &Options, names: &[&str]) -> Vec<String> {
        names
            .iter()
            .flat_map(|name| {
                let mut chars = name.chars();
                match (chars.next(), chars.next()) {
                    (Some(short), None) => options.values(short),
                    _ => options.long_values(name),
                }
            })
            .collect()
    }
}

/// The names of all wrappers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS.iter().flat_map(|wrapper| wrapper.names).copied()
}

pub(crate) fn has(name: &str) -> bool {
    BY_NAME.contains_key(name)
}

/// The wrappers of each name, in the order of the table.
static BY_NAME: LazyLock<HashMap<&str, Vec<&Wrapper>>> = LazyLock::new(|| {
    let mut found: HashMap<&str, Vec<&Wrapper>> = HashMap::new();
    for wrapper in WRAPPERS {
        for name in wrapper.names {
            found.entry(name).or_default().push(wrapper);
        }
    }
    found
});

const SUDO: &[&str] = &[
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
    "!login",
];

const SYSTEMD_RUN: &[&str] = &[
    "unit",
    "property",
    "description",
    "slice",
    "uid",
    "gid",
    "nice",
    "chdir",
    "setenv",
    "background",
    "machine",
    "host",
    "on-active",
    "on-boot",
    "on-startup",
    "on-unit-active",
    "on-unit-inactive",
    "on-calendar",
    "service-type",
    "working-directory",
    "timer-property",
    "path-property",
    "socket-property",
    "job-mode",
];

const RUN0: &[&str] = &[
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
    "host",
    "area",
    "shell-prompt-prefix",
];

const UV: &[&str] = &[
    "with",
    "with-editable",
    "with-requirements",
    "python",
    "package",
    "extra",
    "group",
    "only-group",
    "no-group",
    "no-extra",
    "env-file",
    "project",
    "directory",
    "from",
    "index",
    "index-url",
    "default-index",
    "extra-index-url",
    "find-links",
    "cache-dir",
    "config-file",
    "config-setting",
    "link-mode",
    "refresh-package",
    "reinstall-package",
    "upgrade-package",
    "resolution",
    "prerelease",
    "exclude-newer",
    "color",
    "allow-insecure-host",
];

const BWRAP: &[&str] = &[
    "args",
    "argv0",
    "uid",
    "gid",
    "hostname",
    "chdir",
    "unsetenv",
    "lock-file",
    "sync-fd",
    "remount-ro",
    "exec-label",
    "file-label",
    "proc",
    "dev",
    "tmpfs",
    "mqueue",
    "dir",
    "seccomp",
    "add-seccomp-fd",
    "block-fd",
    "userns-block-fd",
    "info-fd",
    "json-status-fd",
    "cap-add",
    "cap-drop",
    "perms",
    "size",
    "userns",
    "userns2",
    "pidns",
    "overlay-src",
    "tmp-overlay",
    "ro-overlay",
];

#[rustfmt::skip]
const WRAPPERS: &[Wrapper] = &[
    // Other identities.
    wrap(&["sudo", "sudo-rs"], "ugpCcDhrRtTUa", SUDO).environment().directory(&["D", "chdir"]),
    wrap(&["doas"], "uCa", &[]).environment(),
    wrap(&["pkexec"], "", &["user"]),
    wrap(&["run0"], "uDg", RUN0).environment().directory(&["D", "chdir"]),
    wrap(&["systemd-run"], "pHMutrEd", SYSTEMD_RUN).directory(&["working-directory"]),
    wrap(&["gosu", "su-exec", "s6-setuidgid", "setuidgid", "envuidgid", "s6-envuidgid", "please"], "", &[]).operands(1),
    wrap(&["setpriv"], "", &["reuid", "regid", "ruid", "euid", "rgid", "egid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "pdeathsig", "selinux-label", "apparmor-profile", "landlock-access", "landlock-rule", "seccomp-filter"]),
    wrap(&["newgrp"], "c", &["command"]).runs(Runs::Nothing).text(&["c", "command"]),
    wrap(&["sg"], "c", &[]).operands(1).runs(Runs::Shell).text(&["c"]),
    wrap(&["runcon"], "utrlc", &["user", "type", "role", "range"]),
    wrap(&["newrole"], "rtl", &["role", "type", "level"]).runs(Runs::After(&["--"])),
    // Scheduling and limits.
    wrap(&["nice", "gnice"], "n", &["adjustment"]),
    wrap(&["nohup", "gnohup", "setsid"], "", &[]),
    wrap(&["ionice"], "cnpPu", &["class", "classdata", "pid"]),
    wrap(&["chrt"], "TPDp", &["sched-runtime", "sched-period", "sched-deadline"]).operands(1),
    wrap(&["taskset"], "", &[]).operands(1),
    wrap(&["choom"], "np", &["adjust", "pid"]),
    wrap(&["timeout", "gtimeout"], "ks", &["kill-after", "signal"]).operands(1),
    wrap(&["timelimit"], "tTsS", &[]),
    wrap(&["stdbuf", "gstdbuf"], "ioe", &["input", "output", "error"]),
    wrap(&["time", "gtime"], "fo", &["format", "output"]),
    wrap(&["multitime"], "fiIlnorst", &[]),
    wrap(&["prlimit"], "p", &["pid", "output"]),
    wrap(&["cgexec"], "g", &[]),
    wrap(&["softlimit"], "admoscflnprtvx", &[]),
    wrap(&["cpulimit"], "lpe", &["limit", "pid", "exe", "path"]),
    wrap(&["numactl"], "CNmipPw", &["cpunodebind", "physcpubind", "membind", "interleave", "preferred", "weighted-interleave"]),
    wrap(&["systemd-inhibit"], "", &["what", "who", "why", "mode"]),
    wrap(&["gnome-session-inhibit"], "", &["app-id", "reason", "inhibit"]),
    wrap(&["caffeinate"], "tw", &[]),
    wrap(&["run-one", "run-this-one", "run-one-constantly", "keep-one-running", "run-one-until-success"], "", &[]),
    wrap(&["retry"], "dtu", &["times", "delay", "until", "while"]),
    wrap(&["wait-for-it", "wait-for"], "hpt", &["host", "port", "timeout"]).runs(Runs::After(&["--"])),
    wrap(&["dockerize"], "", &[]).runs(Runs::After(&["--"])),
    // Tracers and other lookers-on.
    wrap(&["strace"], "aeoOpPsSuEIXbUz", &["output", "trace", "attach", "env", "user", "columns", "string-limit", "summary-sort-by", "inject", "fault", "signal", "status", "read", "write", "abbrev", "verbose", "raw", "interruptible", "detach-on", "trace-path"]),
    wrap(&["ltrace"], "aAeFlnopsuwx", &["output", "library", "align", "where", "indent", "config"]),
    wrap(&["valgrind"], "", &[]),
    wrap(&["perf"], "eopFCcGDIrmtu", &["event", "output", "pid", "freq", "cpu", "repeat", "delay", "interval-print", "count", "cgroup", "uid"]).verbs(&["stat", "record", "trace", "mem record", "lock record", "sched record", "kvm stat record", "c2c record"]),
    wrap(&["uftrace", "heaptrack", "catchsegv", "rr", "apitrace", "gtrace", "bpftime", "samply", "flamegraph", "coverage-sh", "kcov", "bashcov"], "", &[]),
    wrap(&["hyperfine"], "wrmMpcCSsnuP", &["warmup", "runs", "min-runs", "max-runs", "prepare", "conclude", "cleanup", "setup", "shell", "style", "sort", "export-json", "export-markdown", "export-csv", "export-asciidoc", "export-orgmode", "command-name", "parameter-scan", "parameter-step-size", "parameter-list", "time-unit", "output", "input", "reference", "!show-output"])
        .runs(Runs::Each)
        .text(&["p", "prepare", "c", "cleanup", "C", "conclude", "s", "setup", "reference"]),
    wrap(&["watch"], "nqs", &["interval", "equexit", "shotsdir"]).runs(Runs::Shell),
    wrap(&["viddy", "hwatch"], "n", &["interval"]).runs(Runs::Shell),
    wrap(&["entr"], "", &[]),
    wrap(&["script"], "cBIOTmEo", &["command", "log-io", "log-out", "log-in", "log-timing", "echo", "output-limit", "logging-format"]).operands(1).text(&["c", "command"]),
    wrap(&["scriptlive", "scriptreplay"], "cBIOTtmEod", &["command", "log-in", "log-io", "timing", "divisor", "maxdelay"]).runs(Runs::Nothing).text(&["c", "command"]),
    wrap(&["asciinema"], "citeI", &["command", "title", "env", "idle-time-limit"]).runs(Runs::Nothing).text(&["c", "command"]),
    wrap(&["ttyrec", "termtosvg"], "e", &[]).runs(Runs::Nothing).text(&["e"]),
    wrap(&["logsave"], "", &[]).operands(1),
    wrap(&["chronic", "ifne", "lckdo", "mispipe", "zrun", "unbuffer", "grc", "uncache", "nocache", "eatmydata", "fakechroot", "with-contenv", "s6-setsid", "tsocks", "torify", "pexec", "coproc", "vault-env", "envconsul"], "", &[]),
    wrap(&["pee"], "", &[]).runs(Runs::Each),
    wrap(&["rlwrap"], "bcCDfFgHlmMpPsStwz", &["break-chars", "file", "history-filename", "logfile", "multi-line", "quote-characters", "histsize", "substitute-prompt", "prompt-colour", "filter"]),
    wrap(&["faketime", "datefudge"], "", &["pid"]).operands(1),
    wrap(&["distcc", "ccache", "sccache", "icecc", "scan-build", "bear", "intercept-build", "compiledb", "colorgcc"], "o", &["output"]),
    // Other surroundings.
    wrap(&["unshare"], "SGRw", &["root", "wd", "setuid", "setgid", "map-user", "map-group", "map-users", "map-groups", "propagation", "boottime", "monotonic", "setgroups", "owner", "load-interp"]).directory(&["w", "wd"]),
    wrap(&["nsenter"], "tSGN", &["target", "setuid", "setgid", "net-socket"]),
    wrap(&["setarch", "arch"], "", &["env"]),
    wrap(&["linux32", "linux64", "i386", "i486", "i586", "i686", "x86_64", "uname26", "ppc32", "sparc", "s390"], "", &[]),
    wrap(&["ssh-agent"], "atEPO", &[]),
    wrap(&["gpg-agent", "keychain"], "", &["options"]).runs(Runs::After(&["--daemon"])),
    wrap(&["dbus-run-session"], "", &["config-file", "dbus-daemon"]),
    wrap(&["dbus-launch"], "", &["config-file"]),
    wrap(&["xvfb-run"], "nefpsw", &["server-num", "server-args", "auth-file", "error-file", "wait", "xauth-protocol"]),
    wrap(&["xinit", "startx", "cage", "sway-run"], "", &[]),
    wrap(&["fakeroot", "fakeroot-ng", "pseudo"], "lfisbu", &["lib", "faked"]),
    wrap(&["firejail"], "", &[]),
    wrap(&["bwrap"], "", BWRAP),
    wrap(&["nsjail", "minijail0"], "MHDXcRBTmCtxugPfbkS", &["mode", "chroot", "user", "group", "hostname", "cwd", "log", "config", "bindmount", "bindmount_ro"]).runs(Runs::After(&["--"])),
    wrap(&["sandbox-exec"], "fpnD", &[]),
    wrap(&["proot"], "rbqwvkim", &["rootfs", "bind", "mount", "qemu", "pwd", "cwd", "verbose", "kernel-release"]),
    wrap(&["torsocks"], "uaP", &["user", "pass", "address", "port"]),
    wrap(&["proxychains", "proxychains4", "proxychains-ng"], "f", &[]),
    wrap(&["ip"], "nbcf", &["netns", "family", "color", "rcvbuf"]).verbs(&["netns exec", "net exec", "netn exec", "vrf exec"]).operands(1),
    wrap(&["firewall-offline", "cgrulesengd", "aa-exec"], "pnidv", &["profile", "namespace"]),
    wrap(&["machinectl"], "HMpnosE", &["host", "machine", "uid", "setenv"]).verbs(&["shell"]).operands(1),
    wrap(&["toolbox"], "crd", &["container", "distro", "release"]).verbs(&["run"]),
    wrap(&["distrobox", "distrobox-enter"], "na", &["name", "additional-flags"]).verbs(&["enter"]).runs(Runs::After(&["--", "-e"])),
    wrap(&["lima", "orb"], "", &[]),
    wrap(&["limactl", "multipass", "orbctl"], "", &["workdir", "shell", "user"]).verbs(&["shell", "exec", "run"]).operands(1),
    wrap(&["colima"], "p", &["profile"]).verbs(&["ssh", "exec"]),
    wrap(&["wsl"], "du", &["distribution", "user", "cd", "shell-type"]).runs(Runs::Arguments),
    wrap(&["setlock", "lockf"], "t", &[]).operands(1),
    wrap(&["chpst"], "uUbeodmnlpfcrtn/", &[]),
    wrap(&["envdir", "s6-envdir", "runlock"], "", &[]).operands(1),
    wrap(&["flock"], "wEc", &["timeout", "wait", "conflict-exit-code", "command"]).operands(1).text(&["c", "command"]),
    wrap(&["dumb-init"], "r", &["rewrite"]),
    wrap(&["tini", "tini-static", "catatonit"], "epv", &[]),
    wrap(&["daemonize"], "aceolpuE", &[]).directory(&["c"]),
    wrap(&["daemon"], "nuDFPeOEol", &["name", "user", "chdir", "pidfile", "pidfiles", "env", "stdout", "stderr", "output", "attempts", "delay", "limit", "umask", "chroot", "errlog", "dbglog"]).directory(&["D", "chdir"]),
    wrap(&["xdotool"], "", &[]).verbs(&["exec"]),
    wrap(&["run-parts"], "au", &["arg", "umask", "regex"]).runs(Runs::Nothing),
    wrap(&["launchctl"], "l", &[]).verbs(&["submit", "asuser"]).runs(Runs::After(&["--", "asuser"])),
    wrap(&["qemu-x86_64", "qemu-i386", "qemu-aarch64", "qemu-arm", "qemu-x86_64-static", "qemu-aarch64-static", "box64", "wine", "mono"], "gLsEU0d", &[]),
    wrap(&["adb"], "sHPt", &[]).verbs(&["shell", "exec-out"]).runs(Runs::Shell),
    wrap(&["heroku", "dokku", "kamal", "netlify", "eb"], "aers", &["app", "size", "env", "remote", "command", "type"]).verbs(&["run", "run:detached", "local:run", "app exec", "server exec", "dev:exec"]).runs(Runs::Shell).text(&["command"]),
    // Environments of languages.
    wrap(&["npm"], "cwC", &["call", "workspace", "prefix", "package", "loglevel", "registry", "userconfig"]).verbs(&["exec", "x"]).text(&["c", "call"]),
    wrap(&["npx", "pnpx"], "cpw", &["call", "package", "workspace"]).text(&["c", "call"]),
    wrap(&["pnpm"], "CF", &["dir", "filter", "package", "reporter", "loglevel", "workspace-concurrency"]).verbs(&["exec", "dlx", "run"]).directory(&["C", "dir"]),
    wrap(&["yarn", "yarnpkg"], "p", &["cwd", "package"]).verbs(&["exec", "dlx", "run", "workspaces foreach exec"]).directory(&["cwd"]),
    wrap(&["yarn"], "", &["cwd"]).verbs(&["workspace"]).operands(1),
    wrap(&["bun"], "p", &["cwd", "package"]).verbs(&["x", "exec", "run"]).directory(&["cwd"]),
    wrap(&["bunx"], "p", &["package"]),
    wrap(&["lerna"], "", &["scope", "ignore", "concurrency"]).verbs(&["exec"]),
    wrap(&["uv"], "pCw", UV).verbs(&["run", "tool run"]).directory(&["directory"]),
    wrap(&["uvx"], "pCw", UV),
    wrap(&["pipx"], "", &["spec", "python", "pip-args", "index-url", "with"]).verbs(&["run"]),
    wrap(&["poetry"], "CP", &["directory", "project"]).verbs(&["run"]).directory(&["C", "directory"]),
    wrap(&["pdm", "rye", "pipenv", "pixi", "hatch"], "peP", &["project", "env", "environment", "manifest-path", "site-packages", "python"]).verbs(&["run", "exec"]),
    wrap(&["tox"], "ecp", &["conf", "workdir", "skip-env"]).verbs(&["exec", "e"]).runs(Runs::After(&["--"])),
    wrap(&["bundle", "bundler"], "", &["gemfile"]).verbs(&["exec", "e"]),
    wrap(&["conda", "mamba", "micromamba"], "nprf", &["name", "prefix", "cwd", "root-prefix", "file"]).verbs(&["run"]).directory(&["cwd"]),
    wrap(&["pyenv", "rbenv", "nodenv", "goenv", "asdf", "fnm", "volta", "jenv", "phpenv", "swiftly"], "", &["using", "node"]).verbs(&["exec", "run"]),
    wrap(&["nvm", "rvm", "chruby-exec"], "", &[]).verbs(&["exec", "run"]).operands(1),
    wrap(&["rustup"], "", &[]).verbs(&["run"]).operands(1),
    wrap(&["cabal", "stack", "opam", "esy", "dune", "rebar3", "mix", "luarocks", "dotnet", "composer", "flutter"], "", &["switch", "package", "root", "directory"]).verbs(&["exec"]),
    wrap(&["mise", "rtx"], "cCjE", &["cd", "command", "jobs", "env"]).verbs(&["exec", "x"]).runs(Runs::After(&["--"])).text(&["c", "command"]).directory(&["C", "cd"]),
    wrap(&["direnv"], "", &[]).verbs(&["exec"]).operands(1),
    wrap(&["dotenv"], "fecvp", &["file", "expand"]).verbs(&["run"]),
    wrap(&["dotenv", "env-cmd", "dotenv-cli"], "fecvp", &["file", "environments"]),
    wrap(&["dotenvx", "infisical", "teller", "berglas", "summon", "sops-run"], "fe", &["env", "env-file", "path", "projectId"]).verbs(&["run", "exec"]),
    wrap(&["sops"], "", &[]).verbs(&["exec-env", "exec-file"]).operands(1).runs(Runs::Each),
    wrap(&["doppler"], "pc", &["project", "config", "command", "token", "scope"]).verbs(&["run"]).text(&["command"]),
    wrap(&["op"], "", &["env-file", "account", "session"]).verbs(&["run"]),
    wrap(&["chamber", "aws-vault", "aws-okta", "saml2aws", "envchain", "granted", "assume"], "dnra", &["duration", "region", "idp-account"]).verbs(&["exec"]).operands(1),
    wrap(&["envchain"], "", &[]).operands(1),
    wrap(&["vault"], "", &[]).verbs(&["agent exec"]).runs(Runs::After(&["--"])),
    wrap(&["cross-env", "cross-env-shell"], "", &[]).environment(),
    wrap(&["nix-shell"], "pAIEj", &["run", "command", "packages", "attr", "expr", "argstr", "arg"]).runs(Runs::Nothing).text(&["run", "command"]),
    wrap(&["nix"], "If", &["file", "expr", "impure"]).verbs(&["shell", "develop", "run"]).runs(Runs::After(&["-c", "--command", "--run"])),
    wrap(&["guix"], "pemLC", &["packages", "expression", "manifest", "load-path", "container"]).verbs(&["shell", "environment", "time-machine"]).runs(Runs::After(&["--"])),
    wrap(&["devbox", "flox", "devenv", "lorri", "spack", "tilt"], "ceder", &["config", "env", "dir", "environment"]).verbs(&["run", "activate", "shell", "exec", "args"]),
    wrap(&["task"], "", &[]).verbs(&["execute", "exec"]),
    wrap(&["cargo"], "CZsxwid", &["config", "color", "manifest-path"]).verbs(&["watch"]).runs(Runs::After(&["--"])).text(&["s", "shell", "x", "exec"]),
    wrap(&["cargo-watch"], "sxwidBEC", &["shell", "exec", "watch", "ignore", "delay", "workdir", "env", "features"]).runs(Runs::After(&["--"])).text(&["s", "shell"]),
    wrap(&["watchexec"], "wefidsECNWo", &["watch", "exts", "filter", "ignore", "debounce", "signal", "env", "workdir", "shell", "project-origin", "filter-file", "ignore-file", "stop-signal", "stop-timeout", "on-busy-update", "delay-run"]).runs(Runs::Shell).directory(&["workdir"]),
    wrap(&["nodemon"], "xewi", &["exec", "ext", "watch", "ignore", "delay", "signal"]).runs(Runs::Nothing).text(&["x", "exec"]),
    wrap(&["reflex", "modd", "air", "gow"], "rgRGdts", &["regex", "glob", "inverse-regex", "inverse-glob", "decoration"]).runs(Runs::After(&["--"])),
    wrap(&["concurrently", "conc"], "nclkpm", &["names", "prefix-colors", "max-processes", "prefix", "restart-tries", "success", "default-input-target"]).runs(Runs::Each),
    wrap(&["npm-run-all", "run-s", "run-p"], "", &[]).runs(Runs::Nothing),
    wrap(&["chokidar", "chokidar-cli", "onchange"], "cditp", &["command", "ignore", "debounce", "throttle"]).runs(Runs::After(&["--"])).text(&["c", "command"]),
    wrap(&["watchman-make", "watchman-wait"], "pt", &["run", "pattern", "target", "settle", "make"]).runs(Runs::Nothing).text(&["run", "make"]),
    wrap(&["fswatch", "inotifywait"], "", &[]).runs(Runs::Nothing),
    wrap(&["vagrant"], "c", &["command"]).runs(Runs::Nothing).text(&["c", "command"]),
    // Terminals.
    wrap(&["gnome-terminal", "ptyxis", "tilix", "mate-terminal", "xfce4-terminal", "lxterminal", "terminator", "terminology", "guake", "qterminal", "deepin-terminal", "kgx", "blackbox"], "eTtw", &["command", "title", "working-directory", "!tab", "!window", "!execute"])
        .runs(Runs::After(&["--", "-x", "--execute"]))
        .text(&["e", "command"])
        .directory(&["working-directory"]),
    wrap(&["konsole"], "p", &["workdir", "profile", "tabs-from-file"]).runs(Runs::After(&["-e"])).directory(&["workdir"]),
    wrap(&["alacritty", "st", "stterm", "x-terminal-emulator", "rxvt", "urxvt", "aterm", "eterm", "cool-retro-term", "hyper", "lxterm", "uxterm", "xterm", "mintty", "sakura", "roxterm", "termite", "yakuake", "contour", "rio"], "", &["working-directory", "title", "class", "config-file"])
        .runs(Runs::After(&["-e", "--command", "-x"]))
        .directory(&["working-directory"]),
    wrap(&["kitty", "foot", "footclient", "ghostty"], "Tcodatwv", &["title", "config", "override", "directory", "working-directory", "class", "name", "session", "app-id", "font", "term"]).directory(&["directory", "working-directory"]),
    wrap(&["wezterm"], "", &["cwd", "class", "workspace", "domain"]).verbs(&["start", "cli spawn", "cli split-pane"]).directory(&["cwd"]),
    wrap(&["zellij"], "ndc", &["name", "direction", "cwd", "session"]).verbs(&["run", "action new-pane"]).runs(Runs::After(&["--"])),
    wrap(&["dtach", "abduco"], "eErR", &[]).operands(1),
    wrap(&["busybox", "toybox", "busybox-static"], "", &[]),
];
