//! Calls in inline code that start processes or touch files, by their names in the languages' standard libraries.

use super::inline::{Language, Value};
use super::notes::Act;
use super::producers::{from_base64, from_hex};
use super::target::{Kind, Kinds};
use super::text::{FETCHED, SECRET, UNKNOWN};
use super::walk::Walker;
use crate::facts::path::Access;

/// Functions that give their text to a shell.
const SHELL: &[&str] = &[
    "system",
    "popen",
    "popen2",
    "popen3",
    "shell_exec",
    "passthru",
    "proc_open",
    "getoutput",
    "getstatusoutput",
    "check_output",
    "check_call",
    "run",
    "call",
    "Popen",
    "execSync",
    "exec",
    "spawn",
    "spawnSync",
    "execFile",
    "execFileSync",
    "create_subprocess_shell",
    "create_subprocess_exec",
    "capture2",
    "capture2e",
    "capture3",
    "pcntl_exec",
    "execute",
    "execv",
    "execvp",
    "execve",
    "execl",
    "execlp",
    "spawnv",
    "spawnvp",
    "posix_spawn",
    "startfile",
    "Command",
    "$",
];

const DELETE_ALL: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "rmtree_f",
    "remove_tree",
    "remove_entry",
    "remove_entry_secure",
    "remove_dir",
    "removedirs",
    "remove_dir_all",
    "rimraf",
    "emptyDir",
    "emptyDirSync",
    "deltree",
    "rm_f_r",
    "send2trash",
];

const DELETE: &[&str] = &[
    "unlink",
    "remove",
    "rmdir",
    "delete",
    "rm",
    "rm_f",
    "rmSync",
    "unlinkSync",
    "rmdirSync",
    "removeSync",
    "safe_unlink",
    "deleteSync",
    "trash",
];

const WRITE: &[&str] = &[
    "writeFile",
    "writeFileSync",
    "appendFile",
    "appendFileSync",
    "file_put_contents",
    "write_text",
    "write_bytes",
    "createWriteStream",
    "writeTextFile",
    "writeTextFileSync",
    "truncate",
    "truncateSync",
    "binwrite",
    "copyfile",
    "copy",
    "copyFileSync",
    "copy2",
    "rename",
    "renameSync",
    "replace_file",
    "move",
];

const READ: &[&str] = &[
    "readFileSync",
    "readFile",
    "file_get_contents",
    "read_text",
    "read_bytes",
    "readTextFileSync",
    "readTextFile",
    "readlines",
    "slurp",
    "readfile",
];

const FETCH: &[&str] = &["urlopen", "urlretrieve", "get", "fetch", "curl_exec", "getstore", "URI.open", "http_get"];

const EVAL: &[&str] =
    &["eval", "exec", "compile", "loadstring", "load", "Function", "instance_eval", "runInThisContext", "assert"];

/// Whether a name is one of the calls, for languages that call without parentheses.
pub(super) fn is_call(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    [SHELL, DELETE_ALL, DELETE, WRITE, READ, EVAL].iter().any(|list| list.contains(&last))
        || matches!(last, "glob" | "chmod" | "open" | "pack" | "chown" | "print" | "puts" | "say" | "echo")
}

/// Names that stand for a known text.
pub(super) fn constant(walker: &Walker<'_>, name: &str) -> Value {
    match name {
        "Dir.home" | "process.env.HOME" | "$ENV" | "$HOME" | "Path.home" | "HOME" => Value::Text(walker.home()),
        "os.sep" | "path.sep" => Value::Text("/".to_owned()),
        "True" | "true" => Value::Text("true".to_owned()),
        _ => Value::Unknown,
    }
}

