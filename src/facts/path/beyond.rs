//! What a command can read below the directories that it names, without naming it: by a pattern or a recursion.

use super::handle::Handle;
use super::{Access, COMMAND, Kind, Opened, PathFact, Resolver};
use crate::facts::Scope;

/// The first thing below the directories that the command reads which a confinement would keep from it, or what kept that
/// from being known. Of what only a pattern matches, all that lies there counts.
pub fn beyond(resolver: &Resolver, facts: &[PathFact]) -> Option<String> {
    let inside = |scope| matches!(scope, Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot);
    let read =
        facts.iter().filter(|fact| fact.argument == COMMAND && fact.access == Access::Read && inside(fact.scope));
    read.filter_map(|fact| resolver.look(COMMAND, &fact.given, Access::Read, resolver.workspace()).1)
        .filter(|handle| handle.kind() == Some(Kind::Directory))
        .find_map(|handle| below(resolver, &handle))
}

fn below(resolver: &Resolver, directory: &Handle) -> Option<String> {
    let Ok(mut walk) = directory.walk(false, usize::MAX) else {
        return Some(format!("what lies in `{}` cannot be looked at", directory.shown()));
    };
    while let Some(entry) = walk.next() {
        let kept = match entry.kind {
            Kind::File => matches!(walk.open(&entry), Opened::Protected),
            Kind::Symlink => {
                let path = directory.landing().join(&entry.path);
                let led = resolver.look_in_command(&path.to_string_lossy(), Access::Read);
                led.protected.is_some() || !matches!(led.scope, Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot)
            }
            _ => entry.protected,
        };
        if kept {
            return Some(format!("`{}` lies below `{}`", entry.path.display(), directory.shown()));
        }
    }
    let unknown = walk.limit().map(str::to_owned);
    unknown.or_else(|| {
        (!walk.names_were_checked()).then(|| "there are too many files to tell which are protected".to_owned())
    })
}
