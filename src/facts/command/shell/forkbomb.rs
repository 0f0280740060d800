//! Functions and scripts that call themselves faster than they can end, and loops without end that only start more.

use std::collections::HashMap;
use std::rc::Rc;

use crate::facts::command::grammar::syntax::{Command, Item, Kind, List, Part, Pipeline, Word};

/// How many functions are looked at together, and how deep lists are followed.
const FUNCTIONS: usize = 32;
const DEPTH: usize = 8;

/// What counts as a call of itself.
struct Selves<'s> {
    names: Vec<&'s str>,
    /// The script's own name; `$0` counts too.
    script: Option<&'s str>,
}

/// The bodies that each name may have; `None` where it may be no function.
type Functions = HashMap<String, Vec<Option<Rc<Command>>>>;

fn bodies<'f>(functions: &'f Functions, name: &str) -> impl Iterator<Item = &'f Command> {
    functions.get(name).into_iter().flatten().flatten().map(AsRef::as_ref)
}

/// Whether a function pipes into itself, or starts itself in the background next to another call of itself; through
/// other functions too.
pub(crate) fn is_bomb(name: &str, body: &Command, functions: &Functions) -> bool {
    if name.is_empty() {
        return false;
    }
    if functions.len() > FUNCTIONS {
        return bomb_of(body, &Selves { names: vec![name], script: None });
    }
    let calls = |from: &str| -> Vec<&str> {
        let mut found = Vec::new();
        for list in bodies(functions, from).flat_map(list_of) {
            called(list, 0, &mut found);
        }
        found.retain(|name| functions.contains_key(*name));
        found
    };
    // What it reaches, and what of that reaches it again.
    let reached = closure(name, &calls);
    let names: Vec<&str> = reached.into_iter().filter(|other| closure(other, &calls).contains(&name)).collect();
    if names.is_empty() {
        return false;
    }
    let selves = Selves { names, script: None };
    selves.names.iter().flat_map(|name| bodies(functions, name)).any(|body| bomb_of(body, &selves))
}

fn closure<'f>(from: &'f str, calls: &dyn Fn(&str) -> Vec<&'f str>) -> Vec<&'f str> {
    let mut found: Vec<&str> = Vec::new();
    let mut open = calls(from);
    while let Some(next) = open.pop() {
        if !found.contains(&next) {
            found.push(next);
            open.extend(calls(next));
        }
    }
    found
}

/// Whether a script pipes into itself or starts itself twice, or starts something in a loop without end.
pub(crate) fn list_bombs(list: &List, own: Option<&str>) -> bool {
    let own = own.map(base).filter(|own| !matches!(*own, "bash" | "sh" | ""));
    in_list(&Selves { names: Vec::new(), script: Some(own.unwrap_or_default()) }, list, 0) || starts_endlessly(list, 0)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn list_of(command: &Command) -> Vec<&List> {
    match &command.kind {
        Kind::Group(list) | Kind::Subshell(list) => vec![list],
        Kind::If { branches, otherwise } => {
            branches.iter().flat_map(|(a, b)| [a, b]).chain(otherwise.as_ref()).collect()
        }
        Kind::While { condition, body, .. } => vec![condition, body],
        Kind::For { body, .. } | Kind::ArithmeticFor { body, .. } => vec![body],
        _ => Vec::new(),
    }
}

fn pipelines(list: &List) -> impl Iterator<Item = &Pipeline> {
    list.iter().flat_map(|item| std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)))
}

/// The names of the simple commands of a list.
fn called<'l>(list: &'l List, depth: usize, found: &mut Vec<&'l str>) {
    if depth > DEPTH {
        return;
    }
    for command in pipelines(list).flat_map(|pipeline| &pipeline.commands) {
        if let Kind::Simple { words, .. } = &command.kind {
            found.extend(words.first().and_then(Word::literal));
        }
        for inner in list_of(command) {
            called(inner, depth + 1, found);
        }
    }
}

