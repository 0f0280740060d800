//! What the command line may say.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::approval::Reach;
use crate::audit::export::Form;
use crate::sandbox::DEFAULT_PROFILE;

/// A policy-first secure execution gateway for AI agents.
///
/// Every tool call passes one firewall: Cedar policy, command guard, path guard, OS sandbox. Only what it lets through
/// runs, confined, with the decision on disk first.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub color: colorchoice_clap::Color,
}

const EXIT_CODES: &str = "Exit codes: 0 allowed or done, 2 denied, 3 asks, 64 wrong usage, 70 internal error.\n\
    `run` exits with the command's own code, which may be one of these; 125 if the sandbox could not be set up.\n\
    Scripts tell them apart with --output json, whose `decision` is the gateway's.\n\
    Files: portcullis.toml, policies/, commands/ and profiles/ in ~/.config/portcullis (PORTCULLIS_CONFIG);\n\
    audit log, approvals and keys in ~/.local/state/portcullis (PORTCULLIS_STATE).";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make one call, the whole way: judge it, ask if need be, run it confined, record it.
    Run(RunArgs),
    /// Say what the firewall would answer, stage by stage. Nothing runs, nothing is recorded.
    ///
    /// The exit code is the verdict's: 0 allow, 2 deny, 3 ask. A call that asks exits with 3 also where the agent's mode
    /// answers in advance, so that `run` would run it without asking; the note `approval.standing` says so.
    Check(CheckArgs),
    /// Show how a shell command is understood: what it would run, with which effects, and what the firewall answers to it.
    Explain(ExplainArgs),
    /// Be the gateway's daemon: HTTP for agents and operators, a socket for `run` and `check`.
    Serve(ServeArgs),
    /// Say what an operator needs to reach the daemon: its address and where the tokens are.
    Login(LoginArgs),
    /// List the tools.
    Tools(ToolsArgs),
    /// Show what this machine can enforce and what is configured.
    Doctor(DoctorArgs),
    /// Work on policies.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// The command guard's rules: list them, show one, try them out.
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// Read and verify the audit log.
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Answer calls that wait for a person.
    Approvals {
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Write a commented configuration to start from.
    Init(InitArgs),
    /// Serve the tools to an agent that speaks MCP, over standard input and output; and the MCP servers behind the gateway.
    Mcp(McpArgs),
    /// Run a program confined, without the gate.
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Put Portcullis in front of the tools of an agent's own program, by its hooks. Shows what changes.
    Install(InstallArgs),
    /// Take it out again: what was in the program's configuration before comes back, byte for byte.
    Uninstall(InstallArgs),
    /// Answer an event of an agent's own program, on standard input, in the form that the program honours.
    ///
    /// `portcullis install AGENT` sets this up. Whatever goes wrong blocks.
    Hook(HookArgs),
    /// Do the errand of a hook, in a process of its own.
    #[command(hide = true)]
    HookJudge,
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
}

/// Who calls, and where.
#[derive(Args, Clone, Debug, Default)]
pub struct Who {
    /// The configured agent to call as [default: the only one that is configured; of none or several `local`, the built-in].
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The session that the call belongs to.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub session: String,
    /// The workspace [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Working directory of the call, in the workspace or an extra root [default: the workspace].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
}

/// A tool and its arguments.
#[derive(Args, Clone, Debug, Default)]
pub struct ToolCall {
    /// The tool's name (see `portcullis tools`).
    pub tool: Option<String>,
    /// Arguments as key=value; values are read as the tool's schema says.
    #[arg(value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
    /// Arguments as one JSON object.
    #[arg(long, value_name = "OBJECT", conflicts_with = "pairs")]
    pub json: Option<String>,
}

