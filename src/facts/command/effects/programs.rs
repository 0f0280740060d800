//! What known programs do to their operands, as effects on kinds of targets. Rules of the packs decide what of that is
//! worth an objection.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::databases;
use super::files;
use super::git;
use super::network;
use super::target::{Kind, Kinds};
use super::telling;
use crate::facts::command::languages::text_scripts;
use crate::facts::command::languages::windows;
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{FETCHED, SECRET, UNKNOWN, is_known, is_unknown};
use crate::facts::command::wrappers::find;
use crate::facts::command::wrappers::launchers;
use crate::facts::command::wrappers::options::Options;
use crate::facts::path::Access;

/// Programs whose effects come from here, the gravest first.
pub(crate) const DESTRUCTIVE: &[&str] = &[
    "rm", "dd", "shred", "find", "chmod", "chown", "mv", "cp", "tee", "truncate", "rmdir", "unlink", "rsync", "tar",
    "ln", "chgrp", "install", "wipe", "srm",
];

/// Destructive programs that an unlisted program's arguments may hide.
pub(crate) const HIDDEN: &[&str] = &[
    "rm",
    "dd",
    "shred",
    "mkfs",
    "mkfs.ext4",
    "mkfs.xfs",
    "wipefs",
    "blkdiscard",
    "sh",
    "bash",
    "zsh",
    "dash",
    "sudo",
    "find",
    "chmod",
    "chown",
    "python",
    "python3",
    "perl",
    "env",
    "xargs",
];

/// Programs whose operands are data, never a command of their own.
const FAMILIAR: &[&str] = &[
    "echo",
    "printf",
    "cat",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "ls",
    "git",
    "gh",
    "glab",
    "hub",
    "jq",
    "yq",
    "sed",
    "awk",
    "head",
    "tail",
    "sort",
    "find",
    "gfind",
    "fd",
    "fdfind",
    "uniq",
    "wc",
    "cut",
    "tr",
    "diff",
    "cmp",
    "file",
    "stat",
    "man",
    "info",
    "tldr",
    "which",
    "type",
    "whereis",
    "apropos",
    "curl",
    "wget",
    "tee",
    "touch",
    "mkdir",
    "basename",
    "dirname",
    "date",
    "sleep",
    "seq",
    "yes",
    "less",
    "more",
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "code",
    "logger",
    "wall",
    "write",
    "notify-send",
    "say",
    "slack",
    "make",
    "cmake",
    "cargo",
    "go",
    "npm",
    "pip",
    "pip3",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "brew",
    "pacman",
    "systemctl",
    "journalctl",
    "tar",
    "zip",
    "unzip",
    "rsync",
    "scp",
    "cp",
    "mv",
    "ln",
    "psql",
    "mysql",
    "sqlite3",
    "redis-cli",
    "mongosh",
    "aws",
    "gcloud",
    "az",
    "terraform",
    "helm",
    "alias",
    "expr",
    "pgrep",
    "pkill",
    "kill",
    "killall",
    "dpkg",
    "rpm",
    "snap",
    "flatpak",
    "crontab",
    "at",
    "tty",
    "column",
    "fzf",
    "jira",
    "trash",
    "mail",
    "comm",
    "join",
    "paste",
    "od",
    "strings",
    "xxd",
    "base64",
    "md5sum",
    "sha256sum",
    "cksum",
    "shellcheck",
    "shfmt",
    "bats",
    "history",
    "fc",
];

pub(crate) fn is_familiar(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| FAMILIAR.iter().copied().collect());
    NAMES.contains(name)
}

/// Cmdlets of PowerShell, whose names have a dash and no case.
pub(crate) fn is_cmdlet(lower: &str) -> bool {
    let verbs = [
        "remove",
        "clear",
        "format",
        "invoke",
        "stop",
        "start",
        "set",
        "new",
        "restart",
        "initialize",
        "get",
        "out",
        "add",
        "reset",
        "disable",
        "write",
    ];
    lower.split_once('-').is_some_and(|(verb, noun)| {
        verbs.contains(&verb) && noun.chars().all(|c| c.is_ascii_alphabetic()) && !noun.is_empty()
    })
}

