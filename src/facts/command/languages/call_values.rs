//! Calls in inline code without effects, whose value follows from their arguments.

use super::call_names::{LIST_NAMES, LIST_PATHS, WALK};
use super::inline::Value;
use crate::facts::command::shell::env;
use crate::facts::command::shell::exec;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::producers::{from_base64, from_hex};
use crate::facts::command::words::text;
use crate::facts::command::words::text::{STAR, UNKNOWN, glob_char, sanitise};

/// The longest text that is put together here, in bytes.
const LONGEST: usize = 64 * 1024;

pub(crate) fn pure(
    walker: &mut Walker<'_>,
    name: &str,
    last: &str,
    receiver: Option<&Value>,
    args: &[Value],
) -> Option<Value> {
    let first = args.first();
    let text = |value: Option<&Value>| value.map(Value::text).unwrap_or_default();
    paths(walker, name, last, receiver, args)
        .or_else(|| decoders(last, receiver, args))
        .or_else(|| texts(walker, last, receiver, args))
        .or_else(|| match last {
            "require" | "__import__" | "import_module" | "createRequire" if first.is_some() => {
                Some(Value::Path(text(first).trim_start_matches("node:").to_owned()))
            }
            "ProcessBuilder" | "Process" | "Seq" | "Arrays" | "asList" | "of" | "list" | "tuple" | "Array" | "c"
            | "List" | "listOf" | "arrayOf"
                if receiver.is_none() && !args.is_empty() && !(last == "of" && name.contains("Path")) =>
            {
                Some(match args {
                    [list @ Value::List(_)] => list.clone(),
                    _ => Value::List(args.to_vec()),
                })
            }
            "Command" if receiver.is_none() && args.len() == 1 && name != "exec.Command" => {
                Some(Value::List(args.to_vec()))
            }
            "new" if name == "Command.new" || name.ends_with(".Command.new") => Some(Value::List(args.to_vec())),
            "compile" if name == last => first.cloned(),
            "getppid" | "posix_getppid" | "ppid" if args.is_empty() => Some(Value::Text(text::KEEPER.to_string())),
            "getRuntime" => Some(Value::Path("Runtime".to_owned())),
            "currentApplication" | "sharedApplication" => Some(Value::Path("Application".to_owned())),
            "map" => match (receiver, args) {
                (Some(Value::List(_) | Value::Choice(_)), [Value::Choice(choices), ..]) => {
                    Some(Value::List(choices.clone()))
                }
                (None, [Value::Path(function), Value::List(items)]) if function == "chr" => {
                    Some(Value::List(items.iter().map(|item| characters(std::slice::from_ref(item))).collect()))
                }
                _ => None,
            },
            _ => None,
        })
}