fn bomb_of(body: &Command, selves: &Selves<'_>) -> bool {
    list_of(body).into_iter().any(|list| in_list(selves, list, 0))
}

fn in_list(selves: &Selves<'_>, list: &List, depth: usize) -> bool {
    if depth > DEPTH {
        return false;
    }
    let calls_of = |item: &Item| {
        selves.calls(&item.first) + item.rest.iter().map(|(_, pipeline)| selves.calls(pipeline)).sum::<usize>()
    };
    let background = list.iter().filter(|item| item.background).map(calls_of).sum::<usize>();
    let all = list.iter().map(calls_of).sum::<usize>();
    let piped = pipelines(list).any(|pipeline| selves.calls(pipeline) > 1);
    let looped = pipelines(list).flat_map(|pipeline| &pipeline.commands).any(|command| match &command.kind {
        Kind::While { condition, body, until } => {
            is_endless(condition, *until) && body.iter().any(|item| item.background && calls_of(item) > 0)
        }
        _ => false,
    });
    piped
        || looped
        || (background > 0 && all > 1)
        || pipelines(list)
            .flat_map(|pipeline| &pipeline.commands)
            .flat_map(list_of)
            .any(|list| in_list(selves, list, depth + 1))
}

/// A loop whose condition never changes, and whose body does nothing but start things and leave them running.
fn starts_endlessly(list: &List, depth: usize) -> bool {
    if depth > DEPTH {
        return false;
    }
    pipelines(list).flat_map(|pipeline| &pipeline.commands).any(|command| match &command.kind {
        Kind::While { condition, body, until } if is_endless(condition, *until) => {
            !body.is_empty() && body.iter().all(|item| item.background) || starts_endlessly(body, depth + 1)
        }
        Kind::Function { body, .. } => list_of(body).into_iter().any(|list| starts_endlessly(list, depth + 1)),
        _ => list_of(command).into_iter().any(|list| starts_endlessly(list, depth + 1)),
    })
}

fn is_endless(condition: &List, until: bool) -> bool {
    let [Item { first, rest, .. }] = condition.as_slice() else { return false };
    let [Command { kind: Kind::Simple { words, .. }, .. }] = first.commands.as_slice() else { return false };
    let words: Vec<&str> = words.iter().filter_map(Word::literal).collect();
    let holds = matches!(words.as_slice(), ["true" | ":"] | ["[", "1", "]"] | ["test", "1"]);
    rest.is_empty() && if until { matches!(words.as_slice(), ["false"]) } else { holds }
}

impl Selves<'_> {
    /// How many commands of a pipeline are calls of itself.
    fn calls(&self, pipeline: &Pipeline) -> usize {
        pipeline
            .commands
            .iter()
            .filter(|command| match &command.kind {
                Kind::Simple { words, .. } => match words.as_slice() {
                    [shell, script, ..] if self.script.is_some() && shell.literal().is_some_and(is_shell) => {
                        self.has(script)
                    }
                    [first, ..] => self.has(first),
                    [] => false,
                },
                Kind::Group(list) | Kind::Subshell(list) => list.iter().any(|item| self.calls(&item.first) > 0),
                _ => false,
            })
            .count()
    }

    fn has(&self, word: &Word) -> bool {
        match (word.literal(), self.script) {
            (Some(name), Some(own)) => {
                name.contains('/') && !own.is_empty() && base(name) == own || self.names.contains(&name)
            }
            (Some(name), None) => self.names.contains(&name),
            (None, Some(_)) => match word.parts.as_slice() {
                [part] => is_own_name(part),
                _ => false,
            },
            (None, None) => false,
        }
    }
}

fn is_shell(name: &str) -> bool {
    matches!(base(name), "bash" | "sh" | "zsh" | "dash" | "ksh")
}

/// `$0`, quoted or not.
fn is_own_name(part: &Part) -> bool {
    match part {
        Part::Parameter(parameter) => parameter.name == "0" && parameter.operator.is_empty(),
        Part::Double(parts) => matches!(parts.as_slice(), [part] if is_own_name(part)),
        _ => false,
    }
}