/// The effects of a program call. Commands that it runs in turn are walked here too.
pub(crate) fn acts(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    // With `POSIXLY_CORRECT` options end at the first operand. dd(1) took these two alone for long.
    let early = walker.env.get("POSIXLY_CORRECT").is_some() || matches!(name, "dd" | "dcfldd" | "dc3dd");
    let seen = if early { args.get(..1).unwrap_or_default() } else { args };
    if telling::helps(seen) {
        return Vec::new();
    }
    match name {
        "rm" | "rmdir" | "unlink" | "srm" | "grm" | "trash" | "remove-item" | "ri" | "rimraf" | "del-cli" => {
            remove(walker, name, args)
        }
        "rd" | "del" | "erase" => remove_windows(walker, args),
        "shred" | "wipe" => overwrite_all(walker, "shred", args, "nsx"),
        "scrub" => overwrite_all(walker, "shred", args, "pDXbst"),
        "nwipe" => overwrite_all(walker, "shred", args, "lpPmrte"),
        "truncate" => overwrite_all(walker, "truncate", args, "sro"),
        "find" | "gfind" => find::acts(walker, args),
        "fd" | "fdfind" => find::fd(walker, args),
        "dd" | "dcfldd" | "dc3dd" => dd(walker, args),
        "tee" | "sponge" => tee(walker, args),
        "cp" | "gcp" | "install" => copy(walker, args, false),
        "mv" | "gmv" => copy(walker, args, true),
        "ln" => link(walker, args),
        "rsync" => rsync(walker, args),
        "tar" | "bsdtar" | "gtar" => tar(walker, args),
        "chmod" => chmod(walker, args),
        "chown" | "chgrp" | "chcon" | "icacls" => ownership(walker, args, 1),
        "chattr" | "setfacl" | "takeown" => ownership(walker, args, 0),
        "git" => git::acts(walker, args),
        "crontab" => crontab(walker, args),
        "at" | "batch" => {
            if let Some(text) =
                walker.env.stdin.clone().filter(|_| !args.iter().any(|arg| matches!(arg.as_str(), "-l" | "-d" | "-r")))
            {
                walker.subshell(|walker| walker.run_text(&text));
            }
            Vec::new()
        }
        "sed" | "gsed" => sed(walker, args),
        "sort" => files::acts(walker, name, args),
        "yq" => {
            let mut acts = files::acts(walker, name, args);
            let options = Options::read(args, "oIpP", &["output-format", "input-format"]);
            if options.has('i') || options.has_long("inplace", 3) || options.has_long("in-place", 3) {
                for path in options.operands.iter().skip(1) {
                    acts.extend(write_to(walker, path, "edit"));
                }
            }
            acts
        }
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "lzma" | "zstd" | "unzstd" | "lz4" | "pigz"
        | "pbzip2" | "lzop" | "brotli" | "compress" | "uncompress" => files::compress(walker, args),
        "unzip" | "7z" | "7za" | "7zr" | "7zz" | "unrar" | "rar" => files::unpack(walker, name, args),
        "cpio" => files::cpio(walker, args),
        "ssh-keygen" => files::keygen(walker, args),
        "qemu-img" => files::image(walker, args),
        "scp" | "sftp" => network::remote_copy(walker, args),
        client if databases::is_client(client) => databases::acts(walker, name, args),
        "curl" | "wget" | "wget2" | "http" | "https" | "xh" | "nc" | "ncat" | "netcat" | "socat" | "dig"
        | "nslookup" | "ping" | "host" | "drill" | "whois" | "traceroute" | "mail" | "mailx" | "mutt" | "sendmail"
        | "ftp" | "lftp" | "tftp" | "ncftpput" | "telnet" | "aws" | "gsutil" | "rclone" | "s3cmd" | "s5cmd" | "mc"
        | "b2" | "azcopy" | "gcloud" | "az" | "gh" | "glab" | "ossutil" | "swift" | "oci" => {
            network::acts(walker, name, args)
        }
        "kill" | "pkill" | "killall" | "killall5" | "skill" | "snice" | "fuser" | "loginctl" => {
            super::kill::acts(walker, name, args)
        }
        "cmd" | "powershell" | "pwsh" => windows::run(walker, name, args),
        _ => files::acts(walker, name, args),
    }
}

