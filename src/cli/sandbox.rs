//! `portcullis sandbox`: run a program under a profile, without the gate; say what profiles there are and what they grant.
//! For people who try a profile out, and for probes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::args::{ExecArgs, SandboxCommand};
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::files::Author;
use crate::gateway;
use crate::sandbox::{End, Host, Kernel, Launcher, NOT_ALL_KEPT, Outcome, Plan, Program, Streams};

/// As timeout(1) says it.
const TIMED_OUT: u8 = 124;

pub(super) fn run(command: &SandboxCommand) -> Result<u8, Failure> {
    match command {
        // Whatever goes wrong before the program starts must not look like an exit code of the program's.
        SandboxCommand::Exec(args) => exec(args).map_err(|failure| Failure { code: exit::SETUP, ..failure }),
        SandboxCommand::Plan { profile, workspace, json } => {
            let plan = plan(profile, workspace.as_deref())?;
            let described = plan.describe(Kernel::probe());
            let mut out = render::out_or_data(*json);
            if *json {
                writeln!(out, "{}", serde_json::to_string_pretty(&described)?)?;
            } else {
                write!(out, "{}", words(&described))?;
            }
            Ok(exit::OK)
        }
        SandboxCommand::List { json } => list(*json),
        SandboxCommand::Check { directories } => check(directories),
    }
}

fn list(as_json: bool) -> Result<u8, Failure> {
    let profiles = gateway::profiles(&Config::from_env()?)?;
    let kernel = Kernel::probe();
    let mut out = render::out_or_data(as_json);
    let described = profiles.iter().map(|profile| {
        let facts = profile.facts(kernel);
        json!({
            "name": profile.name,
            "tier": facts.offers.as_str(),
            "requires": facts.requires.as_str(),
            "missing": facts.missing,
            "description": profile.description,
        })
    });
    if as_json {
        let all: Vec<Value> = described.collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(exit::OK);
    }
    for profile in profiles.iter() {
        let facts = profile.facts(kernel);
        let missing =
            if facts.missing.is_empty() { String::new() } else { format!(", MISSING {}", facts.missing.join(", ")) };
        writeln!(out, "{:<16} tier {}{missing}\n    {}", profile.name, facts.offers.as_str(), profile.description)?;
    }
    Ok(exit::OK)
}

fn check(directories: &[PathBuf]) -> Result<u8, Failure> {
    let checked = || -> Result<usize, Failure> {
        let mut profiles = gateway::profiles(&Config::from_env()?)?;
        for directory in directories {
            profiles.load(directory, Author::Operator)?;
        }
        Ok(profiles.iter().count())
    };
    match checked() {
        Ok(count) => writeln!(anstream::stdout(), "{count} profiles are sound")?,
        Err(failure) => return Err(Failure { code: exit::DENIED, ..failure }),
    }
    Ok(exit::OK)
}

/// A description in words: a line for each thing, lists below their name.
fn words(described: &Value) -> String {
    fn put(text: &mut String, indent: usize, name: &str, value: &Value) {
        let pad = " ".repeat(indent);
        let name = name.replace('_', " ");
        match value {
            Value::Object(parts) => {
                text.push_str(&format!("{pad}{name}\n"));
                parts.iter().for_each(|(name, value)| put(text, indent + 2, name, value));
            }
            Value::Array(items) if items.is_empty() => text.push_str(&format!("{pad}{name}: nothing\n")),
            Value::Array(items) => {
                text.push_str(&format!("{pad}{name}\n"));
                for item in items {
                    text.push_str(&format!("{pad}  {}\n", item.as_str().unwrap_or_default()));
                }
            }
            Value::String(word) => text.push_str(&format!("{pad}{name}: {word}\n")),
            other => text.push_str(&format!("{pad}{name}: {other}\n")),
        }
    }
    let mut text = String::new();
    for (name, value) in described.as_object().into_iter().flatten() {
        put(&mut text, 0, name, value);
    }
    text
}

fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    let mut plan = plan(&args.profile, args.workspace.as_deref())?;
    for variable in &args.variables {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (variable.as_str(), std::env::var(variable).unwrap_or_default()),
        };
        if !plan.set_variable(name, &value) {
            return Err(Failure::usage(format!("variable `{name}` may not be set in a sandbox")));
        }
    }
    let program = Program {
        arguments: args.command.clone(),
        timeout: args.timeout.map_or(plan.wall_limit(), Duration::from_secs),
        streams: if args.tty { Streams::Terminal } else { Streams::PassThrough },
    };
    match Launcher::new()?.run_blocking(&plan, &program) {
        Ok(outcome) => {
            summary(&outcome);
            Ok(code_of(&outcome))
        }
        Err(error) => {
            let code = error.exit_code();
            let program = args.command.first().filter(|_| code != exit::SETUP);
            let what = program.map(|program| format!("{} cannot be run: ", render::line(program))).unwrap_or_default();
            eprintln!("portcullis: sandbox: {what}{}", render::plain(&error.to_string()));
            Ok(code)
        }
    }
}

fn plan(profile: &str, workspace: Option<&Path>) -> Result<Plan, Failure> {
    let config = Config::from_env()?;
    let profile = gateway::profiles(&config)?.named(profile)?;
    let current = std::env::current_dir()?;
    let named = workspace.unwrap_or(&current);
    let workspace = named
        .canonicalize()
        .map_err(|error| Failure::usage(format!("workspace `{}` cannot be opened: {error}", named.display())))?;
    config.places.refuse_inside(&workspace)?;
    let mut here = config.surroundings(&workspace);
    if current.starts_with(&workspace) {
        here.cwd = current;
    }
    let plan = Plan::new(&profile, Kernel::probe(), &here, &Host::current())?;
    Ok(plan.guarded_by(&gateway::resolver(&config, &here)?))
}

/// Says what was probably refused, and what the program left for others to run.
fn summary(outcome: &Outcome) {
    for denial in &outcome.denials {
        anstream::eprintln!("portcullis: probably refused by the sandbox, as far as the messages tell: {denial}");
    }
    for leftover in &outcome.leftovers {
        anstream::eprintln!("portcullis: {leftover}");
    }
    if outcome.not_all_kept {
        anstream::eprintln!("portcullis: {}", NOT_ALL_KEPT);
    }
}

fn code_of(outcome: &Outcome) -> u8 {
    match outcome.end {
        End::Exited(code) => u8::try_from(code).unwrap_or(exit::SETUP),
        End::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        End::TimedOut(after) => {
            anstream::eprintln!("portcullis: ended after {} s", after.as_secs());
            TIMED_OUT
        }
        End::OutOfMemory(limit) => over("memory", limit),
        End::OutOfSpace(limit) => over("disk space", limit),
    }
}

/// A program that used too much was killed, and its code says so.
fn over(what: &str, limit: u64) -> u8 {
    anstream::eprintln!("portcullis: ended: it used more than {} MiB of {what}", limit >> 20);
    137
}
