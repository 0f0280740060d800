//! The names under which servers' tools are offered, and names that pretend to be others.

use std::collections::BTreeMap;

use unicode_security::skeleton;

use crate::verdict::{Finding, Severity};

/// What stands before every name.
pub const PREFIX: &str = "mcp__";
/// The longest name of a tool at its server, as the protocol has it, and the longest that models' interfaces take.
const LONGEST_ORIGINAL: usize = 128;
const LONGEST: usize = 128;

/// The name under which a server's tool is offered.
pub fn prefixed(server: &str, tool: &str) -> String {
    format!("{PREFIX}{server}__{tool}")
}

/// Why a tool cannot be offered under its name, whoever approves it.
pub fn unusable(server: &str, tool: &str) -> Option<Finding> {
    let denied = |id: &str, message: String| Some(Finding::new(id, Severity::Deny, message));
    let shown: String = tool.chars().take(64).flat_map(char::escape_debug).collect();
    if tool.is_empty() {
        return denied("mcp.name-odd", format!("a tool of server `{server}` has an empty name"));
    }
    if tool.len() > LONGEST_ORIGINAL || prefixed(server, tool).len() > LONGEST {
        let message = format!(
            "the tool `{shown}...` of server `{server}` has a name of {} bytes, too long for models' interfaces: with its \
             prefix at most {LONGEST}",
            tool.len()
        );
        return denied("mcp.name-long", message);
    }
    if !tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')) {
        let message = format!(
            "the tool `{shown}` of server `{server}` has a name with characters that the protocol does not allow: letters, \
             digits, `_`, `-` and `.` alone"
        );
        return denied("mcp.name-odd", message);
    }
    if looks(tool).starts_with(&looks(PREFIX)) {
        let message =
            format!("the tool `{shown}` of server `{server}` has a name that pretends to be another server's tool");
        return denied("mcp.name-imitates", message);
    }
    None
}

/// What a name looks like: equal for names that people, and models, take for each other.
pub fn looks(name: &str) -> String {
    let flat: String = skeleton(name).collect();
    let flat: String = skeleton(&flat.to_lowercase()).collect();
    flat.chars().filter(|c| !matches!(c, '_' | '-' | '.')).collect()
}

/// Of names that look alike: for each the first other one, in the order given.
pub fn look_alikes<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, &'a str> {
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut alike = BTreeMap::new();
    for name in names {
        match first.get(&looks(name)) {
            Some(other) if *other != name => {
                alike.insert(name, *other);
                alike.entry(*other).or_insert(name);
            }
            Some(_) => {}
            None => drop(first.insert(looks(name), name)),
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_offered_are_refused() {
        for (tool, id) in [
            ("", "mcp.name-odd"),
            ("read file", "mcp.name-odd"),
            ("re\u{0430}d", "mcp.name-odd"),
            ("a\u{202e}b", "mcp.name-odd"),
            ("a/b", "mcp.name-odd"),
            ("mcp__other__send", "mcp.name-imitates"),
            ("MCP__other__send", "mcp.name-imitates"),
            ("mcp_.-_other", "mcp.name-imitates"),
            (&"a".repeat(129), "mcp.name-long"),
            (&"a".repeat(120), "mcp.name-long"),
        ] {
            assert_eq!(unusable("server", tool).map(|finding| finding.id).as_deref(), Some(id), "{tool}");
        }
        for tool in ["read_file", "a.b", "A-1", "x__y", &"a".repeat(115)] {
            assert_eq!(unusable("server", tool), None, "{tool}");
        }
    }

    #[test]
    fn names_that_look_alike_find_each_other() {
        let names = [
            "mcp__a__read_file",
            "mcp__a__read-file",
            "mcp__a__List",
            "mcp__a__1ist",
            "mcp__a__rnove",
            "mcp__a__move",
            "mcp__a__x",
        ];
        let alike = look_alikes(names.into_iter());
        let pairs: Vec<(&str, &str)> = alike.into_iter().collect();
        assert_eq!(
            pairs,
            [
                ("mcp__a__1ist", "mcp__a__List"),
                ("mcp__a__List", "mcp__a__1ist"),
                ("mcp__a__move", "mcp__a__rnove"),
                ("mcp__a__read-file", "mcp__a__read_file"),
                ("mcp__a__read_file", "mcp__a__read-file"),
                ("mcp__a__rnove", "mcp__a__move"),
            ]
        );
    }
}