/// sed(1): the script runs and writes too.
fn sed(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "efl", &["expression", "file", "line-length"]);
    let scripted =
        options.has('e') || options.has('f') || options.has_long("expression", 3) || options.has_long("file", 3);
    let operands = options.operands.get(usize::from(!scripted)..).unwrap_or_default().to_vec();
    let mut acts = files::reads(walker, "inspect", &operands);
    text_scripts::sed(walker, args);
    if options.has('i') || options.has('I') || options.has_long("in-place", 2) {
        for path in &operands {
            acts.extend(write_to(walker, path, "edit"));
        }
    }
    acts
}

fn remove(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let powershell = matches!(name, "remove-item" | "ri");
    if powershell {
        return remove_powershell(walker, args);
    }
    if name == "rmdir" && args.iter().any(|arg| arg.eq_ignore_ascii_case("/s")) {
        return remove_windows(walker, args);
    }
    let options = Options::read(args, "", &["interactive", "parents"]);
    if name == "rmdir" {
        // It takes nothing away but what holds nothing.
        return walker.acts("delete-empty", &options.operands, false, Access::Delete);
    }
    let recursive = options.has('r')
        || options.has('R')
        || options.has_long("recursive", 1)
        || matches!(name, "srm" | "rimraf" | "del-cli");
    walker.acts("delete", &options.operands, recursive, Access::Delete)
}

fn remove_powershell(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let recursive = args.iter().any(|arg| arg.to_ascii_lowercase().starts_with("-r"));
    let operands: Vec<String> = args.iter().filter(|arg| !arg.starts_with('-')).cloned().collect();
    walker.acts("delete", &operands, recursive, Access::Delete)
}

fn remove_windows(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let recursive = args.iter().any(|arg| arg.eq_ignore_ascii_case("/s"));
    let operands: Vec<String> = args.iter().filter(|arg| !(arg.starts_with('/') && arg.len() <= 3)).cloned().collect();
    walker.acts("delete", &operands, recursive, Access::Delete)
}

fn overwrite_all(walker: &mut Walker<'_>, effect: &'static str, args: &[String], valued: &str) -> Vec<Act> {
    let options = Options::read(args, valued, &["size", "reference", "iterations", "random-source"]);
    let mut acts = walker.acts(effect, &options.operands, false, Access::Write);
    for act in &mut acts {
        if act.kinds.has(Kind::Disk) {
            act.effect = "write-device";
        }
    }
    if effect == "shred"
        && options.operands.iter().any(|path| walker.target(path).contents || walker.kinds_of(path).fatal())
    {
        acts.extend(walker.acts("delete", &options.operands, true, Access::Delete));
    }
    acts
}

fn dd(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let mut acts = Vec::new();
    for arg in args {
        if let Some(path) = arg.strip_prefix("of=") {
            // Whatever device it is, dd(1) takes it for a disk.
            if path.strip_prefix("/dev/").is_some_and(|name| !name.is_empty() && name.chars().all(is_unknown)) {
                acts.push(Act::new("write-device", Kinds::of(Kind::Disk)));
            }
            acts.extend(write_to(walker, path, "overwrite"));
        } else if let Some(path) = arg.strip_prefix("if=") {
            acts.extend(walker.acts("read", &[path.to_owned()], false, Access::Read));
        }
    }
    acts
}

/// The act of writing one file, whatever kind of file it is.
pub(crate) fn write_to(walker: &mut Walker<'_>, path: &str, effect: &'static str) -> Vec<Act> {
    let mut acts = walker.acts(effect, &[path.to_owned()], false, Access::Write);
    for act in &mut acts {
        if act.kinds.has(Kind::Disk) {
            act.effect = "write-device";
        }
    }
    acts
}

fn tee(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "", &[]);
    let append = options.has('a') || options.has_long("append", 1);
    let effect = if append { "append" } else { "overwrite" };
    let input = walker.env.stdin.as_deref().map_or_else(|| UNKNOWN.to_string(), str::to_owned);
    let mut acts = Vec::new();
    for path in &options.operands {
        acts.extend(write_to(walker, path, effect));
        walker.store(path, input.clone(), append);
    }
    acts
}

