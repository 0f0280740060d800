//! What is known of an agent's own program: the events that it sends, how it names tools and arguments, which answers it
//! honours. All of it is data, with where it is from and when it was checked.

use serde_json::Value;

use crate::call::Mode;

/// An agent's own program.
pub struct Host {
    /// The name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// Where the facts are from.
    pub source: &'static str,
    /// When they were last compared with it.
    pub checked: &'static str,
    pub fields: Fields,
    pub events: &'static [EventRow],
    /// The modes that it reports. One that is not here blocks.
    pub modes: &'static [ModeRow],
    pub tools: &'static [ToolRow],
    pub answers: Answers,
    /// Whether a hook can put another input in the place of a tool's.
    pub rewrites: Rewrites,
    /// What it does whatever a hook answers: where the gateway cannot enforce anything.
    pub gaps: &'static [Gap],
}

/// Where the parts that all events have are, as JSON Pointers (RFC 6901). Of several the first that is there counts.
pub struct Fields {
    /// Absent where an event does not say what it is, so that the command line has to (`--event`).
    pub event: &'static [&'static str],
    pub session: &'static [&'static str],
    pub workspace: &'static [&'static str],
    pub cwd: &'static [&'static str],
    pub mode: &'static [&'static str],
    /// The program's own identifier for the use of a tool.
    pub id: &'static [&'static str],
    /// An environment variable with the workspace.
    pub workspace_variable: Option<&'static str>,
}

/// An event.
pub struct EventRow {
    pub name: &'static str,
    pub kind: Kind,
    pub tool: Named,
    /// Where the tool's arguments are; the whole event where this is empty.
    pub input: &'static [&'static str],
    /// Where what came of it is.
    pub result: &'static [&'static str],
    /// Whether "ask a person" is an answer that the program acts on here.
    pub asks: bool,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The session begins, or goes on.
    Begins,
    /// A person wrote something; the program waits for the answer.
    Prompt,
    /// A tool is to be used.
    Uses,
    /// A person is about to be asked for it.
    Permission,
    /// It was used.
    Ends,
    /// It was used, and failed.
    Failed,
}

/// How an event names the tool.
pub enum Named {
    /// It is about no tool.
    Nothing,
    At(&'static [&'static str]),
    /// It is always the same.
    Always(&'static str),
    /// A tool of an MCP server, both by name.
    Mcp {
        server: &'static str,
        tool: &'static str,
    },
    /// The same where the server is said, else a tool of the program's.
    McpOr {
        server: &'static str,
        tool: &'static str,
        or: &'static str,
    },
}

/// A mode that the program reports.
pub struct ModeRow {
    pub name: &'static str,
    /// What the mode tightens ours to.
    pub mode: Option<Mode>,
    /// Whether "ask a person" is acted on in this mode.
    pub asks: bool,
}

/// A tool of the program's, by one or more names.
pub struct ToolRow {
    pub names: &'static [&'static str],
    pub is: Is,
    /// What it brings into the session may be a stranger's.
    pub untrusted: bool,
}

/// What a tool amounts to here.
pub enum Is {
    /// One call of ours.
    Call(&'static str, &'static [Argument]),
    /// A patch, in the argument of the first of these names: a write or an edit of each file in it.
    Patch(&'static [&'static str]),
    /// Edits of one file: the argument with its name, and the one with the list of `old` and `new` texts.
    Edits { path: &'static [&'static str], list: &'static str, old: &'static str, new: &'static str },
    /// A tool of an MCP server, named in the arguments.
    Mcp { server: &'static str, tool: &'static str, arguments: &'static str },
    /// One tool for several things: an argument says which.
    By(&'static str, &'static [(&'static str, Is)]),
    /// Nothing outside of the program itself.
    Internal,
}

/// An argument of ours and the program's names for it.
pub struct Argument {
    pub ours: &'static str,
    pub theirs: &'static [&'static str],
    /// What stands for it where it is left out.
    pub absent: Option<&'static str>,
}

/// The form in which the program is answered.
pub struct Answers {
    /// Standard output for "go on, as if there were no hook", where it must say something.
    pub goes_on: fn(&EventRow) -> Option<Value>,
    /// Standard output for "ask a person", with the reason and, where it is rewritten, the new input.
    pub ask: fn(&EventRow, &str, Option<&Value>) -> Option<Value>,
    /// Standard output for "do not", with the reason. None where the event could not be read.
    pub block: fn(Option<&EventRow>, &str) -> Option<Value>,
    /// The exit code for "do not". Standard error says why in every case.
    pub block_code: u8,
    /// Standard output for "go on, with this input".
    pub rewrite: fn(&EventRow, &Value, &str) -> Option<Value>,
}

/// Whether the program takes another input from a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrites {
    /// It does, and what it gives up by that.
    Yes(&'static str),
    No,
}

/// A case in which the program runs a call whatever the hook would say.
pub struct Gap {
    /// When.
    pub when: &'static str,
    /// What closes it, where something does.
    pub closed_by: Option<&'static str>,
    pub source: &'static str,
}

impl Host {
    pub fn event(&self, name: &str) -> Option<&'static EventRow> {
        self.events.iter().find(|row| row.name == name)
    }

    pub fn tool(&self, name: &str) -> Option<&'static ToolRow> {
        self.tools.iter().find(|row| row.names.contains(&name))
    }

    pub fn mode(&self, name: &str) -> Option<&'static ModeRow> {
        self.modes.iter().find(|row| row.name == name)
    }
}

/// An event in the form that several programs share.
pub const fn of_tool(name: &'static str, kind: Kind) -> EventRow {
    EventRow {
        name,
        kind,
        tool: Named::At(&["/tool_name"]),
        input: &["/tool_input"],
        result: &["/tool_response"],
        asks: false,
    }
}

/// An argument that must be there.
pub const fn argument(ours: &'static str, theirs: &'static [&'static str]) -> Argument {
    Argument { ours, theirs, absent: None }
}

/// An argument with what stands for it where it is left out.
pub const fn argument_or(ours: &'static str, theirs: &'static [&'static str], absent: &'static str) -> Argument {
    Argument { ours, theirs, absent: Some(absent) }
}

/// A tool that is one call of ours.
pub const fn call(names: &'static [&'static str], tool: &'static str, arguments: &'static [Argument]) -> ToolRow {
    ToolRow { names, is: Is::Call(tool, arguments), untrusted: false }
}

/// Tools that do nothing outside of the program.
pub const fn internal(names: &'static [&'static str]) -> ToolRow {
    ToolRow { names, is: Is::Internal, untrusted: false }
}

/// A tool that is judged under its own name and brings in what strangers write.
pub const fn web(names: &'static [&'static str], tool: &'static str, arguments: &'static [Argument]) -> ToolRow {
    ToolRow { names, is: Is::Call(tool, arguments), untrusted: true }
}

/// The first of these places in an event that is there.
pub fn at<'v>(event: &'v Value, places: &[&str]) -> Option<&'v Value> {
    places.iter().find_map(|place| event.pointer(place)).filter(|found| !found.is_null())
}
