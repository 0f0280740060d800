//! `portcullis mcp list|add|import|remove|tools|pin|diff|approve|doctor`: the servers behind the gateway.

mod declared;
mod edit;
mod import;

use std::fs::File;
use std::io::{self, Write};

use serde_json::{Value, json};

use self::declared::Declared;
use crate::cli::args::{McpAddArgs, McpImportArgs, McpPinArgs, McpServersArgs, Who};
use crate::cli::{Failure, approvals, asked, exit, prompt, render};
use crate::config::{Config, Reach, Upstream, UpstreamName};
use crate::gateway::{Discovered, Gateway};
use crate::registry::{Foreign, Standing};
use crate::upstream::{Pins, ServerPins, prefixed};
use crate::verdict::Severity;

/// `mcp list`
pub(super) fn list(args: &McpServersArgs) -> Result<u8, Failure> {
    let config = Config::from_env()?;
    let pins = Pins::load(&config.places.state)?;
    let none = ServerPins::default();
    if args.json {
        let servers = config.file.upstreams.iter().map(|(name, upstream)| {
            let pinned = pins.of(name.as_str()).unwrap_or(&none);
            json!({
                "name": name.as_str(),
                "kind": kind(upstream),
                "what": upstream.what(),
                "pinned": pinned.tools.len(),
                "waiting": pinned.offered.keys().collect::<Vec<_>>(),
                "gone": pinned.gone,
            })
        });
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&servers.collect::<Vec<_>>())?)?;
        return Ok(exit::OK);
    }
    let mut out = render::out();
    if config.file.upstreams.is_empty() {
        writeln!(out, "no servers; `portcullis mcp add NAME -- COMMAND` adds one")?;
    }
    for (name, upstream) in &config.file.upstreams {
        let pinned = pins.of(name.as_str()).unwrap_or(&none);
        writeln!(out, "{:<20} {:<6} {}", name.as_str(), kind(upstream), render::line(&upstream.what()))?;
        writeln!(out, "{:<20} {}", "", state_of(name, pinned))?;
    }
    Ok(exit::OK)
}

fn kind(upstream: &Upstream) -> &'static str {
    match upstream.reach {
        Reach::Stdio(_) => "stdio",
        Reach::Http(_) => "http",
    }
}

fn state_of(name: &UpstreamName, pinned: &ServerPins) -> String {
    let mut told = render::counted(pinned.tools.len(), "tool") + " approved";
    if pinned.tools.is_empty() && pinned.offered.is_empty() {
        return format!("no tools approved; `portcullis mcp pin {name}` asks it for them");
    }
    if !pinned.offered.is_empty() {
        let waiting: Vec<String> = pinned.offered.keys().map(|tool| render::line(tool)).collect();
        told.push_str(&format!("; to be approved: {} (`portcullis mcp diff {name}`)", waiting.join(", ")));
    }
    if !pinned.gone.is_empty() {
        told.push_str(&format!("; gone: {}", pinned.gone.join(", ")));
    }
    told
}

/// `mcp tools`
pub(super) fn tools(server: Option<&str>, as_json: bool) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    if let Some(server) = server {
        configured(&gateway, server)?;
    }
    let registry = gateway.registry();
    let all = registry.all().filter_map(|tool| Some((tool.definition(), tool.definition().upstream.as_deref()?)));
    let chosen: Vec<_> = all.filter(|(_, foreign)| server.is_none_or(|server| foreign.server == server)).collect();
    let refused = gateway.refused_tools();
    if as_json {
        let shown = chosen.iter().map(|(definition, foreign)| {
            json!({
                "name": definition.name,
                "server": foreign.server,
                "original": foreign.original,
                "standing": foreign.standing.as_str(),
                "typed": foreign.typed,
                "findings": foreign.findings,
            })
        });
        let shown = json!({ "tools": shown.collect::<Vec<_>>(), "refused": refused });
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&shown)?)?;
        return Ok(exit::OK);
    }
    let mut out = render::out();
    for (definition, foreign) in chosen {
        writeln!(out, "{:<8} {}", foreign.standing.as_str(), definition.name)?;
        tell_findings(&mut out, foreign)?;
    }
    for finding in refused {
        writeln!(out, "refused  [{}] {}", finding.id, render::line(&finding.message))?;
    }
    Ok(exit::OK)
}

fn tell_findings(out: &mut impl Write, foreign: &Foreign) -> io::Result<()> {
    // The standing is told beside the name.
    for finding in foreign.findings.iter().filter(|finding| finding.severity == Severity::Note) {
        writeln!(out, "         [{}] {}", finding.id, render::line(&finding.message))?;
    }
    Ok(())
}

/// `mcp add`
pub(super) fn add(args: McpAddArgs) -> Result<u8, Failure> {
    let declared = Declared::of(&args)?;
    add_one(&declared, &args.who(), args.yes)
}

