//! Functions that call themselves faster than they can end.

use super::syntax::{Command, Item, Kind, List, Pipeline, Word};

/// Whether a function pipes into itself, or starts itself in the background next to another call of itself.
pub(super) fn is_bomb(name: &str, body: &Command) -> bool {
    !name.is_empty() && list_of(body).into_iter().any(|list| in_list(name, list, 0))
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

fn in_list(name: &str, list: &List, depth: usize) -> bool {
    if depth > 8 {
        return false;
    }
    let calls_of = |item: &Item| {
        calls(name, &item.first) + item.rest.iter().map(|(_, pipeline)| calls(name, pipeline)).sum::<usize>()
    };
    let background = list.iter().filter(|item| item.background).map(calls_of).sum::<usize>();
    let all = list.iter().map(calls_of).sum::<usize>();
    let piped = list
        .iter()
        .any(|item| calls(name, &item.first) > 1 || item.rest.iter().any(|(_, pipeline)| calls(name, pipeline) > 1));
    piped
        || (background > 0 && all > 1)
        || list
            .iter()
            .flat_map(|item| &item.first.commands)
            .flat_map(list_of)
            .any(|list| in_list(name, list, depth + 1))
}

/// How many commands of a pipeline are the function itself.
fn calls(name: &str, pipeline: &Pipeline) -> usize {
    pipeline
        .commands
        .iter()
        .filter(|command| match &command.kind {
            Kind::Simple { words, .. } => words.first().and_then(Word::literal) == Some(name),
            Kind::Group(list) | Kind::Subshell(list) => list.iter().any(|item| calls(name, &item.first) > 0),
            _ => false,
        })
        .count()
}
