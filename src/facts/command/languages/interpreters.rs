//! Interpreters of other languages: where their code stands in the arguments, and which language it is. The small
//! languages of awk, sed and make are in `scripts`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::inline::{self, Language, Value};
use super::leaks;
use super::lisp;
use super::tcl;
use super::text_scripts;
use crate::facts::command::effects::databases;
use crate::facts::command::scripts::makefile;
use crate::facts::command::shell::walk;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{FETCHED, UNKNOWN, has_unknown, inert};
use crate::facts::command::wrappers::launchers::{self, single_dashed};
use crate::facts::command::wrappers::options::Options;
use crate::facts::path::Access;

/// How code is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    As(Language),
    Tcl,
    Lisp,
}

/// An interpreter's options.
struct Interpreter {
    /// Names without version.
    names: &'static [&'static str],
    reads: Reads,
    /// Short options that hold code, and others with a value.
    code: &'static str,
    valued: &'static str,
    /// Long options, with one dash or two.
    long_code: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Subcommands whose next operand is code, and those that are to be passed over.
    verbs: &'static [&'static str],
    skipped: &'static [&'static str],
    /// It runs its first operand as a file, and standard input without one.
    runs_files: bool,
}

const fn interpreter(
    names: &'static [&'static str],
    language: Language,
    code: &'static str,
    valued: &'static str,
    long_code: &'static [&'static str],
) -> Interpreter {
    Interpreter {
        names,
        reads: Reads::As(language),
        code,
        valued,
        long_code,
        long_valued: &[],
        verbs: &[],
        skipped: &[],
        runs_files: true,
    }
}

impl Interpreter {
    const fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    const fn verbs(mut self, verbs: &'static [&'static str], skipped: &'static [&'static str]) -> Self {
        self.verbs = verbs;
        self.skipped = skipped;
        self
    }

    const fn long(mut self, long_valued: &'static [&'static str]) -> Self {
        self.long_valued = long_valued;
        self
    }

    /// Another program that takes code among other things.
    const fn host(mut self) -> Self {
        self.runs_files = false;
        self
    }
}

use Language as L;