/// Directories, and paths put together.
fn paths(walker: &mut Walker<'_>, name: &str, last: &str, receiver: Option<&Value>, args: &[Value]) -> Option<Value> {
    let first = args.first();
    let text = |value: Option<&Value>| value.map(Value::text).unwrap_or_default();
    let place = || receiver.map_or_else(|| text(first), Value::text);
    Some(match last {
        "homedir" | "home" | "user_home" | "user_home!" if args.is_empty() => Value::Text(walker.home()),
        "expanduser" | "expand_path" | "path_expand" => {
            let path = place();
            Value::Text(path.strip_prefix('~').map_or(path.clone(), |rest| walker.home() + rest))
        }
        "getenv" | "env" | "fetch" | "get_env" | "Getenv" | "get" if is_environment(name, last) => {
            let key = text(first);
            if key == "HOME" {
                Value::Text(walker.home())
            } else {
                match (walker.env.get(&key), args.get(1)) {
                    (Some(env::Value::Text(value)), _) => Value::Text(value.clone()),
                    (_, Some(default)) => default.clone(),
                    _ => Value::Unknown,
                }
            }
        }
        "new" if matches!(name, "Pathname.new" | "Dir.new" | "java.io.File.new") && first.is_some() => {
            Value::Text(text(first))
        }
        "getcwd" | "cwd" | "pwd" if args.is_empty() => Value::Text(walker.env.cwd.clone()),
        "join" | "joinpath" if is_path_join(name, receiver) => {
            let parts = receiver.into_iter().filter(|value| matches!(value, Value::Text(_))).chain(args);
            Value::Text(join_paths(parts))
        }
        "Path" | "PurePath" | "PosixPath" | "Pathname" | "resolve" | "normpath" | "realpath" | "abspath" | "str"
        | "String" | "absolute" | "of" | "toPath" | "File" | "URL" | "fspath" | "normalize" | "file"
            if first.is_some()
                && receiver.is_none()
                && !matches!(name, "Seq.of" | "List.of" | "Set.of")
                && !(last == "File" && args.len() > 1) =>
        {
            Value::Text(join_paths(args.iter().filter(|arg| !matches!(arg, Value::Named(..)))))
        }
        "glob" | "iglob" | "globSync" | "Glob" | "sh_glob" => {
            let pattern = text(first);
            let pattern = match receiver {
                Some(Value::Text(base)) => format!("{}/{pattern}", base.trim_end_matches('/')),
                _ => pattern,
            };
            let tree = pattern.contains("**");
            if let (true, Some((root, _))) = (tree, pattern.split_once("**")) {
                walker.recursing = true;
                return Some(Value::Text(root.to_owned()));
            }
            Value::Text(pattern.chars().map(glob_char).collect())
        }
        _ if WALK.contains(&last) && (first.is_some() || receiver.is_some()) && name != "ast.walk" => {
            walker.recursing = true;
            Value::Text(match receiver {
                Some(Value::Text(path)) => path.clone(),
                _ => text(args.iter().rev().find(|arg| matches!(arg, Value::Text(_)))),
            })
        }
        "find" if name == "Find.find" => {
            walker.recursing = true;
            Value::Text(text(first))
        }
        _ if LIST_NAMES.contains(&last) && (first.is_some() || receiver.is_some()) => Value::Text(STAR.to_string()),
        _ if LIST_PATHS.contains(&last) => Value::Text(format!("{}/{STAR}", place().trim_end_matches('/'))),
        _ => return None,
    })
}

fn is_environment(name: &str, last: &str) -> bool {
    last == "getenv"
        || last == "Getenv"
        || last == "get_env"
        || name == "env"
        || ["environ", "ENV", "Deno.env", "System"].iter().any(|part| name.contains(part))
}

fn is_path_join(name: &str, receiver: Option<&Value>) -> bool {
    let joins = ["path.join", "File.join", "Path.join", "filepath.Join"].iter().any(|end| name.ends_with(end));
    joins || name.rsplit('.').next() == Some("joinpath") && (receiver.is_some() || name == "joinpath")
}

/// Parts of a path; an absolute one starts anew.
fn join_paths<'v>(parts: impl Iterator<Item = &'v Value>) -> String {
    let mut out = String::new();
    for part in parts {
        let part = part.text();
        if part.starts_with('/') || out.is_empty() {
            out = part;
        } else {
            if !out.ends_with('/') {
                out.push('/');
            }
            out.push_str(&part);
        }
    }
    out
}