fn copy(walker: &mut Walker<'_>, args: &[String], moves: bool) -> Vec<Act> {
    let options = Options::read(args, "tSmgo", &["target-directory", "suffix", "mode", "owner", "group"]);
    let mut operands = options.operands.clone();
    let destination = match options.values('t').into_iter().chain(options.long_values("target-directory")).next() {
        Some(directory) => Some(directory),
        None if operands.len() > 1 => operands.pop(),
        None => None,
    };
    let mut acts = Vec::new();
    // `.` and `..` as the last part cannot be renamed (rename(2), EBUSY), nor removed where they were copied.
    let (stays, operands): (Vec<String>, Vec<String>) = operands
        .into_iter()
        .partition(|operand| moves && matches!(operand.trim_end_matches('/').rsplit('/').next(), Some("." | "..")));
    acts.extend(walker.acts("read", &stays, false, Access::Read));
    if moves {
        acts.extend(walker.acts("delete", &operands, true, Access::Delete).into_iter().map(|mut act| {
            act.effect = "move";
            act
        }));
        // Moved onto the null device or into nothing: gone.
        if destination.as_deref() == Some("/dev/null") {
            acts.extend(walker.acts("delete", &operands, true, Access::Delete));
        }
    } else {
        acts.extend(walker.acts("read", &operands, false, Access::Read));
    }
    let Some(destination) = destination else { return acts };
    acts.extend(write_to(walker, &destination, "overwrite"));
    for mode in options.values('m').into_iter().chain(options.long_values("mode")) {
        if let Some(effect) = mode_effect(&mode) {
            acts.extend(walker.acts(effect, std::slice::from_ref(&destination), false, Access::Write));
        }
    }
    for source in &operands {
        remember_copy(walker, source, &destination);
        acts.extend(lands_on(walker, source, &destination));
    }
    acts
}

/// What a copy into a directory writes there, by its name, where that is a file of note (`cp .bashrc ~/`).
fn lands_on(walker: &mut Walker<'_>, source: &str, destination: &str) -> Option<Act> {
    let name = source.trim_end_matches('/').rsplit('/').next().filter(|name| !matches!(*name, "" | "." | ".."))?;
    let target = walker.target(&format!("{}/{name}", destination.trim_end_matches('/')));
    let of_note = Kinds::of(Kind::Gateway).and(Kind::Critical).and(Kind::Startup).and(Kind::Auth);
    target.kinds.meets(of_note).then(|| Act::new("overwrite", target.kinds))
}

/// A copy, link or move of a program or of a file that is known.
pub(crate) fn remember_copy(walker: &mut Walker<'_>, source: &str, destination: &str) {
    let own = walker.target_itself(source);
    let from = walker.target(source);
    let to = walker.target(destination);
    if !from.is_known() || !to.is_known() {
        return;
    }
    let base = from.path.rsplit('/').next().unwrap_or_default().to_owned();
    let inside = format!("{}/{base}", to.path.trim_end_matches('/'));
    if own.path != from.path {
        walker.copy_link(&own.path, &to.path);
    }
    if let Some(text) = walker.files.get(&from.path).cloned() {
        walker.files.insert(to.path.clone(), text.clone());
        walker.files.insert(inside.clone(), text);
    }
    let known = walker.binaries.get(&from.path).cloned();
    let program = known.or_else(|| (from.path.contains("/bin/") || from.path.contains("/sbin/")).then(|| base.clone()));
    if let Some(program) = program {
        walker.binaries.insert(to.path, program.clone());
        walker.binaries.insert(inside, program);
    }
}

fn link(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "tS", &["target-directory", "suffix"]);
    let into = options.values('t').into_iter().chain(options.long_values("target-directory")).next();
    let (name, sources) = match (&into, options.operands.split_last()) {
        (Some(into), _) => (into, options.operands.as_slice()),
        (None, Some(found)) => found,
        (None, None) => return Vec::new(),
    };
    let forced = options.has('f') || options.has_long("force", 2);
    let mut acts =
        walker.acts(if forced { "overwrite" } else { "link" }, std::slice::from_ref(name), false, Access::Write);
    for source in sources {
        remember_copy(walker, source, name);
        walker.remember_link(source, name, options.has('s') || options.has_long("symbolic", 2));
        let kinds = walker.kinds_of(source);
        acts.push(Act::new("link-to", kinds));
    }
    acts
}