/// Evaluates a call and applies what it does.
pub(super) fn call(
    walker: &mut Walker<'_>,
    language: Language,
    name: &str,
    receiver: Option<&Value>,
    args: &[Value],
) -> Value {
    let last = name.rsplit('.').next().unwrap_or_default();
    let first = args.first();
    if let Some(value) = pure(walker, name, last, receiver, args) {
        return value;
    }
    if matches!(last, "print" | "puts" | "say" | "log" | "echo")
        && matches!(name, "print" | "puts" | "say" | "console.log" | "echo")
    {
        let text =
            args.iter().filter(|arg| !matches!(arg, Value::Named(..))).map(Value::text).collect::<Vec<_>>().join(" ");
        walker.inline_output.push_str(&text);
        walker.inline_output.push('\n');
        return Value::Unknown;
    }
    let builtin_exec = name == "eval" || (language == Language::Python && name == "exec");
    if (EVAL.contains(&last) && builtin_exec)
        || (matches!(last, "loadstring" | "load" | "Function" | "instance_eval") && first.is_some())
    {
        let text = first.map(Value::text).unwrap_or_default();
        if text.contains(FETCHED) {
            walker.event("fetch-and-run");
        } else if !text.chars().all(super::text::is_unknown) {
            walker.deeper(|walker| super::inline::run(walker, language, &text));
        }
        return Value::Unknown;
    }
    // A method of a value may be called the same and be harmless (`pattern.exec(text)`).
    let module = match receiver {
        None => true,
        Some(Value::Text(module)) => matches!(
            module.as_str(),
            "os" | "subprocess" | "child_process" | "node:child_process" | "popen2" | "commands" | "pty"
        ),
        Some(_) => matches!(last, "execSync" | "spawnSync" | "execFileSync" | "check_output" | "getoutput" | "popen"),
    };
    if SHELL.contains(&last)
        && !(last == "run" && args.is_empty())
        && !(last == "$" && language != Language::Node)
        && module
    {
        return process(walker, last, args);
    }
    effects(walker, name, last, receiver, args)
}

fn process(walker: &mut Walker<'_>, name: &str, args: &[Value]) -> Value {
    let positional: Vec<&Value> = args.iter().filter(|arg| !matches!(arg, Value::Named(..))).collect();
    let list: Option<Vec<String>> = match positional.as_slice() {
        [Value::List(items), ..] => Some(items.iter().map(Value::text).collect()),
        // `spawn("rm", ["-rf", "/"])`, `system("rm", "-rf", "/")`, `os.execvp("rm", ["rm", ...])`.
        [program, Value::List(items), ..] => {
            let items = items.iter().map(Value::text);
            let items: Vec<String> = if name.starts_with("exec") && !name.starts_with("execFile") {
                items.skip(1).collect()
            } else {
                items.collect()
            };
            Some(std::iter::once(program.text()).chain(items).collect())
        }
        [program, Value::Text(_), ..] if !matches!(name, "popen" | "popen2") => {
            let skip = usize::from(matches!(name, "execl" | "execlp"));
            let rest = positional.iter().skip(1 + skip).map(|value| value.text());
            Some(std::iter::once(program.text()).chain(rest).collect())
        }
        _ => None,
    };
    let printed = match (list, positional.first()) {
        (Some(argv), _) => walker.subshell(|walker| walker.exec_texts(argv)),
        (None, Some(text)) => {
            let text = text.text();
            if text.chars().all(super::text::is_unknown) {
                return Value::Unknown;
            }
            walker.subshell(|walker| walker.run_text(text.trim_start_matches(['|', '-'])))
        }
        (None, None) => String::new(),
    };
    Value::Text(printed)
}