/// Texts of numbers, of base64, of hexadecimal digits.
fn decoders(last: &str, receiver: Option<&Value>, args: &[Value]) -> Option<Value> {
    let first = args.first();
    let text = |value: Option<&Value>| value.map(Value::text).unwrap_or_default();
    let decoded = |value: Option<String>| value.map_or(Value::Unknown, Value::Text);
    Some(match last {
        "chr"
        | "char"
        | "fromCharCode"
        | "fromCodePoint"
        | "bytes"
        | "bytearray"
        | "char.ConvertFromUtf32"
        | "Char"
        | "intToUtf8"
            if first.is_some() && receiver.is_none() =>
        {
            match first {
                Some(Value::Choice(choices)) => {
                    Value::Choice(choices.iter().map(|choice| characters(std::slice::from_ref(choice))).collect())
                }
                Some(Value::List(items)) => characters(items),
                Some(Value::Text(_)) => return None,
                _ => characters(args),
            }
        }
        "fromhex" | "unhexlify" | "hex2bin" | "hex_decode" | "decodeHex" => decoded(from_hex(&text(first))),
        "b64decode" | "base64_decode" | "atob" | "decode64" | "decode_base64" | "strict_decode64"
        | "urlsafe_decode64" | "standard_b64decode" | "a2b_base64" | "base64decode" | "decodebytes" | "decode64!" => {
            decoded(from_base64(&text(first)))
        }
        "from" if args.len() == 2 => match text(args.get(1)).as_str() {
            "base64" | "base64url" => decoded(from_base64(&text(first))),
            "hex" => decoded(from_hex(&text(first))),
            "utf8" | "utf-8" | "ascii" | "latin1" | "binary" => Value::Text(text(first)),
            _ => Value::Unknown,
        },
        "from" if matches!(first, Some(Value::List(_))) => match first {
            Some(Value::List(items)) if items.iter().all(|item| matches!(item, Value::Number(_))) => characters(items),
            Some(list) => list.clone(),
            None => Value::Unknown,
        },
        "decode" if args.len() > 1 || (receiver.is_some() && first.is_some()) => {
            let source = receiver.map_or_else(|| text(first), Value::text);
            let codec = text(args.get(usize::from(receiver.is_none())));
            by_codec(&source, &codec)
        }
        "unpack" | "unpack1" => {
            let (source, format) = match receiver {
                Some(value) => (value.text(), text(first)),
                None => (text(args.get(1)), text(first)),
            };
            let value = match format.chars().next() {
                Some('m' | 'u') => decoded(from_base64(&source)),
                Some('H') => Value::Unknown,
                _ => Value::Unknown,
            };
            if last == "unpack" { Value::List(vec![value]) } else { value }
        }
        "pack" => match (receiver, text(first).chars().next()) {
            (Some(Value::List(items)), Some('m')) => Value::List(items.clone()),
            (Some(Value::List(items)), Some('H')) => decoded(items.first().and_then(|item| from_hex(&item.text()))),
            (Some(Value::List(items)), _) => characters(items),
            (None, Some('H')) => decoded(from_hex(&text(args.get(1)))),
            (None, Some('C' | 'c' | 'U' | 'W')) => characters(args.get(1..).unwrap_or_default()),
            _ => Value::Unknown,
        },
        "str_rot13" | "rot13" => Value::Text(rot13(&text(first))),
        "decodeURIComponent" | "unescape" | "decodeURI" | "unquote" | "urldecode" | "rawurldecode" => {
            Value::Text(percent_decoded(&text(first)))
        }
        _ => return None,
    })
}

fn by_codec(source: &str, codec: &str) -> Value {
    match codec.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "rot13" => Value::Text(rot13(source)),
        "hex" | "hexcodec" => from_hex(source).map_or(Value::Unknown, Value::Text),
        "base64" | "base64codec" => from_base64(source).map_or(Value::Unknown, Value::Text),
        "utf8" | "ascii" | "latin1" | "unicodeescape" => Value::Text(source.to_owned()),
        _ => Value::Unknown,
    }
}

fn rot13(text: &str) -> String {
    let turned = |c: char, base: u8| char::from((c as u8 - base + 13) % 26 + base);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turned(c, b'a'),
            'A'..='Z' => turned(c, b'A'),
            other => other,
        })
        .collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) if *byte == b'%' => {
                bytes.push(value);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    text::decoded(&bytes)
}

/// The characters that numbers stand for; never those that stand for what is unknown.
fn characters(items: &[Value]) -> Value {
    let text: Option<String> = items
        .iter()
        .map(|item| match item {
            Value::Number(number) => u32::try_from(*number).ok().and_then(char::from_u32),
            _ => None,
        })
        .collect();
    text.map_or(Value::Unknown, |text| Value::Text(sanitise(&text).into_owned()))
}