/// `mcp import`
pub(super) fn import(args: &McpImportArgs) -> Result<u8, Failure> {
    let found = import::read(&args.file)?;
    let mut worst = exit::OK;
    for entry in found {
        let entry = match entry {
            Ok(entry) => entry,
            Err(why) => {
                anstream::eprintln!("skipped {}", render::line(&why));
                worst = exit::FAILED;
                continue;
            }
        };
        if !args.only.is_empty() && !args.only.iter().any(|name| name == entry.name.as_str()) {
            continue;
        }
        let who = Who { workspace: args.workspace.clone(), ..Who::default() };
        match add_one(&entry, &who, args.yes) {
            Ok(code) => worst = worst.max(code),
            Err(failure) => {
                anstream::eprintln!("skipped {}: {}", entry.name, render::line(&failure.message));
                worst = exit::FAILED;
            }
        }
    }
    Ok(worst)
}

/// Shows the exact command, asks the server for its tools, shows those, and writes configuration and pins once a person
/// agreed.
fn add_one(declared: &Declared, who: &Who, yes: bool) -> Result<u8, Failure> {
    let mut config = Config::from_env()?;
    let name = &declared.name;
    if config.file.upstreams.contains_key(name) {
        return Err(Failure::usage(format!(
            "there is a server `{name}` already; `portcullis mcp remove {name}` first"
        )));
    }
    config.file.upstreams.insert(name.clone(), declared.upstream.clone());
    let file = config.places.config.join("portcullis.toml");
    let gateway = Gateway::open(config)?;
    // An agent adds no servers.
    approvals::approver(&gateway)?;
    let mut out = render::out();
    writeln!(out, "server   {name}")?;
    for line in declared.text.lines() {
        writeln!(out, "    {}", render::line(line))?;
    }
    let how = match &declared.upstream.reach {
        Reach::Stdio(stdio) => {
            format!("runs   {}\n         confined by profile {}", declared.upstream.what(), stdio.profile)
        }
        Reach::Http(http) => format!("asks   {}", http.url),
    };
    for line in how.lines() {
        writeln!(out, "  {}", render::line(line))?;
    }
    agreed(yes, "Ask it for its tools?")?;
    let found = discover(&gateway, who, name)?;
    show(&mut out, &gateway, name, &found)?;
    agreed(yes, "Add the server, and approve these tools?")?;
    edit::append(&file, &declared.text)?;
    let approved = gateway.approve_tools(name, None)?;
    writeln!(out, "added {name} to {}; {} approved", file.display(), render::counted(approved.len(), "tool"))?;
    Ok(exit::OK)
}

/// Asks a person. `--yes` answers beforehand; without it and without a terminal the answer is no.
fn agreed(yes: bool, question: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !prompt::someone_is_there() {
        return Err(Failure::usage(format!(
            "{question} Nobody is there to answer: run it at a terminal, or give --yes"
        )));
    }
    if prompt::yes(&mut render::err(), File::open("/dev/tty")?, question)? {
        return Ok(());
    }
    Err(Failure { message: "nothing was changed".to_owned(), code: exit::DENIED })
}

fn discover(gateway: &Gateway, who: &Who, name: &UpstreamName) -> Result<Discovered, Failure> {
    let caller = asked::caller(gateway, who)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let found = runtime.block_on(gateway.discover(&caller, name.as_str()));
    gateway.servers().end();
    runtime.shutdown_background();
    Ok(found?)
}

fn show(out: &mut impl Write, gateway: &Gateway, name: &UpstreamName, found: &Discovered) -> io::Result<()> {
    let said =
        |pointer: &str| found.about.pointer(pointer).and_then(Value::as_str).map(render::line).unwrap_or_default();
    writeln!(out, "  is     {} {}", said("/serverInfo/name"), said("/serverInfo/version"))?;
    let registry = gateway.registry();
    for tool in found.pinned.tools.keys().filter(|tool| !found.pinned.offered.contains_key(*tool)) {
        writeln!(out, "  approved  {}", render::line(tool))?;
    }
    for tool in found.pinned.offered.keys() {
        let made = registry.get(&prefixed(name.as_str(), tool));
        let foreign = made.and_then(|tool| tool.definition().upstream.clone());
        let changed = foreign.as_ref().is_some_and(|foreign| foreign.standing == Standing::Changed);
        writeln!(out, "  {}  {}", if changed { "CHANGED " } else { "new     " }, render::line(tool))?;
        for line in found.pinned.diff(tool).unwrap_or_default().lines() {
            writeln!(out, "      {}", render::line(line))?;
        }
        if let Some(foreign) = foreign {
            tell_findings(out, &foreign)?;
        }
    }
    for tool in &found.pinned.gone {
        writeln!(out, "  gone      {}", render::line(tool))?;
    }
    let names = [format!("server `{name}`"), format!("`{}", prefixed(name.as_str(), ""))];
    for refused in gateway.refused_tools().iter().filter(|f| names.iter().any(|name| f.message.contains(name))) {
        writeln!(out, "  refused   [{}] {}", refused.id, render::line(&refused.message))?;
    }
    for why in &found.pinned.left_out {
        writeln!(out, "  left out  {}", render::line(why))?;
    }
    Ok(())
}

