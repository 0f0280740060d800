//! Commands that run elsewhere: other machines, containers, other roots.

use std::rc::Rc;

use super::exec_or_text;
use super::options::{Options, command_after, shell_words};
use crate::facts::command::effects::target;
use crate::facts::command::effects::target::{Kind, Kinds};
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::UNKNOWN;

/// Programs whose commands run elsewhere.
pub(crate) fn runs(name: &str) -> bool {
    matches!(name, "ssh" | "autossh" | "mosh" | "sshpass" | "plink" | "et" | "rsh" | "rexec" | "dbclient" | "slogin")
        || CONTAINERS.contains(&name)
        || matches!(name, "chroot" | "systemd-nspawn" | "arch-chroot" | "schroot")
}

const CONTAINERS: &[&str] = &[
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "k3s",
    "microk8s",
    "docker-compose",
    "podman-compose",
    "crictl",
    "ctr",
    "lxc",
    "lxc-attach",
    "lxc-execute",
    "incus",
    "apptainer",
    "singularity",
    "enroot",
    "udocker",
    "pct",
    "jexec",
    "buildah",
    "container",
    "devcontainer",
];

pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    walker.judge(name, args, &[]);
    Some(match name {
        "mosh" | "et" => mosh(walker, args),
        "plink" => ssh(walker, "PlLmiDRwRo", args),
        "autossh" => ssh(walker, "MBbcDEeFIiJLlmOoPpQRSWw", args),
        "ssh" | "rsh" | "rexec" | "dbclient" | "slogin" => ssh(walker, SSH_VALUED, args),
        "sshpass" => {
            let (_, argv) = command_after(args, "fdpP", &[], 0, false);
            walker.exec_texts(argv.to_vec())
        }
        "chroot" | "arch-chroot" | "systemd-nspawn" | "schroot" => other_root(walker, name, args),
        _ => container(walker, name, args),
    })
}

const SSH_VALUED: &str = "BbcDEeFIiJLlmOoPpQRSWw";

fn ssh(walker: &mut Walker<'_>, valued: &str, args: &[String]) -> String {
    let (_, rest) = command_after(args, valued, &["ssh", "server"], 0, false);
    // Options may also stand after the host.
    let after = rest.split_first().map_or(&[] as &[String], |(_, rest)| command_after(rest, valued, &[], 0, false).1);
    let own = args.get(..args.len().saturating_sub(after.len())).unwrap_or_default();
    ssh_options(walker, own, valued);
    let Some(host) = rest.first() else { return String::new() };
    let after = after.to_vec();
    let options = Options::read(own, valued, &[]);
    // `-N` and `-W` run nothing there.
    let silent = options.has('N') || options.has('W');
    ssh_host(walker, host);
    let text = after.join(" ");
    walker.subshell(|walker| {
        away(walker);
        if !text.is_empty() {
            walker.run_text(&text) + &UNKNOWN.to_string()
        } else if walker.env.stdin.is_some() && !silent {
            super::shells::stdin(walker)
        } else {
            String::new()
        }
    })
}

fn mosh(walker: &mut Walker<'_>, args: &[String]) -> String {
    let long: &[&str] =
        &["ssh", "server", "client", "predict", "port", "family", "bind-server", "command", "terminal-path"];
    let (_, rest) = command_after(args, "pc", long, 0, false);
    let own = args.get(..args.len().saturating_sub(rest.len())).unwrap_or_default();
    let options = Options::read(own, "pc", long);
    for text in options.long_values("ssh").into_iter().chain(options.long_values("client")) {
        walker.subshell(|walker| walker.run_text(&text));
    }
    let mut texts = options.long_values("command");
    texts.extend(options.values('c'));
    let Some((host, command)) = rest.split_first() else { return String::new() };
    ssh_host(walker, host);
    let command = command.strip_prefix(&["--".to_owned()]).unwrap_or(command).to_vec();
    walker.subshell(|walker| {
        away(walker);
        for text in texts {
            walker.run_text(&text);
        }
        if command.is_empty() { String::new() } else { exec_or_text(walker, command) }
    })
}

fn ssh_host(walker: &mut Walker<'_>, host: &str) {
    let host = host.rsplit('@').next().unwrap_or_default().trim_start_matches("ssh://");
    if text::is_known(host) {
        walker.notes.host(host.split([':', '/']).next().unwrap_or_default());
    }
    walker.notes.effect("remote-exec");
}

