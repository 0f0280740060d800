//! Scripts that stand in a project's own file by name: `package.json` for npm, yarn, pnpm and bun, `justfile` for just.

use std::path::Path;

use serde_json::Value;

use crate::facts::command::effects::target::Target;
use crate::facts::command::scripts;
use crate::facts::command::shell::exec::quote;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::UNKNOWN;
use crate::facts::command::wrappers::options::Options;

/// Directories above the working directory in which a project's file is looked for.
const UP: usize = 12;

/// Judges the scripts that a program runs by name. What the program does besides is judged elsewhere.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    match name {
        "npm" | "yarn" | "pnpm" | "bun" => package_scripts(walker, name, args),
        "node" => {
            let options = Options::read(args, "", &["run"]);
            for script in options.long_values("run") {
                in_package(walker, None, &[script], &[]);
            }
        }
        "just" => just(walker, args),
        _ => {}
    }
}

/// The nearest file with one of these names, in `dir` or above it within the workspace.
fn nearest(walker: &mut Walker<'_>, dir: Option<&str>, names: &[&str]) -> Option<Target> {
    let start = walker.target(dir.unwrap_or("."));
    if !start.is_known() {
        return None;
    }
    let workspace = walker.here.workspace.clone();
    for dir in Path::new(&start.path).ancestors().take(UP) {
        for name in names {
            let target = walker.target(&dir.join(name).to_string_lossy());
            if walker.has_file(&target) {
                return Some(target);
            }
        }
        if dir == workspace || !dir.starts_with(&workspace) {
            break;
        }
    }
    None
}

fn parent(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned()
}

// npm and its like.

/// What installing a project runs of its own scripts.
const INSTALL: &[&str] = &["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"];
const PUBLISH: &[&str] = &["prepublishOnly", "prepack", "prepare", "postpack", "publish", "postpublish"];
const VERSION: &[&str] = &["preversion", "version", "postversion"];

fn package_scripts(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    let options = Options::read(args, "CwF", &["prefix", "cwd", "dir", "workspace", "filter"]);
    let dir = ["prefix", "cwd", "dir"].iter().find_map(|long| options.long_values(long).pop());
    let dir = dir.or_else(|| options.values('C').pop());
    let (first, rest) = match options.operands.split_first() {
        Some((first, rest)) => (first.as_str(), rest),
        None if name == "yarn" => ("install", Default::default()),
        None => return,
    };
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (scripts, given) = match first {
        "run" | "run-script" | "rum" | "urn" => match rest.split_first() {
            Some((script, given)) => (around(script), given),
            None => return,
        },
        "test" | "t" | "tst" | "start" | "stop" | "restart" => {
            let script = if first.starts_with('t') { "test" } else { first };
            (around(script), rest)
        }
        "install" | "i" | "ci" | "it" | "cit" | "clean-install" | "install-test" if rest.is_empty() => {
            (all(INSTALL), rest)
        }
        "publish" | "pack" => (all(PUBLISH), Default::default()),
        "version" => (all(VERSION), Default::default()),
        // The others run a script that is named like no command of theirs.
        other if name != "npm" => (around(other), rest),
        _ => return,
    };
    in_package(walker, dir.as_deref(), &scripts, given);
}

/// A script with those that run before and after it.
fn around(script: &str) -> Vec<String> {
    vec![format!("pre{script}"), script.to_owned(), format!("post{script}")]
}

fn in_package(walker: &mut Walker<'_>, dir: Option<&str>, scripts: &[String], given: &[String]) {
    let Some(file) = nearest(walker, dir, &["package.json"]) else { return };
    let part = scripts.join(",");
    let run = |walker: &mut Walker<'_>, text: &str| {
        let Ok(package) = serde_json::from_str::<Value>(text) else { return };
        for (i, script) in scripts.iter().enumerate() {
            let Some(line) = package.get("scripts").and_then(|all| all.get(script)).and_then(Value::as_str) else {
                continue;
            };
            let mut line = line.to_owned();
            // The script itself takes the arguments, those around it do not.
            if scripts.len() != 3 || i == 1 {
                for word in given {
                    line.push(' ');
                    line.push_str(&quote(word));
                }
            }
            walker.subshell(|walker| {
                walker.env.cwd = parent(&file.path);
                walker.env.other_cwds.clear();
                walker.run_text(&line)
            });
        }
    };
    if let Some(text) = walker.files.get(&file.path).cloned() {
        return run(walker, &text);
    }
    walker.with_part(&file, &part, run);
}

// just.

/// One recipe of a justfile.
struct Recipe {
    name: String,
    /// Parameters with their default values.
    parameters: Vec<(String, Option<String>)>,
    needs: Vec<String>,
    body: Vec<String>,
}

