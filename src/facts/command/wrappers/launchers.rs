//! Options of ordinary programs whose value is a command line, or a file of commands. Sources: the programs' manual
//! pages and GTFOBins' list of programs that can run others.

use super::options::{Options, shell_words};
use super::remote;
use crate::facts::command::languages::consoles;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::inert;

/// A program with such options.
struct Launcher {
    names: &'static [&'static str],
    /// Short options with a value.
    short: &'static str,
    /// Long options whose value may be the next argument.
    long: &'static [&'static str],
    /// Options whose value runs; a single letter is a short one.
    runs: &'static [&'static str],
    /// Long options with a single dash whose value runs.
    dashed: &'static [&'static str],
}

const fn options(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    runs: &'static [&'static str],
) -> Launcher {
    Launcher { names, short, long, runs, dashed: &[] }
}

const fn dashed(names: &'static [&'static str], dashed: &'static [&'static str]) -> Launcher {
    Launcher { names, short: "", long: &[], runs: &[], dashed }
}

/// Long options of tar(1) with a value.
pub(crate) const TAR_LONG: &[&str] = &[
    "file",
    "directory",
    "files-from",
    "exclude-from",
    "use-compress-program",
    "checkpoint-action",
    "!checkpoint",
    "to-command",
    "exclude",
    "transform",
    "info-script",
    "new-volume-script",
    "rsh-command",
    "rmt-command",
];

/// Its short options with a value.
pub(crate) const TAR_SHORT: &str = "fCTXIbgKNVFHL";

/// The arguments of tar(1) with an option each. Its first one may be a cluster without a dash, whose values follow in the
/// order of its letters.
pub(crate) fn tar_arguments(args: &[String]) -> Vec<String> {
    let Some((cluster, rest)) = args.split_first().filter(|(first, _)| !first.starts_with('-')) else {
        return args.to_vec();
    };
    let mut values = rest.iter();
    let mut out = Vec::new();
    for letter in cluster.chars() {
        out.push(format!("-{letter}"));
        if TAR_SHORT.contains(letter) {
            out.extend(values.next().cloned());
        }
    }
    out.extend(values.cloned());
    out
}