/// What runs from here on runs on another machine.
fn away(walker: &mut Walker<'_>) {
    walker.env.remote = true;
    walker.env.cwd = walker.home();
    walker.env.other_cwds.clear();
}

/// `-o` and `-F` of ssh(1) and its kin (scp, sftp, sshfs).
pub(crate) fn ssh_options(walker: &mut Walker<'_>, args: &[String], valued: &str) {
    let options = Options::read(args, valued, &[]);
    for setting in options.values('o') {
        ssh_setting(walker, &setting);
    }
    for path in options.values('F') {
        let span = walker.span.clone();
        let text = walker.read_file(&path, &span);
        for line in text.lines() {
            ssh_setting(walker, line);
        }
    }
}

/// One setting of ssh_config(5), those that run commands.
fn ssh_setting(walker: &mut Walker<'_>, setting: &str) {
    let setting = setting.trim();
    let (key, value) = setting.split_once(|c: char| c == '=' || c.is_whitespace()).unwrap_or((setting, ""));
    let value = value.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
    match key.to_ascii_lowercase().as_str() {
        "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand" | "ssh_command" => {
            let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value).to_owned();
            walker.subshell(|walker| walker.run_text(&text));
        }
        "match" => {
            let words = shell_words(value);
            for pair in words.windows(2) {
                if let [criterion, text] = pair
                    && criterion.trim_start_matches('!').eq_ignore_ascii_case("exec")
                {
                    walker.subshell(|walker| walker.run_text(text));
                }
            }
        }
        _ => {}
    }
}

const RUN_VALUED: &str = "vepuwhlmca";
const EXEC_VALUED: &str = "euwncf";
const CONTAINER_LONG: &[&str] = &[
    "volume",
    "mount",
    "env",
    "env-file",
    "publish",
    "user",
    "workdir",
    "cwd",
    "hostname",
    "label",
    "label-file",
    "memory",
    "memory-swap",
    "cpus",
    "cpuset-cpus",
    "cpu-shares",
    "name",
    "network",
    "network-alias",
    "entrypoint",
    "cap-add",
    "cap-drop",
    "device",
    "security-opt",
    "pid",
    "pids-limit",
    "ipc",
    "userns",
    "platform",
    "restart",
    "add-host",
    "dns",
    "link",
    "log-driver",
    "log-opt",
    "runtime",
    "shm-size",
    "tmpfs",
    "ulimit",
    "volumes-from",
    "volume-driver",
    "gpus",
    "pull",
    "net",
    "uts",
    "expose",
    "cidfile",
    "cgroupns",
    "cgroup-parent",
    "stop-signal",
    "stop-timeout",
    "sysctl",
    "health-cmd",
    "health-interval",
    "detach-keys",
    "!detach",
    "namespace",
    "container",
    "image",
    "context",
    "filename",
    "file",
    "index",
    "overrides",
    "target",
    "profile",
    "kubeconfig",
    "pod",
    "annotation",
    "bind",
    "pwd",
    "uid",
    "gid",
];