#[rustfmt::skip]
const INTERPRETERS: &[Interpreter] = &[
    interpreter(&["python", "pypy", "pythonw", "py", "ipython", "jython", "bpython", "ptpython", "micropython"], L::Python, "c", "WXmQ", &[]).long(&["check-hash-based-pycs"]),
    interpreter(&["perl", "raku", "perl6"], L::Perl, "eE", "IMm", &[]),
    interpreter(&["ruby", "jruby", "irb", "pry", "truffleruby"], L::Ruby, "e", "IrCEF", &["exec"]),
    interpreter(&["rails"], L::Ruby, "", "e", &[]).verbs(&["runner", "r"], &[]).host(),
    interpreter(&["node", "nodejs", "tsx", "ts-node", "electron", "qjs", "d8", "osascript-js"], L::Node, "ep", "rC", &["eval", "print"]).long(&["require", "import", "loader", "experimental-loader", "env-file", "conditions", "project"]),
    interpreter(&["deno"], L::Node, "", "", &[]).verbs(&["eval", "e"], &["run", "repl", "test", "bench"]).long(&["config", "import-map", "eval", "ext", "seed", "lock"]),
    interpreter(&["bun"], L::Node, "ep", "r", &["eval", "print"]).verbs(&[], &["run"]).long(&["require", "preload", "cwd", "config", "env-file"]),
    interpreter(&["php"], L::Php, "rBRE", "cdzt", &["run", "process-code", "process-begin", "process-end"]).long(&["define", "php-ini", "docroot", "server"]),
    interpreter(&["lua", "luajit", "texlua", "luau"], L::Lua, "e", "l", &[]),
    interpreter(&["R", "Rscript", "r", "littler"], L::R, "e", "gdf", &[]).long(&["file", "encoding", "args", "default-packages"]),
    interpreter(&["julia"], L::Julia, "eE", "pCJLtHm", &["eval", "print"]).long(&["load", "project", "threads", "procs"]),
    interpreter(&["elixir", "iex"], L::Elixir, "e", "Srp", &["eval", "rpc-eval"]).long(&["require", "app", "erl", "name", "sname", "cookie"]),
    interpreter(&["mix"], L::Elixir, "e", "", &["eval"]).verbs(&["eval"], &["run"]).host(),
    interpreter(&["erl", "escript"], L::Erlang, "", "", &["eval"]).long(&["s", "run", "pa", "pz", "name", "sname", "setcookie", "boot"]),
    interpreter(&["ghc", "ghci", "runghc", "runhaskell"], L::Haskell, "e", "ioX", &[]).host(),
    interpreter(&["octave", "octave-cli"], L::Octave, "", "p", &["eval"]).long(&["path", "exec-path"]),
    interpreter(&["matlab", "scilab", "scilab-cli", "maxima", "gp", "sage"], L::Octave, "rec", "", &["batch", "batch-string", "r", "e"]).host(),
    interpreter(&["ocaml", "utop"], L::OCaml, "e", "Iw", &[]),
    interpreter(&["groovy", "groovysh", "scala", "scala-cli", "amm", "kotlin", "kotlinc", "jshell", "swift", "dart", "bsh", "jrunscript", "jjs", "csharp", "csi", "fsi", "nim", "crystal", "evcxr", "rust-script", "gore", "yaegi", "vala", "haxe", "ring", "wren", "v", "gjs", "cjs", "tcc"], L::Curly, "ec", "lJRrDO", &["eval", "e", "execute"]).verbs(&["eval"], &["run", "-run"]).long(&["classpath", "cp", "class-path", "feedback", "startup"]),
    interpreter(&["dotnet-script"], L::Curly, "", "", &[]).verbs(&["eval"], &[]),
    interpreter(&["tclsh", "wish", "expect", "expectk", "jimsh", "tkcon"], L::Vim, "c", "f", &[]).reads(Reads::Tcl),
    interpreter(&["emacs", "xemacs", "emacs-nox", "emacs-gtk", "mg"], L::Vim, "", "lLfudt", &["eval", "execute"]).long(&["load", "funcall", "user", "display", "directory", "script", "chdir"]).reads(Reads::Lisp).host(),
    interpreter(&["emacsclient"], L::Vim, "e", "sfadF", &["eval", "e"]).long(&["socket-name", "server-file", "alternate-editor"]).reads(Reads::Lisp).host(),
    interpreter(&["guile", "racket", "sbcl", "clisp", "ecl", "clojure", "clj", "bb", "newlisp", "janet", "csi-scheme", "mit-scheme", "chezscheme", "gosh", "fennel", "hy", "abcl", "ccl", "planck", "lumo", "nbb"], L::Vim, "cex", "lL", &["eval", "load-string", "execute", "batch"]).reads(Reads::Lisp),
    interpreter(&["gnuplot"], L::Curly, "e", "", &[]).host(),
    // Other programs with an interpreter inside.
    interpreter(&["blender", "freecad", "freecadcmd", "paraview", "pvpython", "ghidra", "ida"], L::Python, "", "", &["python-expr", "python-text"]).host(),
    interpreter(&["rails", "rake", "bin/rails", "spring", "thor", "knife", "chef-shell", "vagrant-console", "puppet", "fpm"], L::Ruby, "eEp", "", &["execute-print", "execute", "eval", "exec"]).verbs(&["runner", "r", "apply"], &[]).host(),
    interpreter(&["wp", "drush", "artisan", "psysh", "magerun", "n98-magerun"], L::Php, "e", "", &["execute", "exec"]).verbs(&["eval", "php:eval", "ev", "php-eval", "dev:console"], &[]).host(),
    interpreter(&["mongosh", "mongo", "jsc", "slimerjs", "phantomjs", "casperjs", "k6"], L::Node, "e", "", &["eval"]).host(),
    interpreter(&["shell-plus", "django-admin", "flask", "odoo", "scrapy", "locust"], L::Python, "c", "", &["command"]).host(),
    interpreter(&["vimscript", "redis-lua", "nse", "tarantool", "lualatex", "luatex"], L::Lua, "e", "", &["eval"]).host(),
    interpreter(&["slsh", "stap", "bpftrace", "dtrace", "jq-script"], L::Curly, "ens", "pcoDI", &[]).host(),
];