#[rustfmt::skip]
const LAUNCHERS: &[Launcher] = &[
    options(&["tar", "gtar", "bsdtar"], TAR_SHORT, TAR_LONG, &["I", "F", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command"]),
    options(&["cpio", "rmt"], "EFHCDRIO", &["rsh-command", "file"], &["rsh-command"]),
    options(&["rsync"], "efBTM", &["rsh", "exclude", "include", "files-from", "exclude-from", "rsync-path", "filter", "log-file", "port", "bwlimit", "temp-dir", "backup-dir", "!backup"], &["e", "rsh", "rsync-path"]),
    options(&["rdiff-backup", "unison", "duplicity"], "", &["remote-schema", "rsh", "sshcmd", "ssh-options"], &["remote-schema", "rsh", "sshcmd"]),
    options(&["sort", "gsort"], "okStT", &["output", "compress-program", "key", "buffer-size", "field-separator", "temporary-directory", "files0-from", "parallel", "batch-size"], &["compress-program"]),
    options(&["split", "gsplit", "csplit"], "abCln", &["filter", "bytes", "lines", "suffix-length", "additional-suffix", "number", "line-bytes"], &["filter"]),
    options(&["zip"], "bntx", &["unzip-command"], &["unzip-command"]),
    dashed(&["zip"], &["TT"]),
    options(&["man", "apropos"], "PCELMSsemrRH", &["pager", "preprocessor", "config-file", "systems", "manpath", "sections"], &["P", "pager", "H", "html", "browser"]),
    options(&["nano", "pico", "rnano"], "sorTY", &["speller", "operatingdir"], &["s", "speller"]),
    options(&["rg", "ripgrep"], "egftTABCmMr", &["pre", "hostname-bin", "regexp", "file", "glob", "type"], &["pre", "hostname-bin"]),
    options(&["fzf", "sk"], "qdn", &["bind", "preview", "query", "delimiter", "with-nth", "nth", "height", "header", "prompt", "cmd"], &["preview", "cmd"]),
    options(&["wget", "wget2"], "oaOieUDAPQTtwS", &["use-askpass", "output-document", "post-data", "header", "user-agent"], &["use-askpass"]),
    options(&["aria2c"], "dolxsk", &["on-download-complete", "on-download-error", "on-download-pause", "on-download-start", "on-download-stop", "on-bt-download-complete", "dir", "out"], &["on-download-complete", "on-download-error", "on-download-pause", "on-download-start", "on-download-stop", "on-bt-download-complete"]),
    options(&["yt-dlp", "youtube-dl"], "ofaPS", &["exec", "exec-before-download", "netrc-cmd", "output", "format"], &["exec", "exec-before-download", "netrc-cmd"]),
    options(&["tcpdump", "tshark", "dumpcap"], "zwrGWCiscyBFTEMDVjQ", &["postrotate-command"], &["z", "postrotate-command"]),
    options(&["restic", "rclone", "rustic", "autorestic"], "ro", &["password-command", "repo", "config"], &["password-command"]),
    options(&["sshuttle"], "rexXl", &["ssh-cmd", "remote", "exclude", "listen"], &["e", "ssh-cmd"]),
    options(&["certbot", "letsencrypt", "certbot-auto"], "dmaiw", &["pre-hook", "post-hook", "deploy-hook", "renew-hook", "manual-auth-hook", "manual-cleanup-hook", "domain", "email", "webroot-path"], &["pre-hook", "post-hook", "deploy-hook", "renew-hook", "manual-auth-hook", "manual-cleanup-hook"]),
    options(&["acme.sh"], "dw", &["reloadcmd", "pre-hook", "post-hook", "renew-hook", "domain", "webroot"], &["reloadcmd", "pre-hook", "post-hook", "renew-hook"]),
    options(&["rpm", "rpmbuild", "rpmquery", "rpmverify"], "EDr", &["pipe", "eval", "define", "root", "dbpath"], &["pipe"]),
    options(&["enscript"], "IopfFPq", &["filter", "output"], &["I", "filter"]),
    options(&["scrot"], "edtq", &["exec", "delay", "thumb", "quality"], &["e", "exec"]),
    options(&["gpg", "gpg2"], "rou", &["photo-viewer", "recipient", "output", "homedir", "passphrase-fd", "pinentry-mode"], &["photo-viewer"]),
    options(&["gcloud"], "", &["command", "zone", "project", "ssh-flag", "region"], &["command"]),
    options(&["fly", "flyctl", "railway", "render"], "Ca", &["command", "app"], &["C", "command"]),
    options(&["az"], "gn", &["scripts", "resource-group", "name", "command-id"], &["scripts"]),
    options(&["ansible", "ansible-console"], "maiufeMtlTBPc", &["args", "module-name", "inventory", "user"], &["a", "args"]),
    options(&["pandoc"], "FLofrtVMH", &["filter", "output", "from", "to"], &["F", "filter"]),
    options(&["svn", "svnadmin"], "mrF", &["editor-cmd", "diff-cmd", "diff3-cmd", "config-option", "message"], &["editor-cmd", "diff-cmd", "diff3-cmd"]),
    options(&["hg"], "emRru", &["ssh", "config", "remotecmd", "message", "tool"], &["e", "ssh", "remotecmd"]),
    options(&["dpkg", "dpkg-deb"], "DR", &["pre-invoke", "post-invoke", "status-logger"], &["pre-invoke", "post-invoke", "status-logger"]),
    options(&["nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "cryptcat"], "cegiopqswxX", &["exec", "sh-exec", "lua-exec"], &["e", "c", "exec", "sh-exec"]),
    options(&["openvpn"], "", &["up", "down", "route-up", "route-pre-down", "tls-verify", "ipchange", "client-connect", "client-disconnect", "learn-address", "auth-user-pass-verify", "script-security", "dev", "config"], &["up", "down", "route-up", "route-pre-down", "tls-verify", "ipchange", "client-connect", "client-disconnect", "learn-address", "auth-user-pass-verify"]),
    options(&["mysql", "mariadb"], "uhPDeSp", &["pager", "execute", "user", "host", "port", "database", "tee"], &["pager"]),
    options(&["dstat", "pcp"], "", &["exec"], &["exec"]),
    dashed(&["go"], &["exec", "toolexec", "vettool"]),
];

/// Runs what options of a program run.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    let spread = matches!(name, "tar" | "gtar" | "bsdtar").then(|| tar_arguments(args));
    let args = spread.as_deref().unwrap_or(args);
    for launcher in LAUNCHERS.iter().filter(|launcher| launcher.names.contains(&name)) {
        let options = Options::read(args, launcher.short, launcher.long);
        let mut texts = super::wrapper_table::Wrapper::values(&options, launcher.runs);
        texts.extend(launcher.dashed.iter().flat_map(|option| single_dashed(args, option)));
        for text in texts.iter().filter(|text| !matches!(text.as_str(), "" | "-")) {
            walker.subshell(|walker| walker.run_text(text));
        }
    }
    match name {
        "tar" | "gtar" | "bsdtar" => {
            for action in Options::read(args, TAR_SHORT, TAR_LONG).long_values("checkpoint-action") {
                if let Some(text) = action.strip_prefix("exec=") {
                    walker.subshell(|walker| walker.run_text(text));
                }
            }
        }
        "scp" | "sftp" | "sshfs" | "ssh-copy-id" => {
            let options = Options::read(args, "SFiJPlocXBDRs", &[]);
            for program in options.values('S') {
                walker.subshell(|walker| walker.run_text(&program));
            }
            remote::ssh_options(walker, args, "SFiJPlocXBDRs");
        }
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "gfortran" | "c99" | "c89" => {
            for text in single_dashed(args, "wrapper") {
                let argv = text.split(',').map(str::to_owned).collect();
                walker.subshell(|walker| walker.exec_texts(argv));
            }
        }
        "cmake" => cmake(walker, args),
        "cargo" => cargo(walker, args),
        "apt" | "apt-get" | "aptitude" | "apt-cache" => apt(walker, args),
        "hg" => {
            for setting in Options::read(args, "", &["config"]).long_values("config") {
                if let Some((_, value)) = setting.split_once('=') {
                    let text = value.trim_start_matches('!').to_owned();
                    walker.subshell(|walker| walker.run_text(&text));
                }
            }
        }
        "rpm" | "rpmbuild" | "rpmspec" => {
            for part in args.iter().flat_map(|arg| arg.split("%(").skip(1)) {
                let text = part.rsplit_once(')').map_or(part, |(text, _)| text).to_owned();
                walker.subshell(|walker| walker.run_text(&text));
            }
        }
        "java" => {
            for text in args.iter().filter_map(|arg| arg.strip_prefix("-XX:On")?.split_once('=')) {
                walker.subshell(|walker| walker.run_text(text.1));
            }
        }
        "aws" => remote_commands(walker, args),
        "at" => {
            for path in Options::read(args, "fqt", &[]).values('f') {
                let target = walker.target(&path);
                let text = walker.content(&target);
                walker.subshell(|walker| walker.run_text(&text));
            }
        }
        "salt" => {
            let text = args.iter().position(|arg| arg == "cmd.run").and_then(|at| args.get(at + 1)).cloned();
            walker.subshell(|walker| walker.run_text(&text.unwrap_or_default()));
        }
        "pdsh" | "pssh" | "parallel-ssh" | "clush" | "dsh" | "mpssh" => {
            let long = &["host", "hosts", "user", "group", "timeout", "par", "outdir", "errdir"];
            let (_, argv) = super::options::command_after(args, "wxlhHtpgfrmoOe", long, 0, false);
            let text = argv.join(" ");
            walker.subshell(|walker| walker.run_text(&text));
        }
        "fzf" | "sk" => bindings(walker, args),
        _ if name.ends_with("tex") || name.ends_with("latex") => {
            for part in args.iter().flat_map(|arg| arg.split("write18{").skip(1)) {
                let text = part.split('}').next().unwrap_or_default().to_owned();
                walker.subshell(|walker| walker.run_text(&text));
            }
        }
        _ => {}
    }
    consoles::run(walker, name, args);
}

/// The values of an option as `-name value`, `-name=value`, or the same with two dashes.
pub(crate) fn single_dashed(args: &[String], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        let Some(given) = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')) else { continue };
        if given == name {
            values.extend(args.get(i + 1).cloned());
        } else if let Some((given, value)) = given.split_once('=')
            && given == name
        {
            values.push(value.to_owned());
        }
    }
    values
}

/// `cmake -E` has commands of its own and runs others; `-P` runs a script.
fn cmake(walker: &mut Walker<'_>, args: &[String]) {
    if let Some(at) = args.iter().position(|arg| arg == "-E") {
        let Some((command, rest)) = args.get(at + 1..).and_then(|rest| rest.split_first()) else { return };
        let program: &[&str] = match command.as_str() {
            "rm" => &["rm"],
            "remove" | "remove_directory" => &["rm", "-r"],
            "env" | "time" => &["env"],
            "chdir" => &["env", "-C"],
            "copy" | "copy_directory" | "copy_if_different" => &["cp"],
            "rename" => &["mv"],
            "touch" | "touch_nocreate" | "make_directory" => &["touch"],
            "create_symlink" | "create_hardlink" => &["ln"],
            "tar" => &["tar"],
            _ => return,
        };
        let argv = program.iter().map(|word| (*word).to_owned()).chain(rest.iter().cloned()).collect();
        walker.subshell(|walker| walker.exec_texts(argv));
    }
    for path in Options::read(args, "PSBDGTACUj", &[]).values('P') {
        let target = walker.target(&path);
        let text = walker.files.get(&target.path).cloned().unwrap_or_default();
        for part in text.split("COMMAND ").skip(1) {
            let line = part.split([')', '\n']).next().unwrap_or_default().to_owned();
            walker.subshell(|walker| walker.run_text(&line));
        }
    }
}

/// `--config` of cargo names runners, wrappers and linkers.
fn cargo(walker: &mut Walker<'_>, args: &[String]) {
    for setting in Options::read(args, "CZpjF", &["config"]).long_values("config") {
        let Some((key, value)) = setting.rsplit_once('=').filter(|(key, _)| !key.contains(['"', '\n'])) else {
            continue;
        };
        let key = key.trim();
        let last = key.rsplit('.').next().unwrap_or_default();
        if !matches!(last, "runner" | "rustc-wrapper" | "rustc-workspace-wrapper" | "rustc" | "rustdoc" | "linker") {
            continue;
        }
        let value = value.trim();
        let items: Vec<String> = match value.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(list) => list.split(',').map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect(),
            None => shell_words(value.trim_matches(['"', '\''])),
        };
        walker.subshell(|walker| walker.exec_texts(items));
    }
}

/// `-o APT::Update::Pre-Invoke::=command`.
fn apt(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "oct", &["option"]);
    for setting in options.values('o').into_iter().chain(options.long_values("option")) {
        if let Some((key, value)) = setting.split_once('=')
            && ["invoke", "pkgs", "pager", "solvers", "planners"]
                .iter()
                .any(|part| key.to_ascii_lowercase().contains(part))
        {
            walker.subshell(|walker| walker.run_text(value));
        }
    }
}