/// docker(1) and its like: `run IMAGE command` and `exec CONTAINER command`.
fn container(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let verb = |arg: &String| {
        matches!(arg.as_str(), "run" | "exec" | "create" | "debug" | "rsh" | "shell" | "enter" | "start")
    };
    let direct = matches!(name, "lxc-attach" | "lxc-execute" | "jexec");
    let at = if direct { Some(0) } else { args.iter().position(verb).map(|at| at + 1) };
    let Some(rest) = at.and_then(|at| args.get(at..)) else { return UNKNOWN.to_string() };
    let word = at.and_then(|at| args.get(at.wrapping_sub(1))).map(String::as_str).unwrap_or_default();
    let valued = if matches!(word, "run" | "create") { RUN_VALUED } else { EXEC_VALUED };
    let kubernetes = matches!(name, "kubectl" | "oc" | "k3s" | "microk8s");
    let operands = usize::from(!direct);
    let (own, mut argv) = match rest.iter().position(|arg| arg == "--") {
        // What stands before the dashes is its own.
        Some(dashes) if kubernetes || matches!(name, "lxc" | "incus" | "pct") || direct => {
            (rest.get(..dashes).unwrap_or_default(), rest.get(dashes + 1..).unwrap_or_default().to_vec())
        }
        _ => {
            let (_, argv) = command_after(rest, valued, CONTAINER_LONG, operands, false);
            let own = rest.get(..rest.len().saturating_sub(argv.len())).unwrap_or_default();
            (own, argv.strip_prefix(&["--".to_owned()]).unwrap_or(argv).to_vec())
        }
    };
    let options = Options::read(own, valued, CONTAINER_LONG);
    if let Some(entrypoint) = options.long_values("entrypoint").first() {
        argv.splice(0..0, shell_words(entrypoint));
    }
    let health: Vec<String> = options.long_values("health-cmd");
    let mut mounts = mounts(walker, &options);
    let private = Kinds::of(Kind::Home).and(Kind::Credential);
    if mounts.iter().any(|(_, outside)| !outside.is_empty() && walker.kinds_of(outside).meets(private)) {
        walker.event("mount-host");
    }
    if argv.is_empty() && health.is_empty() {
        return UNKNOWN.to_string();
    }
    if kubernetes && word == "debug" && own.iter().any(|arg| arg.starts_with("node/") || arg.starts_with("nodes/")) {
        // A debugging pod of a node has the node's files there.
        mounts.push(("/host".to_owned(), "/".to_owned()));
    }
    walker.subshell(|walker| {
        walker.env.mounts = Some(Rc::new(mounts));
        let directory = options.values('w').into_iter().chain(options.long_values("workdir")).next();
        walker.env.cwd = directory.unwrap_or_else(|| "/".to_owned());
        walker.env.other_cwds.clear();
        for text in health {
            walker.run_text(&text);
        }
        if argv.is_empty() {
            return UNKNOWN.to_string();
        }
        exec_or_text(walker, argv) + &UNKNOWN.to_string()
    })
}

/// Where a container sees the host's files: (inside, on the host).
fn mounts(walker: &Walker<'_>, options: &Options) -> Vec<(String, String)> {
    let mut mounts = vec![(String::new(), String::new())];
    let mut add = |inside: &str, outside: &str| {
        mounts.push((inside.trim_end_matches('/').to_owned(), walker.target(outside).path));
    };
    for spec in ["volume", "bind"].iter().flat_map(|name| options.long_values(name)).chain(options.values('v')) {
        let mut parts = spec.split(':');
        if let (Some(outside), Some(inside)) = (parts.next(), parts.next()) {
            add(inside, outside);
        }
    }
    for spec in options.long_values("mount") {
        let field = |names: &[&str]| {
            spec.split(',')
                .find_map(|part| part.split_once('=').filter(|(key, _)| names.contains(key)).map(|(_, value)| value))
        };
        if let (Some(outside), Some(inside)) = (field(&["source", "src"]), field(&["target", "destination", "dst"])) {
            add(inside, outside);
        }
    }
    let devices = options.has_long("privileged", 10)
        || options.long_values("device").iter().any(|device| device.starts_with("/dev/"));
    if devices {
        add("/dev", "/dev");
    }
    mounts
}

/// chroot(8): paths start at the new root.
fn other_root(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let (valued, long): (&str, &[&str]) = match name {
        "systemd-nspawn" => (
            "DMuiSXELUp",
            &["directory", "machine", "image", "bind", "bind-ro", "user", "chdir", "setenv", "template", "property"],
        ),
        "schroot" => ("cudn", &["chroot", "user", "directory", "session-name"]),
        _ => ("u", &["userspec", "groups", "!skip-chdir"]),
    };
    let operands = usize::from(!matches!(name, "systemd-nspawn" | "schroot"));
    let (_, argv) = command_after(args, valued, long, operands, false);
    let own = args.get(..args.len().saturating_sub(argv.len())).unwrap_or_default();
    let options = Options::read(own, valued, long);
    let root = match name {
        "systemd-nspawn" => options.values('D').into_iter().chain(options.long_values("directory")).next(),
        "schroot" => None,
        _ => options.operands.first().cloned(),
    };
    let target = walker.target(&root.unwrap_or_else(|| ".".to_owned()));
    let (root, container) = (target.path, target.kinds.has(target::Kind::Container));
    if argv.is_empty() {
        return if walker.env.stdin.is_some() { super::shells::stdin(walker) } else { String::new() };
    }
    let argv = argv.to_vec();
    walker.subshell(|walker| {
        if !container {
            walker.env.mounts = (root != "/").then(|| Rc::new(vec![("/".to_owned(), root)]));
        }
        walker.env.cwd = "/".to_owned();
        walker.exec_texts(argv)
    })
}