fn rsync(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(
        args,
        "efBTM",
        &[
            "rsh",
            "exclude",
            "include",
            "files-from",
            "exclude-from",
            "rsync-path",
            "filter",
            "log-file",
            "port",
            "bwlimit",
        ],
    );
    for text in
        options.values('e').into_iter().chain(options.long_values("rsh")).chain(options.long_values("rsync-path"))
    {
        walker.subshell(|walker| walker.run_text(&text));
    }
    let Some((destination, sources)) = options.operands.split_last() else { return Vec::new() };
    let remote = destination.split('/').next().is_some_and(|head| head.contains(':'));
    let mut acts = walker.acts("read", sources, false, Access::Read);
    let sending = remote && sources.iter().any(|source| walker.content(&walker.target(source)).contains(SECRET));
    if sending {
        acts.push(Act::new("send-secret", Kinds::default()));
    }
    if remote {
        acts.push(Act::new("send", Kinds::default()));
    } else if sources.iter().any(|source| source.split('/').next().is_some_and(|head| head.contains(':'))) {
        acts.push(Act::new("fetch", Kinds::default()));
    }
    let dry = options.has('n') || options.has_long("dry-run", 3);
    if !remote && !dry {
        let deletes = options.has_long("delete", 6)
            || options.has_long("delete-after", 8)
            || options.has_long("delete-before", 8);
        acts.extend(write_to(walker, destination, "overwrite"));
        if deletes {
            acts.extend(walker.acts("delete", std::slice::from_ref(destination), true, Access::Delete));
        }
    }
    if options.has_long("remove-source-files", 8) {
        acts.extend(walker.acts("delete", sources, true, Access::Delete));
    }
    acts
}

fn tar(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(&launchers::tar_arguments(args), launchers::TAR_SHORT, launchers::TAR_LONG);
    let extracting = options.has('x') || options.has_long("extract", 3);
    let mut acts = Vec::new();
    if extracting {
        let directory = options.values('C').into_iter().chain(options.long_values("directory")).next();
        let archives: Vec<String> = options.values('f').into_iter().chain(options.long_values("file")).collect();
        walker.unpacks(&archives, directory.as_deref());
        let directory = directory.unwrap_or_else(|| ".".to_owned());
        acts.extend(walker.acts("unpack", &[directory], false, Access::Write));
        // The archive says where its files go.
        if options.has('P') || options.has_long("absolute-names", 4) {
            acts.extend(walker.acts("unpack", &["/".to_owned()], false, Access::Write));
        }
        return acts;
    }
    // Operands after `-C directory` are relative to it.
    let base = options.values('C').into_iter().chain(options.long_values("directory")).next();
    let operands: Vec<String> = match &base {
        Some(base) => options
            .operands
            .iter()
            .map(|path| if path.starts_with('/') { path.clone() } else { format!("{base}/{path}") })
            .collect(),
        None => options.operands.clone(),
    };
    acts.extend(walker.acts("read", &operands, false, Access::Read));
    if options.has_long("remove-files", 8) {
        acts.extend(walker.acts("delete", &operands, true, Access::Delete));
    }
    let files: Vec<String> =
        options.values('f').into_iter().chain(options.long_values("file")).filter(|path| path != "-").collect();
    if options.has('c') || options.has('r') || options.has('u') || options.has_long("create", 3) {
        for file in &files {
            acts.extend(write_to(walker, file, "overwrite"));
        }
    }
    acts
}

fn chmod(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "", &["reference"]);
    let recursive = options.has('R') || options.has_long("recursive", 4);
    // `chmod -x file`: the mode looks like an option.
    let dashed = args
        .iter()
        .find(|arg| arg.len() > 1 && arg.starts_with('-') && arg.chars().skip(1).all(|c| "rwxXst".contains(c)));
    let (mode, operands) = match (dashed, options.operands.split_first()) {
        (Some(mode), _) => (mode.as_str(), options.operands.as_slice()),
        (None, Some((mode, operands))) => (mode.as_str(), operands),
        (None, None) => return Vec::new(),
    };
    let plain = if mode_narrows(mode) { "permission.narrow" } else { "permission" };
    let effect = mode_effect(mode).unwrap_or(plain);
    let mut acts = walker.acts(effect, operands, recursive, Access::Write);
    if effect != plain {
        acts.extend(walker.acts("permission", operands, recursive, Access::Write));
    }
    if mode_locks(mode) {
        acts.extend(walker.acts("permission.lock", operands, recursive, Access::Write));
    }
    acts
}