fn configured(gateway: &Gateway, server: &str) -> Result<UpstreamName, Failure> {
    let config = gateway.config();
    let upstreams = &config.file.upstreams;
    if let Some(name) = upstreams.keys().find(|name| name.as_str() == server) {
        return Ok(name.clone());
    }
    let known: Vec<&str> = upstreams.keys().map(UpstreamName::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Failure::usage(format!("there is no server `{server}`: configured are {known}")))
}

/// `mcp remove`
pub(super) fn remove(server: &str) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    approvals::approver(&gateway)?;
    let name = configured(&gateway, server)?;
    let config = gateway.config();
    let removed = edit::remove(&config.places.config.join("portcullis.toml"), name.as_str())?;
    if !removed {
        let places: Vec<String> = config.read.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::usage(format!(
            "`{name}` is not in your own configuration; look in {}",
            places.join(", ")
        )));
    }
    Pins::forget(&config.places.state, name.as_str())?;
    anstream::println!("removed {name}, and what was approved of it");
    Ok(exit::OK)
}

/// `mcp pin`: asks the server, then approves.
pub(super) fn pin(args: &McpPinArgs) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    approvals::approver(&gateway)?;
    let name = configured(&gateway, &args.server)?;
    let who = Who { workspace: args.workspace.clone(), ..Who::default() };
    let found = discover(&gateway, &who, &name)?;
    approve_shown(&gateway, &name, &found, &args.tools, args.yes)
}

/// `mcp approve`: approves what is known to wait, without asking the server.
pub(super) fn approve(args: &McpPinArgs) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    approvals::approver(&gateway)?;
    let name = configured(&gateway, &args.server)?;
    let found = waiting(&gateway, &name)?;
    approve_shown(&gateway, &name, &found, &args.tools, args.yes)
}

/// `mcp diff`
pub(super) fn diff(server: &str, tools: &[String]) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    approvals::approver(&gateway)?;
    let name = configured(&gateway, server)?;
    let mut found = waiting(&gateway, &name)?;
    let settled = found.pinned.is_settled();
    if !tools.is_empty() {
        found.pinned.offered.retain(|tool, _| tools.contains(tool));
    }
    let mut out = render::out();
    if settled {
        writeln!(out, "{name}: nothing to approve, as far as it was asked; `portcullis mcp pin {name}` asks it again")?;
        return Ok(exit::OK);
    }
    show(&mut out, &gateway, &name, &found)?;
    Ok(exit::ASKS)
}

/// What is known to wait, as if the server had been asked.
fn waiting(gateway: &Gateway, name: &UpstreamName) -> Result<Discovered, Failure> {
    let pins = Pins::load(&gateway.config().places.state)?;
    let pinned = pins.of(name.as_str()).cloned().unwrap_or_default();
    Ok(Discovered { listing: Default::default(), about: Value::Null, pinned })
}

fn approve_shown(
    gateway: &Gateway,
    name: &UpstreamName,
    found: &Discovered,
    tools: &[String],
    yes: bool,
) -> Result<u8, Failure> {
    let mut out = render::out();
    let there = |tool: &String| found.pinned.offered.contains_key(tool) || found.pinned.gone.contains(tool);
    if let Some(tool) = tools.iter().find(|tool| !there(tool)) {
        return Err(Failure::usage(format!("nothing of `{}` of {name} is to be approved", render::line(tool))));
    }
    show(&mut out, gateway, name, found)?;
    if found.pinned.is_settled() {
        writeln!(out, "{name}: nothing to approve")?;
        return Ok(exit::OK);
    }
    agreed(yes, if tools.is_empty() { "Approve all of it?" } else { "Approve what you named?" })?;
    let approved = gateway.approve_tools(name, (!tools.is_empty()).then_some(tools))?;
    writeln!(out, "approved: {}", approved.iter().map(|tool| render::line(tool)).collect::<Vec<_>>().join(", "))?;
    Ok(exit::OK)
}

/// `mcp doctor`: asks each server, or one, and says how it is.
pub(super) fn doctor(server: Option<&str>, who: &Who) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    let names: Vec<UpstreamName> = match server {
        Some(server) => vec![configured(&gateway, server)?],
        None => gateway.config().file.upstreams.keys().cloned().collect(),
    };
    let mut out = render::out();
    let mut worst = exit::OK;
    for name in names {
        match discover(&gateway, who, &name) {
            Ok(found) => {
                let well = found.pinned.is_settled() && found.pinned.left_out.is_empty();
                let tools = render::counted(found.listing.tools.len(), "tool");
                writeln!(
                    out,
                    "{:<8} {name}: answers, {tools}; {}",
                    if well { "ok" } else { "WARNING" },
                    state_of(&name, &found.pinned)
                )?;
                for why in &found.pinned.left_out {
                    writeln!(out, "         {}", render::line(why))?;
                }
            }
            Err(failure) => {
                writeln!(out, "PROBLEM  {name}: {}", render::plain(&failure.message).replace('\n', "\n         "))?;
                worst = exit::DENIED;
            }
        }
    }
    Ok(worst)
}
