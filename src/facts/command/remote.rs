//! Commands that run elsewhere: other machines, containers, other roots.

use std::rc::Rc;

use super::options::{Options, command_after};
use super::text::UNKNOWN;
use super::walk::Walker;

pub(super) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    walker.judge(name, args, &[]);
    Some(match name {
        "ssh" | "autossh" | "mosh" => ssh(walker, args),
        "sshpass" => {
            let (_, argv) = command_after(args, "fdpP", &[], 0, false);
            walker.exec_texts(argv.to_vec())
        }
        "chroot" | "arch-chroot" | "systemd-nspawn" => other_root(walker, name, args),
        _ => container(walker, args),
    })
}

const SSH_VALUED: &str = "BbcDEeFIiJLlmOoPpQRSWw";

fn ssh(walker: &mut Walker<'_>, args: &[String]) -> String {
    let options = Options::read(args, SSH_VALUED, &["ssh", "server"]);
    for setting in options.values('o') {
        let (key, value) = setting.split_once(['=', ' ']).unwrap_or((&setting, ""));
        if ["proxycommand", "localcommand", "knownhostscommand"].contains(&key.trim().to_ascii_lowercase().as_str()) {
            walker.run_text(value);
        }
    }
    let (_, rest) = command_after(args, SSH_VALUED, &[], 0, false);
    let Some((host, command)) = rest.split_first() else { return String::new() };
    let host = host.rsplit('@').next().unwrap_or_default().trim_start_matches("ssh://");
    if super::text::is_known(host) {
        walker.notes.host(host.split([':', '/']).next().unwrap_or_default());
    }
    walker.notes.effect("remote-exec");
    let (_, command) = command_after(command, SSH_VALUED, &[], 0, false);
    let text = command.join(" ");
    walker.subshell(|walker| {
        walker.env.remote = true;
        walker.env.cwd = walker.home();
        walker.env.other_cwds.clear();
        if text.is_empty() {
            if walker.env.stdin.is_some() { super::shells::stdin(walker) } else { String::new() }
        } else {
            walker.run_text(&text) + &UNKNOWN.to_string()
        }
    })
}

/// docker(1) and its like: `run IMAGE command` and `exec CONTAINER command`.
fn container(walker: &mut Walker<'_>, args: &[String]) -> String {
    let Some(at) = args.iter().position(|arg| matches!(arg.as_str(), "run" | "exec" | "create")) else {
        return UNKNOWN.to_string();
    };
    const VALUED: &str = "vepuwhlmcanfi";
    const LONG: &[&str] = &[
        "volume",
        "mount",
        "env",
        "env-file",
        "publish",
        "user",
        "workdir",
        "hostname",
        "label",
        "memory",
        "cpus",
        "name",
        "network",
        "entrypoint",
        "cap-add",
        "cap-drop",
        "device",
        "security-opt",
        "pid",
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
        "gpus",
        "pull",
        "net",
        "uts",
        "expose",
        "cidfile",
        "cgroup-parent",
        "stop-signal",
        "namespace",
        "container",
        "image",
        "context",
        "filename",
        "file",
        "index",
    ];
    let rest = args.get(at + 1..).unwrap_or_default();
    let valued = if args.get(at).is_some_and(|arg| arg == "run") { "vepuwhlmca" } else { "euwnc" };
    debug_assert!(valued.chars().all(|c| VALUED.contains(c)));
    let options = Options::read(rest, valued, LONG);
    let mut mounts = vec![(String::new(), String::new())];
    for spec in options.values('v').into_iter().chain(options.long_values("volume")) {
        let mut parts = spec.split(':');
        if let (Some(outside), Some(inside)) = (parts.next(), parts.next()) {
            mounts.push((inside.trim_end_matches('/').to_owned(), walker.target(outside).path));
        }
    }
    for spec in options.long_values("mount") {
        let field = |names: &[&str]| {
            spec.split(',')
                .find_map(|part| part.split_once('=').filter(|(key, _)| names.contains(key)).map(|(_, value)| value))
        };
        if let (Some(outside), Some(inside)) = (field(&["source", "src"]), field(&["target", "destination", "dst"])) {
            mounts.push((inside.trim_end_matches('/').to_owned(), walker.target(outside).path));
        }
    }
    let (_, rest) = command_after(rest, valued, LONG, 1, false);
    let mut argv = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest).to_vec();
    if let Some(entrypoint) = options.long_values("entrypoint").first() {
        argv.insert(0, entrypoint.clone());
    }
    let shared_devices = options.has_long("privileged", 10)
        || options.long_values("device").iter().any(|device| device.starts_with("/dev/"));
    if shared_devices {
        mounts.push(("/dev".to_owned(), "/dev".to_owned()));
    }
    if argv.is_empty() {
        return UNKNOWN.to_string();
    }
    walker.subshell(|walker| {
        walker.env.mounts = Some(Rc::new(mounts));
        walker.env.cwd = options
            .values('w')
            .into_iter()
            .chain(options.long_values("workdir"))
            .next()
            .unwrap_or_else(|| "/".to_owned());
        walker.env.other_cwds.clear();
        walker.exec_texts(argv) + &UNKNOWN.to_string()
    })
}

/// chroot(8): paths start at the new root.
fn other_root(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let (valued, long): (&str, &[&str]) = match name {
        "systemd-nspawn" => ("DMuiSXELU", &["directory", "machine", "image", "bind", "bind-ro"]),
        _ => ("u", &["userspec", "groups"]),
    };
    let options = Options::read(args, valued, long);
    let operands = if name == "systemd-nspawn" { 0 } else { 1 };
    let (_, argv) = command_after(args, valued, long, operands, false);
    let root = match name {
        "systemd-nspawn" => options.values('D').first().cloned(),
        _ => options.operands.first().cloned(),
    };
    let target = walker.target(&root.unwrap_or_else(|| ".".to_owned()));
    let (root, container) = (target.path, target.kinds.has(super::target::Kind::Container));
    if argv.is_empty() {
        return String::new();
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
