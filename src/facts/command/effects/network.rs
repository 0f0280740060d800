//! Programs that talk over the network: what they fetch, and which files and texts they carry out.

use super::files;
use super::target::Kinds;
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::SECRET;
use crate::facts::command::wrappers::options::Options;

/// Options of curl(1) whose value may name a file after `@` or `<`.
const CURL_BODIES: &[&str] = &[
    "-d",
    "--data",
    "--data-ascii",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "--form-string",
    "--url-query",
    "-H",
    "--header",
    "-T",
    "--upload-file",
];

/// Words of storage tools after which the first operand is what is carried.
const COPIES: &[&str] = &[
    "cp",
    "copy",
    "copyto",
    "mv",
    "move",
    "moveto",
    "sync",
    "put",
    "put-object",
    "upload",
    "rsync",
    "rcat",
    "create",
    "add",
    "publish",
    "push",
];

pub(crate) fn acts(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let mut acts = files::acts(walker, name, args);
    let (carried, sends) = match name {
        "curl" => curl(args),
        "wget" | "wget2" => wget(args),
        "http" | "https" | "xh" => (after_at(args), args.iter().any(|arg| arg.contains('=') || arg == "POST")),
        "dig" | "nslookup" | "ping" | "host" | "drill" | "whois" | "traceroute" => (Vec::new(), false),
        "aws" | "gsutil" | "rclone" | "s3cmd" | "s5cmd" | "mc" | "b2" | "azcopy" | "gcloud" | "az" | "gh" | "glab"
        | "ossutil" | "swift" | "oci" => {
            let carried = if args.iter().any(|arg| COPIES.contains(&arg.as_str())) { local(args) } else { Vec::new() };
            let sends = !carried.is_empty();
            (carried, sends)
        }
        "mail" | "mailx" | "mutt" | "sendmail" | "ftp" | "lftp" | "tftp" | "ncftpput" => (local(args), true),
        _ => (after_at(args), true),
    };
    if !matches!(name, "nc" | "ncat" | "netcat" | "socat" | "mail" | "mailx" | "mutt" | "sendmail" | "telnet") {
        acts.push(Act::new("fetch", Kinds::default()));
    }
    if sends {
        acts.push(Act::new("send", Kinds::default()));
    }
    let mut secret = args.iter().any(|arg| arg.contains(SECRET));
    secret |= walker.env.stdin.as_deref().is_some_and(|text| text.contains(SECRET));
    for path in &carried {
        acts.extend(files::reads(walker, "read", std::slice::from_ref(path)));
        secret |= is_secret(walker, path);
    }
    if secret {
        acts.push(Act::new("send-secret", Kinds::default()));
    }
    // A file by its address is read like any other.
    let by_address: Vec<String> = args
        .iter()
        .filter_map(|arg| arg.strip_prefix("file://"))
        .map(|path| path.trim_start_matches("localhost").to_owned())
        .collect();
    acts.extend(files::reads(walker, "read", &by_address));
    runs(walker, args);
    acts
}

fn is_secret(walker: &mut Walker<'_>, path: &str) -> bool {
    let target = walker.target(path);
    walker.content(&target).contains(SECRET)
}

/// socat(1): `EXEC:` and `SYSTEM:` addresses are programs.
fn runs(walker: &mut Walker<'_>, args: &[String]) {
    for arg in args {
        let lower = arg.get(..7).unwrap_or_default().to_ascii_lowercase();
        let command = ["exec:", "system:", "shell:"]
            .iter()
            .find(|kind| lower.starts_with(**kind))
            .and_then(|kind| arg.get(kind.len()..));
        if let Some(command) = command {
            let text = command.split(',').next().unwrap_or_default().trim_matches(['"', '\'']).to_owned();
            walker.subshell(|walker| walker.run_text(&text));
        }
    }
}

fn curl(args: &[String]) -> (Vec<String>, bool) {
    let mut carried = Vec::new();
    let mut sends = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (option, attached) = if arg.starts_with("--") {
            arg.split_once('=').map_or((arg.as_str(), None), |(option, value)| (option, Some(value)))
        } else {
            match arg.char_indices().nth(2) {
                Some((at, _)) if arg.starts_with('-') => (arg.get(..at).unwrap_or_default(), arg.get(at..)),
                _ => (arg.as_str(), None),
            }
        };
        if matches!(option, "-X" | "--request") {
            let method = attached.map(str::to_owned).or_else(|| args.next().cloned()).unwrap_or_default();
            sends |= !matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "OPTIONS");
        } else if CURL_BODIES.contains(&option) {
            let value = attached.map(str::to_owned).or_else(|| args.next().cloned()).unwrap_or_default();
            let upload = matches!(option, "-T" | "--upload-file");
            sends |= !matches!(option, "-H" | "--header");
            if upload {
                carried.push(value);
            } else if !matches!(option, "--data-raw" | "--form-string") {
                carried.extend(at_file(&value));
            }
        }
    }
    (carried, sends)
}

/// The file of `@file`, `name=@file;type=...`, `name=<file` and `name@file`.
fn at_file(value: &str) -> Option<String> {
    let path = match value.split_once("=@").or_else(|| value.split_once("=<")) {
        Some((_, path)) => path,
        None => {
            value.split_once('@').filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))?.1
        }
    };
    let path = path.split(';').next().unwrap_or_default();
    (!path.is_empty() && path != "-").then(|| path.to_owned())
}

fn after_at(args: &[String]) -> Vec<String> {
    args.iter().filter(|arg| !arg.starts_with('-') && !arg.contains("://")).filter_map(|arg| at_file(arg)).collect()
}

fn wget(args: &[String]) -> (Vec<String>, bool) {
    let options = Options::read(args, "", &["post-file", "body-file", "post-data", "body-data", "method"]);
    let carried: Vec<String> = ["post-file", "body-file"].iter().flat_map(|name| options.long_values(name)).collect();
    let sends = ["post-file", "body-file", "post-data", "body-data"].iter().any(|name| options.has_long(name, 6));
    (carried, sends)
}

/// Operands that are local files: the rest are options, words, and names of elsewhere.
fn local(args: &[String]) -> Vec<String> {
    args.iter()
        .filter(|arg| arg.contains(['/', '.', '~']) && !arg.starts_with('-') && !arg.contains("://"))
        .filter(|arg| !arg.split('/').next().is_some_and(|head| head.contains(':') || head.contains('@')))
        .cloned()
        .collect()
}

/// scp(1) and sftp(1): local operands are read, and sent where another one is remote; a local last one is written.
pub(crate) fn remote_copy(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = Options::read(args, "cDFiJloPSX", &[]);
    let remote =
        |operand: &String| operand.contains("://") || operand.split('/').next().is_some_and(|head| head.contains(':'));
    let Some((destination, sources)) = options.operands.split_last() else { return Vec::new() };
    let sources: Vec<String> = sources.iter().filter(|source| !remote(source)).cloned().collect();
    let mut acts = files::reads(walker, "read", &sources);
    if remote(destination) {
        acts.push(Act::new("send", Kinds::default()));
        if sources.iter().any(|source| is_secret(walker, source)) {
            acts.push(Act::new("send-secret", Kinds::default()));
        }
    } else if options.operands.len() > 1 {
        acts.push(Act::new("fetch", Kinds::default()));
        acts.extend(super::programs::write_to(walker, destination, "overwrite"));
    }
    acts
}