/// Functions without effects whose value follows from their arguments.
fn pure(walker: &Walker<'_>, name: &str, last: &str, receiver: Option<&Value>, args: &[Value]) -> Option<Value> {
    let first = args.first();
    let text = |value: Option<&Value>| value.map(Value::text).unwrap_or_default();
    Some(match last {
        "homedir" | "home" if args.is_empty() => Value::Text(walker.home()),
        "expanduser" | "expand_path" => {
            let path = receiver.map_or_else(|| text(first), Value::text);
            Value::Text(path.strip_prefix('~').map_or(path.clone(), |rest| walker.home() + rest))
        }
        "getenv" | "env" | "ENV.fetch" if text(first) == "HOME" => Value::Text(walker.home()),
        "join" if name.ends_with("path.join") || name.ends_with("File.join") || name == "path.join" => {
            Value::Text(args.iter().map(Value::text).collect::<Vec<_>>().join("/"))
        }
        "join" => match (receiver, first) {
            (Some(Value::Text(separator)), Some(Value::List(items))) => {
                Value::Text(items.iter().map(Value::text).collect::<Vec<_>>().join(separator))
            }
            (Some(Value::List(items)), _) => {
                Value::Text(items.iter().map(Value::text).collect::<Vec<_>>().join(&text(first)))
            }
            _ => Value::Unknown,
        },
        "Path" | "PurePath" | "PosixPath" | "Pathname" | "resolve" | "require" | "__import__" | "import_module"
        | "normpath" | "realpath" | "abspath" | "str" | "String"
            if first.is_some() =>
        {
            Value::Text(args.iter().map(Value::text).collect::<Vec<_>>().join("/"))
        }
        "chr" | "char" | "fromCharCode" => Value::Text(
            args.iter()
                .filter_map(|arg| {
                    if let Value::Number(n) = arg { u32::try_from(*n).ok().and_then(char::from_u32) } else { None }
                })
                .collect(),
        ),
        "fromhex" | "unhexlify" | "hex2bin" => from_hex(&text(first)).map_or(Value::Unknown, Value::Text),
        "b64decode" | "base64_decode" | "atob" | "decode64" | "decode_base64" | "strict_decode64"
        | "urlsafe_decode64" | "standard_b64decode" => from_base64(&text(first)).map_or(Value::Unknown, Value::Text),
        "from" if args.len() == 2 => match text(args.get(1)).as_str() {
            "base64" => from_base64(&text(first)).map_or(Value::Unknown, Value::Text),
            "hex" => from_hex(&text(first)).map_or(Value::Unknown, Value::Text),
            _ => Value::Unknown,
        },
        "strrev" | "reverse" => Value::Text(receiver.map_or_else(|| text(first), Value::text).chars().rev().collect()),
        "lower" | "toLowerCase" | "downcase" | "strtolower" => {
            Value::Text(receiver.map_or_else(|| text(first), Value::text).to_lowercase())
        }
        "decode" | "toString" | "strip" | "encode" | "trim" | "chomp" | "unpack1" | "to_s" | "read" | "text"
            if receiver.is_some() =>
        {
            receiver.cloned()?
        }
        "replace" if receiver.is_some() && args.len() == 2 => {
            let (source, from, to) = (text(receiver), text(first), text(args.get(1)));
            let added = source.matches(from.as_str()).count().saturating_mul(to.len());
            if source.len().saturating_add(added) > walker.limits.text {
                return Some(Value::Unknown);
            }
            Value::Text(source.replace(&from, &to))
        }
        "split" if receiver.is_some() => {
            let source = text(receiver);
            let separator = text(first);
            let parts: Vec<Value> = if separator.trim().is_empty() {
                source.split_whitespace().map(|part| Value::Text(part.to_owned())).collect()
            } else {
                source.split(separator.as_str()).map(|part| Value::Text(part.to_owned())).collect()
            };
            Value::List(parts)
        }
        "glob" | "iglob" | "globSync" => {
            let pattern = text(first).chars().map(super::text::glob_char).collect();
            Value::Text(pattern)
        }
        _ => return None,
    })
}

