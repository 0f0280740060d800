//! `portcullis doctor`: what this machine can enforce, and what is configured.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::cli::args::{DoctorArgs, Who};
use crate::cli::{Failure, asked, doctor_host, exit, render};
use crate::config::{Config, Places};
use crate::daemon::running;
use crate::gateway::{Caller, Gateway, Health};
use crate::registry::Registry;
use crate::sandbox::{Kernel, Profile};

/// What could be found out. What could not is among the problems.
struct Found {
    places: Places,
    config: Option<Config>,
    caller: Option<Caller>,
    health: Health,
    kernel: Kernel,
    /// What the daemon of the state directory says of itself.
    daemon: Option<String>,
}

pub(super) fn run(args: DoctorArgs) -> Result<u8, Failure> {
    if let Some(host) = &args.host {
        return doctor_host::run(host, args.json);
    }
    let found = look(Places::from_env()?, &args)?;
    if args.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&report_json(&found))?)?;
    } else {
        report(&mut render::out(), &found)?;
    }
    Ok(if found.health.problems.is_empty() { exit::OK } else { exit::DENIED })
}

/// Looks at everything that can be looked at: what is broken is reported, with the rest.
fn look(places: Places, args: &DoctorArgs) -> Result<Found, Failure> {
    let registry = crate::tools::all()?;
    let daemon = running(&places.state);
    let nothing = |health| Found {
        places: places.clone(),
        config: None,
        caller: None,
        health,
        kernel: Kernel::probe().clone(),
        daemon: daemon.clone(),
    };
    let mut found = match Config::load(places.clone()) {
        Err(error) => {
            // Policies, packs and profiles are looked at all the same.
            let mut health = Health::of_unusable(&Config::defaults(places.clone()), &registry);
            health.problems.insert(0, error.to_string());
            nothing(health)
        }
        Ok(config) => match Gateway::open(config.clone()) {
            Err(error) => {
                let registry = tools(&config, &registry);
                let mut health = Health::of_unusable(&config, &registry);
                if health.problems.is_empty() {
                    health.problems.push(error.to_string());
                }
                Found { config: Some(config), ..nothing(health) }
            }
            Ok(gateway) => {
                // Without a name, the first of several: the others' rules are the same.
                let first = || config.file.agents.first().map(|agent| agent.name.clone());
                let who = Who {
                    agent: args.agent.clone().or_else(first),
                    workspace: args.workspace.clone(),
                    ..Who::default()
                };
                match asked::caller(&gateway, &who) {
                    Ok(caller) => {
                        let health = gateway.health(&caller);
                        Found { config: Some(config), caller: Some(caller), ..nothing(health) }
                    }
                    Err(failure) => {
                        let registry = tools(&config, &registry);
                        let mut health = Health::of_unusable(&config, &registry);
                        health.problems.push(failure.message);
                        Found { config: Some(config), ..nothing(health) }
                    }
                }
            }
        },
    };
    if found.config.is_none() || !found.health.problems.is_empty() {
        let told =
            |who: &String| format!("the daemon ({who}) keeps the rules that it loaded last, until these can be used");
        found.health.warnings.extend(found.daemon.as_ref().map(told));
    }
    Ok(found)
}

/// With the servers' tools, as far as those can be had.
fn tools(config: &Config, own: &Registry) -> Registry {
    crate::gateway::registry(config).unwrap_or_else(|_| own.clone())
}

fn report(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let places = &found.places;
    writeln!(out, "Places")?;
    writeln!(out, "  configuration  {}", places.config.display())?;
    for file in found.config.iter().flat_map(|config| &config.read) {
        writeln!(out, "    read         {}", file.display())?;
    }
    writeln!(out, "  state          {}", places.state.display())?;
    writeln!(out, "  daemon         {}", found.daemon.as_deref().unwrap_or("not running"))?;
    if let Some(caller) = &found.caller {
        writeln!(out, "  workspace      {}", caller.workspace.display())?;
        writeln!(out, "\nCaller")?;
        let principal = &caller.principal;
        let attended = if principal.unattended { "unattended: what would ask is denied" } else { "attended" };
        writeln!(out, "  agent          {} (mode {}, {attended})", principal.agent, principal.mode)?;
        writeln!(out, "  profile        {}", caller.profile)?;
        writeln!(out, "\nRules")?;
        writeln!(out, "  policies       {} from {} files", found.health.policies, found.health.policy_files)?;
        writeln!(out, "  command rules  {}", found.health.command_rules)?;
    }
    confinements(out, found)?;
    writeln!(out, "\nApproval (invariant I7)")?;
    writeln!(out, "  An agent that runs unconfined under this user can read what this user can read, the operator's")?;
    writeln!(out, "  token too. Run the agent behind Portcullis alone, or the gateway under an account of its own.")?;
    writeln!(out)?;
    for warning in &found.health.warnings {
        writeln!(out, "WARNING  {warning}")?;
    }
    if found.health.problems.is_empty() {
        writeln!(out, "No problems found.")?;
    }
    for problem in &found.health.problems {
        writeln!(out, "PROBLEM  {}", problem.replace('\n', "\n         "))?;
    }
    Ok(())
}