/// Runs an interpreter; `None` where the program is none, or is to be judged as a program too.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    launchers::run(walker, name, args);
    match name {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" => {
            text_scripts::awk(walker, args);
            return None;
        }
        "make" | "gmake" | "bmake" | "remake" => {
            walker.judge(name, args, &[]);
            makefile::make(walker, args);
            return Some(UNKNOWN.to_string());
        }
        "just" => {
            if let Some(argv) =
                args.iter().position(|arg| arg == "--command" || arg == "-c").and_then(|at| args.get(at + 1..))
            {
                let argv = argv.to_vec();
                walker.subshell(|walker| walker.exec_texts(argv));
            }
            return None;
        }
        "m4" | "gm4" => {
            text_scripts::m4(walker, args);
            return None;
        }
        "sqlite3" | "psql" | "mysql" | "mariadb" => {
            // What a client reads from its input is judged like an argument.
            if let Some(text) = walker.env.stdin.clone() {
                walker.judge(name, &[text.to_string()], &[]);
            }
            return None;
        }
        _ => {}
    }
    let interpreter = find(name, args)?;
    if !interpreter.runs_files {
        let (codes, _) = codes(interpreter, args);
        for code in codes {
            code_text(walker, interpreter, &code, args);
        }
        if let (Reads::Lisp, Some(text)) = (interpreter.reads, script_of(walker, args)) {
            code_text(walker, interpreter, &text, args);
        }
        if name == "gnuplot" {
            from_input(walker, interpreter, args);
        }
        return None;
    }
    walker.judge(name, args, &[]);
    let outer = std::mem::take(&mut walker.inline_output);
    program(walker, interpreter, args);
    in_place(walker, interpreter, args);
    let printed = std::mem::replace(&mut walker.inline_output, outer);
    if !printed.is_empty() {
        return Some(printed);
    }
    Some(walk::passed(walker.env.stdin.as_deref().filter(|text| has_unknown(text))))
}

/// The place of each name in the table.
static BY_NAME: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    for (i, interpreter) in INTERPRETERS.iter().enumerate() {
        for name in interpreter.names {
            found.entry(*name).or_insert(i);
        }
    }
    found
});

fn find(name: &str, args: &[String]) -> Option<&'static Interpreter> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    // The first in the table, by either name.
    let first = [stem, name].iter().filter_map(|name| BY_NAME.get(name)).min()?;
    let found = INTERPRETERS.get(*first)?;
    // `r` and `v` are too short to be taken for one on sight.
    if name.len() == 1 && name != "R" && !args.iter().any(|arg| arg.starts_with("-e")) {
        return None;
    }
    Some(found)
}

/// `perl -i` and `ruby -i` edit their operands.
fn in_place(walker: &mut Walker<'_>, interpreter: &Interpreter, args: &[String]) {
    let edits = matches!(interpreter.reads, Reads::As(L::Perl | L::Ruby))
        && args.iter().any(|arg| arg.starts_with("-i") || (arg.starts_with("-p") && arg.contains('i')));
    if !edits {
        return;
    }
    let options = Options::read(args, "eEIMm", &[]);
    let acts = walker.acts("edit", &options.operands, false, Access::Write);
    walker.judge("perl", args, &acts);
}

/// What an interpreter runs that is no inline code.
#[derive(Debug)]
enum Source {
    File(String, usize),
    /// A module by name (`-m`), and where its arguments start.
    Module(String, usize),
    Input,
}