fn effects(walker: &mut Walker<'_>, name: &str, last: &str, receiver: Option<&Value>, args: &[Value]) -> Value {
    let positional: Vec<&Value> = args.iter().filter(|arg| !matches!(arg, Value::Named(..))).collect();
    let path = match receiver {
        Some(value) if positional.is_empty() || matches!(last, "write_text" | "write_bytes") => value.text(),
        _ => positional.first().map(|value| value.text()).unwrap_or_default(),
    };
    let paths: Vec<String> = match positional.first() {
        Some(Value::List(items)) => items.iter().map(Value::text).collect(),
        _ => vec![path.clone()],
    };
    let recursive = args.iter().any(|arg| match arg {
        Value::List(items) => items
            .iter()
            .any(|item| matches!(item, Value::Named(key, value) if key == "recursive" && value.text() != "false")),
        Value::Named(key, value) => key == "recursive" && value.text() != "false",
        _ => false,
    });
    if path.is_empty() {
        return Value::Unknown;
    }
    let acts = if DELETE_ALL.contains(&last) {
        walker.acts("delete", &paths, true, Access::Delete)
    } else if DELETE.contains(&last) {
        walker.acts("delete", &paths, recursive || (last == "removeSync" && !name.starts_with("Deno")), Access::Delete)
    } else if WRITE.contains(&last) || (last == "write" && name.contains("File")) {
        let target =
            if matches!(last, "copyfile" | "copy" | "copy2" | "copyFileSync" | "rename" | "renameSync" | "move") {
                positional.get(1).map_or(path, |value| value.text())
            } else {
                path
            };
        super::programs::write_to(walker, &target, "overwrite")
    } else if last == "open" || last == "fopen" || last == "File" {
        return open(walker, &path, &positional);
    } else if READ.contains(&last) {
        walker.acts("read", &paths, false, Access::Read)
    } else if last == "chmod" || last == "chown" || last == "lchown" {
        walker.acts("permission", &paths, false, Access::Write)
    } else if FETCH.contains(&last) && path.contains("://") {
        walker.notes.effect("fetch");
        return Value::Text(FETCHED.to_string());
    } else {
        return Value::Unknown;
    };
    let secret = acts.iter().any(|act| act.effect == "read" && act.kinds.has(Kind::Credential));
    walker.judge("inline-code", &[], &acts);
    Value::Text(if secret { SECRET } else { UNKNOWN }.to_string())
}

/// `open(path, mode)`: perl puts the handle first and the mode second.
fn open(walker: &mut Walker<'_>, path: &str, args: &[&Value]) -> Value {
    let texts: Vec<String> = args.iter().map(|value| value.text()).collect();
    let (path, mode) = match texts.as_slice() {
        [_, mode, path, ..] if mode.starts_with(['>', '<', '+', '|', '-']) => (path.as_str(), mode.as_str()),
        [_, path, ..] if path.starts_with(['>', '<']) => {
            (path.trim_start_matches(['>', '<', ' ']), if path.starts_with('>') { ">" } else { "<" })
        }
        [path, mode, ..] => (path.as_str(), mode.as_str()),
        _ => (path, "r"),
    };
    if mode.starts_with(['|', '-']) {
        let text = path.to_owned();
        walker.subshell(|walker| walker.run_text(&text));
        return Value::Unknown;
    }
    let acts = if mode.contains(['w', 'a', '+', 'x', '>']) {
        super::programs::write_to(walker, path, if mode.contains('a') { "append" } else { "overwrite" })
    } else {
        walker.acts("read", &[path.to_owned()], false, Access::Read)
    };
    walker.judge("inline-code", &[], &acts);
    Value::Unknown
}

/// Shapes that no single call shows: shells bound to sockets, endless forks.
pub(super) fn patterns(walker: &mut Walker<'_>, code: &str) {
    let has = |text: &str| code.contains(text);
    let socket = has("socket")
        || has("Socket")
        || has("fsockopen")
        || has("\"net\"")
        || has("'net'")
        || has("net.connect")
        || has("createConnection");
    let shell = has("dup2")
        || has("pty.spawn")
        || has("/bin/sh")
        || has("/bin/bash")
        || has("cmd.exe")
        || has("exec(")
        || has("spawn(");
    if socket && shell && (has("connect") || has("fsockopen") || has("new") || has("open")) {
        walker.acts_on(&[Act::new("reverse-shell", Kinds::default())]);
    }
    let plain: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let forks = [
        "forkwhile1",
        "forkwhiletrue",
        "while(1){fork",
        "while1:os.fork",
        "whileTrue:os.fork",
        "while(true){fork",
        "loop{fork",
        "whiletrue;fork",
        "fork()while",
        "for(;;){fork",
        "while(1){system($0",
        "whileTrue:fork",
        "loopdofork",
        "while1{fork",
    ];
    if forks.iter().any(|shape| plain.contains(shape)) {
        walker.acts_on(&[Act::new("fork-bomb", Kinds::default())]);
    }
}
