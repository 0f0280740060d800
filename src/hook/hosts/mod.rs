//! The programs that are known, one file for each.

mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod generic;
mod opencode;
mod openhands;
mod windsurf;

use serde_json::Value;

use crate::hook::host::{EventRow, Host, Kind, Named};

/// All of them, in the order of their names, and the documented form for others last.
pub const ALL: &[&Host] = &[
    &claude::HOST,
    &cline::HOST,
    &codex::HOST,
    &copilot::HOST,
    &cursor::HOST,
    &gemini::HOST,
    &opencode::HOST,
    &openhands::HOST,
    &windsurf::HOST,
    &generic::HOST,
];

/// The program with this name on the command line.
pub fn named(name: &str) -> Option<&'static Host> {
    ALL.iter().find(|host| host.name == name).copied()
}

/// An event about no tool.
const fn about_session(name: &'static str, kind: Kind) -> EventRow {
    EventRow { name, kind, tool: Named::Nothing, input: &[], result: &[], asks: false }
}

/// Nothing on standard output.
fn silence(_: &EventRow) -> Option<Value> {
    None
}

fn no_ask(_: &EventRow, _: &str, _: Option<&Value>) -> Option<Value> {
    None
}

fn no_block(_: Option<&EventRow>, _: &str) -> Option<Value> {
    None
}

fn no_rewrite(_: &EventRow, _: &Value, _: &str) -> Option<Value> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::host::{Is, ToolRow};

    fn ours(is: &Is) -> Vec<&'static str> {
        match is {
            Is::Call(tool, _) => vec![tool],
            Is::By(_, ways) => ways.iter().flat_map(|(_, is)| ours(is)).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn tables_name_nothing_twice_and_say_where_they_are_from() {
        for host in ALL {
            let twice = |mut names: Vec<&str>| {
                names.sort_unstable();
                names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned())
            };
            assert_eq!(twice(host.events.iter().map(|row| row.name).collect()), None, "{}", host.name);
            assert_eq!(twice(host.tools.iter().flat_map(|row| row.names).copied().collect()), None, "{}", host.name);
            assert_eq!(twice(host.modes.iter().map(|row| row.name).collect()), None, "{}", host.name);
            assert!(host.source.len() > 10 && host.checked.parse::<jiff::civil::Date>().is_ok(), "{}", host.name);
            assert!(host.events.iter().any(|row| row.kind == Kind::Uses), "{} is never asked", host.name);
            assert!(host.events.iter().any(|row| row.kind == Kind::Ends), "{} never reports", host.name);
            assert!(host.gaps.iter().all(|gap| !gap.source.is_empty()), "{}", host.name);
        }
    }

    #[test]
    fn what_tables_map_to_is_there_and_fits_its_schema() {
        let registry = crate::tools::all().unwrap();
        for host in ALL {
            for ToolRow { names, is, .. } in host.tools {
                for tool in ours(is) {
                    // Tools that the gateway will have, or not, are judged as the program's own until then.
                    let Some(tool) = registry.get(tool) else { continue };
                    let known = tool.definition().parameters["properties"].as_object().unwrap();
                    let Is::Call(_, arguments) = is else { continue };
                    for argument in *arguments {
                        assert!(known.contains_key(argument.ours), "{} {names:?}: {}", host.name, argument.ours);
                    }
                }
            }
        }
    }

    #[test]
    fn i2_every_program_has_a_form_that_blocks() {
        for host in ALL {
            for row in host.events.iter().map(Some).chain([None]) {
                let said = (host.answers.block)(row, "why").is_some();
                assert!(host.answers.block_code == 2 || said, "{}", host.name);
            }
            for row in host.events {
                if row.asks {
                    assert!((host.answers.ask)(row, "why", None).is_some(), "{} {} cannot ask", host.name, row.name);
                }
            }
        }
    }
}