fn confinements(out: &mut impl Write, found: &Found) -> io::Result<()> {
    writeln!(out, "\nKernel")?;
    for (name, value) in kernel(&found.kernel) {
        writeln!(out, "  {name:<16} {value}")?;
    }
    if found.health.profiles.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nConfinement")?;
    for profile in &found.health.profiles {
        let (tier, missing) = confinement(&found.kernel, profile);
        let told = if missing.is_empty() {
            format!("tier {tier}")
        } else {
            format!("NOT AVAILABLE, needs {}", missing.join(", "))
        };
        writeln!(out, "  {:<16} {told}: {}", profile.name, profile.description)?;
    }
    let asked = found.caller.as_ref().map(|caller| caller.profile.as_str());
    if let Some(profile) = found.health.profiles.iter().find(|profile| Some(profile.name.as_str()) == asked) {
        writeln!(out, "  what {} does not stop on this machine:", profile.name)?;
        for limitation in found.kernel.limitations(profile) {
            writeln!(out, "    - {limitation}")?;
        }
    }
    Ok(())
}

fn kernel(kernel: &Kernel) -> Vec<(&'static str, String)> {
    let yes = |has: bool| if has { "yes".to_owned() } else { "no".to_owned() };
    vec![
        ("Landlock", format!("ABI {} (errata fixed: {:#b})", kernel.landlock_abi, kernel.landlock_errata)),
        ("seccomp", yes(kernel.seccomp)),
        ("no_new_privs", yes(kernel.no_new_privs)),
        ("namespaces", yes(kernel.namespaces)),
        (
            "strongest tier",
            kernel.without_full().map_or_else(
                || kernel.strongest.as_str().to_owned(),
                |why| format!("{}: {why}", kernel.strongest.as_str()),
            ),
        ),
        ("idmapped mounts", yes(kernel.idmapped_mounts)),
        ("control groups", kernel.groups.describe()),
        ("runs as root", yes(kernel.root)),
    ]
}

fn confinement(kernel: &Kernel, profile: &Profile) -> (&'static str, Vec<String>) {
    let missing = kernel.missing(profile).iter().map(ToString::to_string).collect();
    (kernel.tier(profile).as_str(), missing)
}

fn report_json(found: &Found) -> Value {
    let (places, health) = (&found.places, &found.health);
    let profiles: Vec<Value> = health
        .profiles
        .iter()
        .map(|profile| {
            let (tier, missing) = confinement(&found.kernel, profile);
            json!({ "name": profile.name, "tier": tier, "missing": missing, "limitations": found.kernel.limitations(profile) })
        })
        .collect();
    let kernel: serde_json::Map<String, Value> =
        kernel(&found.kernel).into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    let caller = found.caller.as_ref().map(|caller| {
        let who = &caller.principal;
        json!({ "agent": who.agent, "mode": who.mode, "unattended": who.unattended, "profile": caller.profile })
    });
    let rules = found.caller.as_ref().map(|_| {
        json!({ "policies": health.policies, "policy_files": health.policy_files, "command_rules": health.command_rules })
    });
    json!({
        "places": {
            "configuration": places.config,
            "read": found.config.as_ref().map(|config| &config.read),
            "state": places.state,
            "workspace": found.caller.as_ref().map(|caller| &caller.workspace),
        },
        "daemon": found.daemon,
        "caller": caller,
        "rules": rules,
        "kernel": kernel,
        "profiles": profiles,
        "warnings": health.warnings,
        "problems": health.problems,
    })
}