/// What a mode opens: everything to everyone, or somebody's identity to whoever runs the file.
fn mode_effect(mode: &str) -> Option<&'static str> {
    if !mode.is_empty() && mode.chars().all(|c| c.is_digit(8)) {
        let bits = u32::from_str_radix(mode, 8).ok()?;
        return if bits & 0o6000 != 0 {
            Some("permission.setuid")
        } else {
            (bits & 0o002 != 0).then_some("permission.world-writable")
        };
    }
    for clause in mode.split(',') {
        let who: String = clause.chars().take_while(|c| "ugoa".contains(*c)).collect();
        let rest = clause.get(who.len()..).unwrap_or_default();
        let adds = rest.starts_with(['+', '=']);
        if adds && rest.contains('s') {
            return Some("permission.setuid");
        }
        if adds && rest.contains('w') && (who.contains('o') || who.contains('a')) {
            return Some("permission.world-writable");
        }
    }
    None
}

/// Modes that only take access of others away, and leave the owner's: what keys are meant to have.
fn mode_narrows(mode: &str) -> bool {
    if mode.chars().all(|c| c.is_digit(8)) {
        return u32::from_str_radix(mode, 8).is_ok_and(|bits| bits & 0o7077 == 0 && bits & 0o600 != 0);
    }
    mode.split(',').all(|clause| {
        let rest = clause.trim_start_matches(['g', 'o']);
        rest.len() < clause.len() && (rest.starts_with('-') || rest == "=")
    })
}

/// Modes that take everyone's access away.
fn mode_locks(mode: &str) -> bool {
    matches!(
        mode,
        "000"
            | "0"
            | "0000"
            | "00"
            | "a-rwx"
            | "a="
            | "ugo-rwx"
            | "-rwx"
            | "u=,g=,o="
            | "a-x"
            | "-x"
            | "a-r"
            | "-r"
            | "ugo="
            | "="
    )
}

/// Programs that take an owner (or a label) before their paths, or none.
fn ownership(walker: &mut Walker<'_>, args: &[String], owners: usize) -> Vec<Act> {
    let options = Options::read(args, "mMxXp", &["from", "reference", "modify", "set"]);
    let recursive = options.has('R')
        || options.has_long("recursive", 3)
        || args.iter().any(|arg| arg.eq_ignore_ascii_case("/t") || arg.eq_ignore_ascii_case("/r"));
    let operands: Vec<String> = if options.has_long("reference", 3) {
        options.operands.clone()
    } else {
        options.operands.iter().skip(owners).cloned().collect()
    };
    walker.acts("ownership", &operands, recursive, Access::Write)
}

/// crontab(1): `-` and files install a table, whose commands run later.
fn crontab(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "u", &[]);
    if options.has('l') {
        return Vec::new();
    }
    let text = match options.operands.first().map(String::as_str) {
        Some("-") => walker.env.stdin.as_deref().map(str::to_owned),
        None if !options.has('r') && !options.has('e') => walker.env.stdin.as_deref().map(str::to_owned),
        Some(path) => Some(walker.content(&walker.target(path))),
        None => None,
    };
    if let Some(text) = text {
        cron_lines(walker, &text);
    }
    vec![Act::new("persistence", Kinds::of(Kind::Startup))]
}

/// The commands of a crontab.
pub(crate) fn cron_lines(walker: &mut Walker<'_>, text: &str) {
    for line in text.lines().take(200) {
        let line = line.trim();
        let command = if line.starts_with('@') {
            line.split_once(char::is_whitespace).map(|(_, command)| command)
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '*') {
            let mut rest = line;
            for _ in 0..5 {
                rest = rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
            }
            Some(rest)
        } else {
            None
        };
        if let Some(command) = command.map(str::trim).filter(|command| is_known(command) || !command.contains(FETCHED))
        {
            let command = command.strip_prefix("root ").unwrap_or(command).to_owned();
            walker.subshell(|walker| walker.run_text(&command));
        }
    }
}