/// `aws ssm send-command --parameters commands=["..."]`.
fn remote_commands(walker: &mut Walker<'_>, args: &[String]) {
    for text in Options::read(args, "", &["parameters"]).long_values("parameters") {
        let text = inert(&text);
        let Some((_, list)) = text.split_once("command") else { continue };
        let items: Vec<&str> = if list.contains('"') {
            list.split('"').skip(1).step_by(2).collect()
        } else {
            vec![list.trim_start_matches(['s', '=', '['])]
        };
        for item in items {
            walker.subshell(|walker| walker.run_text(item.trim_end_matches(']')));
        }
    }
}

/// What keys of fzf do.
fn bindings(walker: &mut Walker<'_>, args: &[String]) {
    const RUN: &[&str] = &["execute", "execute-silent", "become", "reload", "reload-sync", "transform", "preview"];
    let options = Options::read(args, "qdn", &["bind", "preview", "query"]);
    for bind in options.long_values("bind") {
        for (i, _) in bind.match_indices(['(', ':', '[', '{']) {
            let (head, tail) = bind.split_at_checked(i).unwrap_or((&bind, ""));
            let word = head.rsplit([':', '+', ',', ' ']).next().unwrap_or_default();
            if RUN.contains(&word) {
                let text = tail.get(1..).unwrap_or_default();
                let text = text.strip_suffix([')', ']', '}']).unwrap_or(text).to_owned();
                walker.subshell(|walker| walker.run_text(&text));
                break;
            }
        }
    }
}