/// Methods of texts and lists.
fn texts(walker: &mut Walker<'_>, last: &str, receiver: Option<&Value>, args: &[Value]) -> Option<Value> {
    let first = args.first();
    let text = |value: Option<&Value>| value.map(Value::text).unwrap_or_default();
    let subject = || receiver.map_or_else(|| text(first), Value::text);
    Some(match last {
        "join" => match (receiver, first) {
            (Some(Value::Text(separator)), Some(list)) => Value::Text(join_items(list, separator)),
            (Some(list @ (Value::List(_) | Value::Choice(_))), separator) => {
                let separator = separator.map_or(",".to_owned(), Value::text);
                Value::Text(join_items(list, if args.is_empty() { "" } else { &separator }))
            }
            (None, Some(Value::Text(separator))) => {
                let rest = args.get(1..).unwrap_or_default();
                let list = match rest {
                    [list @ Value::List(_)] => list.clone(),
                    _ => Value::List(rest.to_vec()),
                };
                Value::Text(join_items(&list, separator))
            }
            _ => Value::Unknown,
        },
        "implode" => Value::Text(join_items(args.get(1)?, &text(first))),
        "paste" | "paste0" | "cat0" => {
            let named = |key: &str| {
                args.iter().find_map(|arg| match arg {
                    Value::Named(name, value) if name == key => Some(value.text()),
                    _ => None,
                })
            };
            let separator = named("sep").unwrap_or_else(|| if last == "paste" { " " } else { "" }.to_owned());
            let parts: Vec<String> =
                args.iter().filter(|arg| !matches!(arg, Value::Named(..))).map(Value::text).collect();
            Value::Text(parts.join(&separator))
        }
        "concat" | "cat" | "strcat" | "string" if !args.is_empty() => match receiver {
            Some(Value::List(items)) => Value::List(
                items
                    .iter()
                    .cloned()
                    .chain(args.iter().flat_map(|arg| match arg {
                        Value::List(more) => more.clone(),
                        other => vec![other.clone()],
                    }))
                    .collect(),
            ),
            _ => Value::Text(receiver.into_iter().chain(args).map(Value::text).collect()),
        },
        "strrev" | "reverse" | "rev" | "reversed" => match receiver.or(first) {
            Some(Value::List(items)) => Value::List(items.iter().rev().cloned().collect()),
            Some(value) => Value::Text(value.text().chars().rev().collect()),
            None => Value::Unknown,
        },
        "lower" | "toLowerCase" | "downcase" | "strtolower" | "lc" | "casefold" => {
            Value::Text(subject().to_lowercase())
        }
        "upper" | "toUpperCase" | "upcase" | "strtoupper" | "uc" => Value::Text(subject().to_uppercase()),
        "decode" | "toString" | "strip" | "encode" | "trim" | "chomp" | "unpack1" | "to_s" | "read" | "text"
        | "as_posix" | "rstrip" | "lstrip" | "toAbsolutePath" | "toFile" | "toPath" | "absolute" | "resolve"
        | "to_path" | "expandtabs" | "freeze" | "dup" | "getPath" | "to_a" | "flatten" | "compact" | "readline"
        | "readlines" | "path"
            if receiver.is_some() && !matches!(receiver, Some(Value::Path(_))) =>
        {
            receiver.cloned()?
        }
        "chomp" | "trim" | "strval" | "strip" if first.is_some() => first.cloned()?,
        "read" | "readline" | "readlines" | "gets" | "input" | "readLine" | "read_line" | "raw_input" | "getline"
            if receiver.is_none() && args.len() < 2 =>
        {
            return standard_input(walker, last, first);
        }
        "replace" | "replaceAll" | "gsub" | "sub" | "tr" if receiver.is_some() && args.len() == 2 => {
            replaced(walker, &text(receiver), &text(first), &text(args.get(1)))
        }
        "str_replace" if args.len() > 2 => replaced(walker, &text(args.get(2)), &text(first), &text(args.get(1))),
        "split" if receiver.is_some() => {
            let source = text(receiver);
            let separator = text(first);
            let parts = if args.is_empty() || separator == " " {
                source.split_whitespace().map(|part| Value::Text(part.to_owned())).collect()
            } else if separator.is_empty() {
                source.chars().map(|c| Value::Text(c.to_string())).collect()
            } else {
                source.split(separator.as_str()).map(|part| Value::Text(part.to_owned())).collect()
            };
            Value::List(parts)
        }
        "explode" => text(args.get(1))
            .split(text(first).as_str())
            .map(|part| Value::Text(part.to_owned()))
            .collect::<Vec<_>>()
            .into(),
        "format" | "sprintf" => {
            let (format, rest) = match receiver {
                Some(value) => (value.text(), args),
                None => (text(first), args.get(1..).unwrap_or_default()),
            };
            filled(&format, rest)
        }
        "quote" | "escapeshellarg" | "shellescape" if first.is_some() || receiver.is_some() => {
            Value::Text(exec::quote(&subject()))
        }
        _ => return None,
    })
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::List(items)
    }
}