fn program(walker: &mut Walker<'_>, interpreter: &Interpreter, args: &[String]) {
    let (codes, source) = codes(interpreter, args);
    if !codes.is_empty() {
        for code in codes {
            code_text(walker, interpreter, &code, args);
        }
        return;
    }
    match source {
        Source::File(path, _) if matches!(path.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => {
            from_input(walker, interpreter, args);
        }
        Source::File(path, at) => {
            let target = walker.target(&path);
            let span = walker.span.clone();
            walker.notes.path(&target, Access::Execute, span);
            let given = args.get(at..).unwrap_or_default();
            walker.with_file(&target, |walker, text| code_text(walker, interpreter, text, given));
            managed(walker, interpreter, &path, args.get(at..).unwrap_or_default());
        }
        Source::Input => from_input(walker, interpreter, args),
        Source::Module(name, at) => module(walker, interpreter, &name, args.get(at..).unwrap_or_default()),
    }
}

/// `python manage.py shell -c code`, `php artisan tinker --execute=code`.
fn managed(walker: &mut Walker<'_>, interpreter: &Interpreter, path: &str, rest: &[String]) {
    let base = path.rsplit('/').next().unwrap_or_default();
    if base == "manage.py"
        && rest.first().is_some_and(|verb| verb == "dbshell")
        && walker.env.stdin.as_deref().is_some_and(databases::sql)
    {
        walker.event("db-destroy");
    }
    let codes = match base {
        "manage.py" if rest.iter().any(|arg| arg == "shell" || arg == "shell_plus") => {
            let options = Options::read(rest, "c", &["command"]);
            [options.values('c'), options.long_values("command")].concat()
        }
        "artisan" if rest.iter().any(|arg| arg == "tinker") => {
            Options::read(rest, "", &["execute"]).long_values("execute")
        }
        _ => return,
    };
    for code in codes {
        code_text(walker, interpreter, &code, &[]);
    }
}

/// `python -m`: modules that are programs of their own, or that take code.
fn module(walker: &mut Walker<'_>, interpreter: &Interpreter, name: &str, rest: &[String]) {
    match name {
        "timeit" => {
            let options = Options::read(rest, "nrsu", &["setup", "number", "repeat", "unit"]);
            for code in options.values('s').into_iter().chain(options.long_values("setup")).chain(options.operands) {
                code_text(walker, interpreter, &code, &[]);
            }
        }
        "pip" | "pipx" | "uv" | "poetry" | "ansible" | "twine" | "awscli" => {
            let argv = std::iter::once(name.to_owned()).chain(rest.iter().cloned()).collect();
            walker.subshell(|walker| walker.exec_texts(argv));
        }
        "code" | "idlelib" => from_input(walker, interpreter, rest),
        _ => {}
    }
}

fn from_input(walker: &mut Walker<'_>, interpreter: &Interpreter, args: &[String]) {
    let run = |walker: &mut Walker<'_>, text: &str| {
        code_text(walker, interpreter, text, args);
        String::new()
    };
    if walker.run_input(run).is_some() {
        return;
    }
    if let Some(text) = walker.env.stdin.clone() {
        code_text(walker, interpreter, &text, args);
    }
}

/// The file that an option of Emacs loads.
fn script_of(walker: &mut Walker<'_>, args: &[String]) -> Option<String> {
    let options = Options::read(args, "l", &["load", "script"]);
    let path = options
        .values('l')
        .into_iter()
        .chain(options.long_values("script"))
        .chain(single_dashed(args, "load"))
        .next()?;
    if matches!(path.as_str(), "/dev/stdin" | "-") {
        return walker.env.stdin.as_deref().map(str::to_owned);
    }
    let target = walker.target(&path);
    walker.with_file(&target, |_, text| text.to_owned())
}

fn code_text(walker: &mut Walker<'_>, interpreter: &Interpreter, text: &str, args: &[String]) {
    if text.contains(FETCHED) {
        walker.event("fetch-and-run");
    } else if text.trim().chars().all(text::is_unknown) && !text.trim().is_empty() {
        walker.event("run-unknown");
    }
    let code = inert(text);
    // Of scripts that others wrote, only what is sure.
    if !walker.notes.in_script_of_others() {
        leaks::watch(walker, &code);
        if databases::code_destroys(&code) {
            walker.event("db-destroy");
        }
    }
    walker.deeper(|walker| {
        walker.subshell(|walker| match interpreter.reads {
            Reads::As(language) => {
                let variables = surroundings(walker, language, args);
                let variables: Vec<(&str, Value)> =
                    variables.iter().map(|(name, value)| (*name, value.clone())).collect();
                inline::run_with(walker, language, &code, &variables);
            }
            Reads::Tcl => tcl::run(walker, &code),
            Reads::Lisp => lisp::run(walker, &code),
        });
    });
}