/// Under which rules the past is decided again.
#[derive(Args, Clone, Debug, Default)]
pub struct ReplayArgs {
    /// Policy files, or directories of them, in place of the configured ones. May be given more than once.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub policies: Vec<PathBuf>,
    /// A directory of command packs in place of the configured ones: the commands are analysed again.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub packs: Option<PathBuf>,
    /// Analyse the commands again with the configured packs, in place of what was recorded of them.
    #[arg(long)]
    pub commands: bool,
    /// Only calls since this time: a date, a time, or how long ago, such as `30d`.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Exit with 0 also where something became looser.
    #[arg(long)]
    pub accept_looser: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Which calls.
#[derive(Args, Clone, Debug, Default)]
pub struct QueryArgs {
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// What was answered.
    #[arg(long, value_name = "ANSWER", value_parser = ["allow", "ask", "ask(1)", "ask(2)", "deny"])]
    pub verdict: Option<String>,
    /// The id of a policy or of a rule, among the findings.
    #[arg(long, value_name = "ID")]
    pub rule: Option<String>,
    /// A path that the call uses, or a directory above it.
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// A host that the call names, or a domain above it.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Not before this time: a date, a time, or how long ago, such as `30d` or `2h`.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Words, or beginnings of words, in the command, the paths or the findings.
    #[arg(long, value_name = "WORDS")]
    pub text: Option<String>,
    /// How many, the newest.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    pub limit: usize,
    /// Print one JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub call: ToolCall,
    #[command(flatten)]
    pub who: Who,
    /// Never ask at the terminal: a call that asks is left pending and the exit code is 3.
    #[arg(long)]
    pub no_prompt: bool,
    /// Print the result as text or as one JSON object.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The command, as one argument or as its words.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub who: Who,
    /// Print one JSON object instead.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The loopback address of the HTTP interface [default: `[serve] listen`, else 127.0.0.1:8460].
    #[arg(long, value_name = "ADDRESS", value_parser = crate::config::address)]
    pub listen: Option<SocketAddr>,
    /// Where agents work whose configuration names no workspace [default: the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct LoginArgs {
    /// Print the operator's token even where standard output is no terminal.
    #[arg(long)]
    pub token: bool,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub call: ToolCall,
    #[command(flatten)]
    pub who: Who,
    /// Judge many calls: one {"id","tool","arguments","cwd"?} object a line, from FILE or `-`. Where no workspace is named,
    /// an absolute cwd outside of it is the workspace of its line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["tool", "pairs", "json"])]
    pub batch: Option<PathBuf>,
    /// Print the verdict as text or as one JSON object (batches are always JSON).
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

#[derive(Args, Debug)]
pub struct ToolsArgs {
    /// Print the definitions as JSON.
    #[arg(long)]
    pub json: bool,
    /// The form of the JSON definitions.
    #[arg(long, value_enum, default_value = "mcp", requires = "json")]
    pub form: DefinitionForm,
    /// The configured agent whose tools to list.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

/// The two forms in which models are told of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DefinitionForm {
    Mcp,
    Openai,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Prove that the hook in this agent's own program holds, instead of reporting on this machine.
    #[arg(value_name = "AGENT", value_parser = hosts(), conflicts_with_all = ["agent", "workspace"])]
    pub host: Option<String>,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The configured agent to report on [default: the only one that is configured, else `local`].
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The workspace to report on [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Validate policies as the gateway would load them, and say what is wrong with them.
    Check {
        /// Policy files or directories to check in place of the configured ones.
        #[arg(value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// The workspace whose `.portcullis/policies` are checked with the configured ones [default: the current directory].
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "paths")]
        workspace: Option<PathBuf>,
        /// Print the result as one JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List the rules: id, severity, reason, pack.
    List {
        /// Only those of one severity: fatal, deny, review, warn or note.
        #[arg(long, value_name = "SEVERITY", value_parser = ["fatal", "deny", "review", "warn", "note"])]
        severity: Option<String>,
        /// Only those of packs whose file has this in its name.
        #[arg(long, value_name = "NAME")]
        pack: Option<String>,
        /// Print them as one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show all that one rule says.
    Show {
        /// The rule's id.
        id: String,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Judge commands, or the examples of packs. Nothing runs; files that commands run are not read.
    Test {
        /// Commands, one a line (a JSON string where a line starts with a quote), or `-` for standard input; or a pack, with
        /// `.toml` at its end [default: the configured packs].
        #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
        file: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// One command to judge, as one argument.
        #[arg(last = true)]
        command: Option<String>,
    },
    /// List the exceptions from rules, and which of them lapsed.
    Exceptions {
        /// Print them as one JSON array.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Show the last records.
    Tail {
        /// How many.
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        lines: usize,
        /// Go on showing records as they are written.
        #[arg(short, long)]
        follow: bool,
        /// Print the records as they are in the log, one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Show what a session did, one line a call.
    Timeline {
        session: String,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Find calls.
    Query(QueryArgs),
    /// Ask the index in SQL: the views are calls, findings, paths, hosts, events and sessions. Nothing can be changed.
    Sql {
        /// One SELECT statement, such as `SELECT tool, count(*) FROM calls GROUP BY tool`.
        #[arg(required_unless_present = "schema")]
        query: Option<String>,
        /// Print the views and their columns instead.
        #[arg(long)]
        schema: bool,
        /// Print one JSON object a row.
        #[arg(long)]
        json: bool,
    },
    /// Say why a call was answered as it was: every stage, the policy that decided, and what would have changed it.
    Why {
        /// The call's id, or the beginning or end of it.
        call: String,
        #[arg(long)]
        json: bool,
    },
    /// Show one call: who, what, why, and what came of it.
    Show {
        /// The call's id, or the beginning of it.
        call: String,
        /// Print the call's records, one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Prove that the log's chain is whole. Exits with 2 where it is not.
    Verify {
        /// Another log than the configured one.
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
        /// The key that signs the log's checkpoints, as `audit key` prints it [default: the one beside the log].
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Checkpoints that were kept elsewhere: the log must still be what they say. May be given more than once.
        #[arg(long = "checkpoint", value_name = "FILE", value_hint = ValueHint::FilePath)]
        checkpoints: Vec<PathBuf>,
        /// Decide every call again under the rules that its record names, which proves that the log is honest.
        #[arg(long, conflicts_with = "path")]
        rederive: bool,
        /// Print the report as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Decide the past again under other rules, and show what they would have changed.
    ///
    /// Exits with 2 where a call would be answered less strictly, unless that is accepted.
    Replay(ReplayArgs),
    /// Write the log in another form to standard output.
    Export {
        #[arg(long, value_enum, default_value = "jsonl")]
        form: Form,
        /// Only since this time: a date, a time, or how long ago, such as `30d`.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
    /// Write a report to standard output: one HTML page that needs nothing else.
    Report {
        /// Only calls since this time: a date, a time, or how long ago, such as `30d`.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
    /// Sign the log as it is now and print the checkpoint, to be kept where nobody on this machine can change it.
    Checkpoint,
    /// Print the public key that checks the log's checkpoints.
    Key,
    /// Print a proof that a record is in the log, or that the log has only grown since a checkpoint.
    Prove {
        /// The record's number, or the id of a call.
        #[arg(conflicts_with = "since")]
        record: Option<String>,
        /// Prove that the log has only grown since this checkpoint.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        since: Option<PathBuf>,
    },
    /// Check such a proof, without the log. Exits with 2 where it proves nothing.
    CheckProof {
        #[arg(value_hint = ValueHint::FilePath)]
        path: PathBuf,
        /// The key of the log, as `audit key` prints it.
        #[arg(long, value_name = "KEY")]
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the calls that wait.
    List {
        /// Print them as one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show what a call that waits can be granted with, and what each would have allowed of the last calls.
    Scopes {
        /// The id that the call was told.
        id: String,
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Let a call that waits run.
    Grant {
        /// The id that the call was told.
        id: String,
        /// What the grant covers.
        #[arg(long, value_enum, default_value_t)]
        scope: Reach,
    },
    /// List the grants that are in force.
    Grants {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Take a grant back.
    Revoke {
        /// Its id.
        id: String,
    },
    /// Refuse a call that waits.
    Refuse {
        /// The id that the call was told.
        id: String,
        /// Why, for the agent and the record.
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Run a program under a profile, with this terminal's input and output.
    ///
    /// Exits with the program's own code; 124 when its time was up, 125 when the sandbox could not be set up, 126 and 127
    /// when the program could not be run or found, 128+n when signal n ended it.
    Exec(ExecArgs),
    /// Say what a profile grants on this machine, without running anything.
    Plan {
        /// The profile.
        #[arg(default_value = DEFAULT_PROFILE, value_name = "NAME")]
        profile: String,
        /// The workspace [default: the current directory].
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        workspace: Option<PathBuf>,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// List the profiles, and how strongly this machine can give each.
    List {
        /// Print them as one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Validate profiles as the gateway would load them. Exits with 2 where one is not sound.
    Check {
        /// Directories of profiles to check on top of the configured ones.
        #[arg(value_hint = ValueHint::DirPath)]
        directories: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct ExecArgs {
    /// The profile to run it in.
    #[arg(long, default_value = DEFAULT_PROFILE, value_name = "NAME")]
    pub profile: String,
    /// The workspace [default: the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Let a variable pass, or set one.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub variables: Vec<String>,
    /// Seconds until it is ended, at most the profile's limit [default: the profile's limit].
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Give it a terminal of its own, which this one shows: for editors, pagers, debuggers.
    #[arg(long)]
    pub tty: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

#[derive(Args, Debug)]
pub struct HookArgs {
    /// The agent whose program it is.
    #[arg(value_name = "AGENT", value_parser = hosts())]
    pub host: String,
    /// The configured agent to judge as [default: the one that is named like the program, else as without a name].
    #[arg(long = "agent", value_name = "NAME")]
    pub agent: Option<String>,
    /// The event, where the program does not say it.
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Run shell commands that are allowed in this sandbox profile, where the program takes a rewritten command.
    #[arg(long, value_name = "PROFILE")]
    pub confine: Option<String>,
    /// The program asks a person where it is told to, and waits for the answer (generic form).
    #[arg(long)]
    pub asks: bool,
    /// How long an answer may take before it is a refusal.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub deadline: u64,
}

#[derive(Args, Debug)]
pub struct InstallArgs {
    /// The agent whose program it is.
    #[arg(value_name = "AGENT", value_parser = hosts())]
    pub host: String,
    /// For this user, in every project [default].
    #[arg(long, conflicts_with = "project")]
    pub user: bool,
    /// For the project in the current directory, and everybody who works on it with a Portcullis at the same place.
    #[arg(long)]
    pub project: bool,
    /// Show what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Add Portcullis as an MCP server as well.
    #[arg(long)]
    pub mcp: bool,
    /// The configured agent to judge as.
    #[arg(long = "agent", value_name = "NAME")]
    pub agent: Option<String>,
    /// Run shell commands that are allowed in this sandbox profile, where the program takes a rewritten command. The program's
    /// own rules and prompts do not apply to them any more.
    #[arg(long, value_name = "PROFILE")]
    pub confine: Option<String>,
}

fn hosts() -> clap::builder::PossibleValuesParser {
    crate::hook::hosts::ALL.iter().map(|host| host.name).collect::<Vec<_>>().into()
}

#[derive(Args, Debug)]
pub struct InitArgs {
    /// Show what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the lines that make an agent use the gateway, and write nothing.
    #[arg(long, value_enum, value_name = "CLIENT", conflicts_with = "dry_run")]
    pub mcp_client: Option<McpClient>,
}

/// Agents that take MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum McpClient {
    Claude,
    Cursor,
    Vscode,
    Codex,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
    #[command(flatten)]
    pub serve: McpServeArgs,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Serve one client; the same as without a subcommand.
    Serve(McpServeArgs),
    /// List the servers behind the gateway.
    List(McpServersArgs),
    /// List the tools of the servers behind the gateway, and what is noticed of them.
    Tools {
        /// One server's alone.
        server: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add a server: shows its command, asks it for its tools, and approves them.
    Add(McpAddArgs),
    /// Add the servers of another program's configuration (`mcpServers`, or VS Code's `servers`).
    Import(McpImportArgs),
    /// Remove a server, and what was approved of it.
    Remove { server: String },
    /// Ask a server for its tools, and approve what is new or changed.
    Pin(McpPinArgs),
    /// Show what a server changed, without asking it.
    Diff {
        server: String,
        /// These tools alone.
        tools: Vec<String>,
    },
    /// Approve what is known to wait, without asking the server.
    Approve(McpPinArgs),
    /// Start or reach each server, and say how it is.
    Doctor {
        /// One server alone.
        server: Option<String>,
        /// The workspace that it runs in [default: the agent's, else the current directory].
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        workspace: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct McpServersArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct McpAddArgs {
    /// Its name: its tools are called mcp__NAME__TOOL.
    pub name: String,
    /// The address of a server that speaks streamable HTTP.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env", "profile", "read_root", "shared"])]
    pub url: Option<String>,
    /// A header for every request, or only its name where the variable of that name has the value.
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub header: Vec<String>,
    /// A variable for the server, or only its name to pass the gateway's own on.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// The sandbox profile [default: mcp-server].
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// A directory that the server may read, besides what its profile grants.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub read_root: Vec<PathBuf>,
    /// One process for all agents of a workspace.
    #[arg(long)]
    pub shared: bool,
    /// The workspace in which it is asked for its tools [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Ask nothing: run it, and approve what it offers.
    #[arg(long)]
    pub yes: bool,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present = "url")]
    pub command: Vec<String>,
}

impl McpAddArgs {
    /// For whom the server is asked.
    pub fn who(&self) -> Who {
        Who { workspace: self.workspace.clone(), ..Who::default() }
    }
}

#[derive(Args, Debug)]
pub struct McpImportArgs {
    /// The file, such as ~/.claude.json, .mcp.json or .cursor/mcp.json.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Only these servers, by the names that they get here.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The workspace in which they are asked for their tools [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Ask nothing: run them, and approve what they offer.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Args, Debug)]
pub struct McpPinArgs {
    pub server: String,
    /// These tools alone [default: all].
    pub tools: Vec<String>,
    /// The workspace in which it is asked for its tools [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Approve without asking.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Args, Debug)]
pub struct McpServeArgs {
    /// The configured agent that the client is.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The session that the calls belong to [default: a new one].
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// The workspace [default: the agent's, else the current directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// How long a call that asks waits for a person before it is answered as pending [default: 20, and 50 for a client that
    /// takes progress notes].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=86400))]
    pub wait: Option<u64>,
}