fn join_items(list: &Value, separator: &str) -> String {
    let count = match list {
        Value::List(items) | Value::Choice(items) => items.len(),
        _ => 1,
    };
    if separator.len().saturating_mul(count) > LONGEST {
        return UNKNOWN.to_string();
    }
    match list {
        Value::List(items) => {
            let parts: Vec<String> = items
                .iter()
                .map(|item| match item {
                    // What a comprehension gave, one for each turn.
                    Value::Choice(choices) => choices.iter().map(Value::text).collect::<Vec<_>>().join(separator),
                    other => other.text(),
                })
                .collect();
            let comprehended = items.iter().any(|item| matches!(item, Value::Choice(_)));
            let parts: Vec<String> = match parts.first() {
                Some(only) if comprehended => vec![only.clone()],
                _ => parts,
            };
            parts.join(separator)
        }
        Value::Choice(choices) => choices.iter().map(Value::text).collect::<Vec<_>>().join(separator),
        other => other.text(),
    }
}

/// What standard input holds.
fn standard_input(walker: &Walker<'_>, last: &str, first: Option<&Value>) -> Option<Value> {
    if matches!(first, Some(Value::Text(path)) if path.starts_with('/')) {
        return None;
    }
    let text = walker.env.stdin.as_deref()?;
    Some(match last {
        "readlines" => Value::List(text.lines().take(16).map(|line| Value::Text(line.to_owned())).collect()),
        "read" => Value::Text(text.to_owned()),
        _ => Value::Text(text.lines().next().unwrap_or(&UNKNOWN.to_string()).to_owned()),
    })
}

fn replaced(walker: &mut Walker<'_>, source: &str, from: &str, to: &str) -> Value {
    if from.is_empty() {
        return Value::Text(source.to_owned());
    }
    let added = source.matches(from).count().saturating_mul(to.len());
    if source.len().saturating_add(added) > walker.limits.text {
        return Value::Unknown;
    }
    Value::Text(source.replace(from, to))
}

/// `"{} -rf {}".format(a, b)`, `sprintf("%s", a)`.
fn filled(format: &str, args: &[Value]) -> Value {
    let mut out = String::new();
    let mut next = 0;
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() > LONGEST {
            return Value::Unknown;
        }
        if c == '{' {
            let key: String = chars.by_ref().take_while(|c| *c != '}').collect();
            let key = key.split([':', '!']).next().unwrap_or_default();
            let named = args.iter().find_map(|arg| match arg {
                Value::Named(name, value) if name == key => Some(value.text()),
                _ => None,
            });
            let value = named.or_else(|| {
                let index = key.parse().unwrap_or(next);
                next += 1;
                args.get(index).map(Value::text)
            });
            out.push_str(&value.unwrap_or_else(|| UNKNOWN.to_string()));
        } else if c == '%' && chars.peek().is_some_and(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '.') {
            while chars.next().is_some_and(|c| !c.is_alphabetic()) {}
            out.push_str(&args.get(next).map_or_else(|| UNKNOWN.to_string(), Value::text));
            next += 1;
        } else {
            out.push(c);
        }
    }
    Value::Text(out)
}
