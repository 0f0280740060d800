//! find(1): where it looks, whether a test narrows what it finds, and what it runs.

use crate::facts::command::effects::target::Target;
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::UNKNOWN;
use crate::facts::command::wrappers;
use crate::facts::path::Access;

/// What a find expression does.
#[derive(Debug, Default)]
pub(crate) struct Find {
    pub roots: Vec<String>,
    /// A test lets only some names through.
    pub narrowed: bool,
    /// The one name that it looks for.
    pub name: Option<String>,
    /// The roots themselves are not found.
    pub below_only: bool,
    pub deletes: bool,
    /// Commands of `-exec` and its like.
    pub commands: Vec<Vec<String>>,
    /// Files that `-fprint` and its like write.
    pub writes: Vec<String>,
}

const NARROWING: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-newer",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-inum",
    "-samefile",
    "-links",
    "-fstype",
    "-used",
];

const VALUED: &[&str] = &[
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-printf",
    "-anewer",
    "-cnewer",
    "-context",
    "-regextype",
    "-files0-from",
];

impl Find {
    pub fn read(args: &[String]) -> Self {
        let mut find = Find::default();
        let mut i = 0;
        while let Some(arg) = args.get(i) {
            if matches!(arg.as_str(), "-H" | "-L" | "-P") {
            } else if arg == "-D" || arg == "-O" {
                i += 1;
            } else if arg.starts_with('-') || arg == "(" || arg == "!" {
                break;
            } else {
                find.roots.push(arg.clone());
            }
            i += 1;
        }
        if find.roots.is_empty() {
            find.roots.push(".".to_owned());
        }
        while let Some(arg) = args.get(i) {
            let value = args.get(i + 1).map(String::as_str).unwrap_or_default();
            match arg.as_str() {
                "-delete" => find.deletes = true,
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = args.get(i + 1..).unwrap_or_default();
                    let end = rest.iter().position(|arg| arg == ";" || arg == "+").unwrap_or(rest.len());
                    find.commands.push(rest.get(..end).unwrap_or_default().to_vec());
                    i += end + 1;
                }
                "-fprint" | "-fls" | "-fprint0" | "-fprintf" => {
                    find.writes.push(value.to_owned());
                    i += 1;
                }
                "-empty" | "-nouser" | "-nogroup" | "-executable" | "-readable" | "-writable" => find.narrowed = true,
                "-mindepth" => {
                    find.below_only = value != "0";
                    i += 1;
                }
                test if NARROWING.contains(&test) || test.starts_with("-newer") => {
                    let all = matches!(value, "*" | ".*" | "./*" | "*.*") || value.chars().all(|c| c == text::STAR);
                    let excludes = matches!(args.get(i.wrapping_sub(1)).map(String::as_str), Some("!" | "-not"));
                    find.narrowed |= !all && !excludes;
                    if test == "-name" && !excludes && !value.contains(['*', '?', '[', '/']) {
                        find.name = Some(value.to_owned());
                    }
                    i += 1;
                }
                test if VALUED.contains(&test) => i += 1,
                _ => {}
            }
            i += 1;
        }
        find
    }

    /// What `{}` stands for under a root.
    fn found(&self, root: &str) -> Vec<String> {
        if let Some(name) = &self.name {
            vec![format!("{}/{UNKNOWN}/{name}", root.trim_end_matches('/'))]
        } else if self.narrowed {
            vec![Target::inside(root, true)]
        } else if self.below_only {
            vec![Target::inside(root, false)]
        } else {
            vec![root.to_owned()]
        }
    }
}

pub(crate) fn acts(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let find = Find::read(args);
    let mut acts = Vec::new();
    let span = walker.span.clone();
    for root in &find.roots {
        let target = walker.target(root);
        walker.notes.path(&target, if find.deletes { Access::Delete } else { Access::Read }, span.clone());
        if find.deletes {
            for found in find.found(root) {
                let kinds = walker.kinds_of(&found);
                acts.push(Act::new("delete", kinds).recursive(true));
            }
        }
    }
    for path in &find.writes {
        acts.extend(walker.acts("overwrite", std::slice::from_ref(path), false, Access::Write));
    }
    for command in &find.commands {
        let mut roots = find.roots.clone();
        if !command.iter().any(|arg| arg.contains("{}")) {
            roots.truncate(1);
        }
        for root in &roots {
            for found in find.found(root) {
                // A path that a narrowed find gives to a shell is data for its parameters.
                let argv = command.iter().map(|arg| wrappers::fill(walker, arg, "{}", &found)).collect();
                let outer = std::mem::replace(
                    &mut walker.recursing,
                    !find.narrowed && command.iter().any(|arg| arg.contains("{}")),
                );
                walker.subshell(|walker| {
                    // Who starts it is find.
                    walker.env.set_text("PPID", text::TOKEN);
                    walker.exec_texts(argv)
                });
                walker.recursing = outer;
            }
        }
    }
    acts
}

/// fd(1): `fd pattern path... -x command`.
pub(crate) fn fd(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let takes = |arg: &String| {
        let attached = arg.starts_with("--exec=") || arg.starts_with("--exec-batch=");
        attached || matches!(arg.as_str(), "-x" | "-X" | "--exec" | "--exec-batch")
    };
    let Some(at) = args.iter().position(takes) else { return Vec::new() };
    let own = super::options::Options::read(
        args.get(..at).unwrap_or_default(),
        "etdESocj",
        &["extension", "type", "max-depth", "exclude", "size"],
    );
    let attached = args.get(at).and_then(|arg| arg.split_once('=')).map(|(_, program)| program.to_owned());
    let command: Vec<String> = attached.into_iter().chain(args.iter().skip(at + 1).cloned()).collect();
    let (pattern, roots) =
        own.operands.split_first().map_or((".", &[] as &[String]), |(pattern, roots)| (pattern.as_str(), roots));
    let narrowed = !matches!(pattern, "." | "" | ".*") || own.has('e') || own.has_long("extension", 4);
    let roots = if roots.is_empty() { vec![".".to_owned()] } else { roots.to_vec() };
    for root in &roots {
        let found = Target::inside(root, narrowed);
        let mut argv: Vec<String> = command.iter().map(|arg| wrappers::fill(walker, arg, "{}", &found)).collect();
        if !command.iter().any(|arg| arg.contains("{}") || arg.contains("{/")) {
            argv.push(found);
        }
        walker.subshell(|walker| walker.exec_texts(argv));
    }
    Vec::new()
}