/// What code finds in its arguments, and in each line of its input with `-n` and `-p`.
fn surroundings(walker: &Walker<'_>, language: Language, args: &[String]) -> Vec<(&'static str, Value)> {
    let texts = |items: &[String]| Value::List(items.iter().take(64).cloned().map(Value::Text).collect());
    // The operands after the code.
    let after = args.iter().position(|arg| arg == "-c" || arg == "-e" || arg == "-r").map_or(0, |at| at + 2);
    let operands = args.get(after..).unwrap_or_default();
    let operands = operands.strip_prefix(&["--".to_owned()]).unwrap_or(operands);
    let named: Vec<String> = std::iter::once("-c".to_owned()).chain(operands.iter().cloned()).collect();
    let mut found = match language {
        L::Python => vec![("sys.argv", texts(&named)), ("argv", texts(&named))],
        L::Node => vec![("process.argv", texts(&named))],
        L::Perl => vec![("@ARGV", texts(operands))],
        L::Ruby => vec![("ARGV", texts(operands)), ("$*", texts(operands))],
        L::Php => vec![("$argv", texts(&named))],
        _ => Vec::new(),
    };
    let loops = args.iter().any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(['n', 'p']));
    if matches!(language, L::Perl | L::Ruby) && loops {
        let lines = walker
            .env
            .stdin
            .as_deref()
            .map(|text| text.lines().take(16).map(|line| Value::Text(line.to_owned())).collect());
        found.push(("$_", Value::Choice(lines.unwrap_or_else(|| vec![Value::Unknown]))));
    }
    found
}

/// The inline code of an interpreter's arguments, or else what it runs.
fn codes(interpreter: &Interpreter, args: &[String]) -> (Vec<String>, Source) {
    let mut codes = Vec::new();
    let mut i = 0;
    while let Some(arg) = args.get(i) {
        i += 1;
        if arg == "--" {
            break;
        }
        let long = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-').filter(|name| is_long(interpreter, name)));
        if let Some(long) = long {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
            if interpreter.long_code.contains(&name) {
                codes.extend(value.or_else(|| args.get(i).cloned()));
                i += usize::from(!long.contains('='));
            } else if value.is_none() && interpreter.long_valued.contains(&name) {
                i += 1;
            }
            continue;
        }
        let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            if interpreter.verbs.contains(&arg.as_str()) {
                codes.extend(args.get(i..).and_then(|rest| rest.iter().find(|arg| !arg.starts_with('-'))).cloned());
                break;
            }
            if interpreter.skipped.contains(&arg.as_str()) {
                continue;
            }
            if codes.is_empty() && interpreter.runs_files {
                return (codes, Source::File(arg.clone(), i));
            }
            if interpreter.runs_files {
                break;
            }
            continue;
        };
        if let Some(source) = short_options(interpreter, cluster, args, &mut i, &mut codes) {
            return (codes, source);
        }
    }
    match args.get(i) {
        Some(path) if codes.is_empty() && interpreter.runs_files => (codes, Source::File(path.clone(), i + 1)),
        _ => (codes, Source::Input),
    }
}

/// Whether a name after a single dash is one of the long options.
fn is_long(interpreter: &Interpreter, name: &str) -> bool {
    let name = name.split('=').next().unwrap_or_default();
    name.len() > 1 && (interpreter.long_code.contains(&name) || interpreter.long_valued.contains(&name))
}

/// One cluster of short options; a module ends them.
fn short_options(
    interpreter: &Interpreter,
    cluster: &str,
    args: &[String],
    i: &mut usize,
    codes: &mut Vec<String>,
) -> Option<Source> {
    let python = interpreter.reads == Reads::As(L::Python) && interpreter.runs_files;
    let mut rest = cluster;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if interpreter.code.contains(c) {
            // `-pe CODE` and `-eCODE`; in node `-pe` is `-p -e`.
            if rest.is_empty() {
                codes.extend(args.get(*i).cloned());
                *i += 1;
                return None;
            }
            if rest.len() == 1 && interpreter.code.contains(rest) {
                continue;
            }
            codes.push(rest.to_owned());
            return None;
        }
        // Digits and letters with an attached value only: `-l012`, `-0777`, `-i.bak`, `-F:`.
        if interpreter.reads == Reads::As(L::Perl) && "l0DiFxC".contains(c) {
            let digits = rest.bytes().take_while(|b| b.is_ascii_digit()).count();
            match c {
                'l' | '0' => rest = rest.get(digits..).unwrap_or_default(),
                _ => return None,
            }
            continue;
        }
        if interpreter.valued.contains(c) {
            let value = if rest.is_empty() {
                *i += 1;
                args.get(*i - 1).cloned()
            } else {
                Some(rest.to_owned())
            };
            // A module to run is no code of ours.
            if c == 'm' && python {
                return Some(Source::Module(value.unwrap_or_default(), *i));
            }
            return None;
        }
    }
    None
}