fn just(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "fd", &["justfile", "working-directory", "set", "shell", "dotenv-path"]);
    if ["list", "show", "dump", "summary", "dry-run", "evaluate", "fmt"].iter().any(|long| options.has_long(long, 4))
        || options.has('l')
        || options.has('n')
    {
        return;
    }
    let given = options.values('f').pop().or_else(|| options.long_values("justfile").pop());
    let piped = matches!(given.as_deref(), Some("-" | "/dev/stdin")).then(|| walker.env.stdin.clone()).flatten();
    let file = match given {
        Some(path) => walker.target(&path),
        None => match nearest(walker, None, &["justfile", "Justfile", ".justfile"]) {
            Some(file) => file,
            None => return,
        },
    };
    let operands = options.operands;
    let part = operands.join(" ");
    let run = |walker: &mut Walker<'_>, text: &str| {
        let (variables, recipes) = read_justfile(text);
        let mut wanted = operands.as_slice();
        if wanted.is_empty() {
            run_recipe(walker, &file, &variables, &recipes, recipes.first(), &[], 0);
        }
        while let Some((name, rest)) = wanted.split_first() {
            let recipe = recipes.iter().find(|recipe| recipe.name == *name);
            let takes = recipe.map_or(0, |recipe| recipe.parameters.len()).min(rest.len());
            let (values, rest) = rest.split_at_checked(takes).unwrap_or_default();
            run_recipe(walker, &file, &variables, &recipes, recipe, values, 0);
            wanted = rest;
        }
    };
    if let Some(text) = piped {
        return run(walker, &text);
    }
    if let Some(text) = walker.files.get(&file.path).cloned() {
        return run(walker, &text);
    }
    walker.with_part(&file, &part, run);
}

/// How deep recipes are followed that need each other.
const NEEDS: usize = 12;

fn run_recipe(
    walker: &mut Walker<'_>,
    file: &Target,
    variables: &[(String, String)],
    recipes: &[Recipe],
    recipe: Option<&Recipe>,
    values: &[String],
    depth: usize,
) {
    let Some(recipe) = recipe.filter(|_| depth < NEEDS) else { return };
    for need in &recipe.needs {
        let needed = recipes.iter().find(|other| other.name == *need);
        run_recipe(walker, file, variables, recipes, needed, &[], depth + 1);
    }
    let parameters = recipe.parameters.iter().enumerate().map(|(i, (name, default))| {
        let value = values.get(i).cloned().or_else(|| default.clone()).unwrap_or_else(|| UNKNOWN.to_string());
        (name.clone(), value)
    });
    let known: Vec<(String, String)> = parameters.chain(variables.iter().cloned()).collect();
    let lines: Vec<String> = recipe.body.iter().map(|line| interpolated(line, &known)).collect();
    walker.subshell(|walker| {
        walker.env.cwd = parent(&file.path);
        walker.env.other_cwds.clear();
        if lines.first().is_some_and(|line| line.starts_with("#!")) {
            let text = lines.join("\n");
            let mut argv = scripts::interpreter(&text);
            let path = format!("{}#{}", file.path, recipe.name);
            walker.files.insert(path.clone(), text);
            argv.push(path);
            walker.exec_texts(argv);
            return;
        }
        for line in lines {
            walker.subshell(|walker| walker.run_text(line.trim_start_matches(['@', '-'])));
        }
    });
}

/// `{{name}}` as far as names are known.
fn interpolated(line: &str, known: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((head, tail)) = rest.split_once("{{") {
        out.push_str(head);
        let (name, tail) = tail.split_once("}}").unwrap_or((tail, ""));
        match known.iter().find(|(key, _)| key == name.trim()) {
            Some((_, value)) => out.push_str(value),
            None => out.push(UNKNOWN),
        }
        rest = tail;
    }
    out + rest
}

fn read_justfile(text: &str) -> (Vec<(String, String)>, Vec<Recipe>) {
    let mut variables = Vec::new();
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut open = false;
    for line in text.replace("\\\n", " ").lines() {
        if line.starts_with([' ', '\t']) {
            if open && let Some(recipe) = recipes.last_mut() {
                recipe.body.push(line.trim_start().to_owned());
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        open = false;
        if let Some((name, value)) = line.split_once(":=") {
            let value = value.trim();
            let plain = value.strip_prefix(['"', '\'']).and_then(|value| value.strip_suffix(['"', '\'']));
            let value = plain.map_or_else(|| UNKNOWN.to_string(), str::to_owned);
            variables.push((name.trim().trim_start_matches("export ").to_owned(), value));
        } else if let Some((head, needs)) = line.split_once(':') {
            let mut words = head.split_whitespace();
            let Some(name) = words.next() else { continue };
            let parameters = words.map(|word| {
                let word = word.trim_start_matches(['+', '*', '$']);
                match word.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.trim_matches(['"', '\'']).to_owned())),
                    None => (word.to_owned(), None),
                }
            });
            let needs = needs.split('#').next().unwrap_or_default().replace("&&", " ");
            recipes.push(Recipe {
                name: name.trim_start_matches('@').to_owned(),
                parameters: parameters.collect(),
                needs: needs.split_whitespace().map(|need| need.trim_matches(['(', ')']).to_owned()).collect(),
                body: Vec::new(),
            });
            open = true;
        }
    }
    (variables, recipes)
}
