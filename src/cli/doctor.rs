//! `portcullis doctor`: what this machine can enforce, and what is configured.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::cli::args::DoctorArgs;
use crate::cli::{Failure, asked, exit, render};
use crate::config::Config;
use crate::gateway::{Caller, Gateway, Health};
use crate::sandbox::{Kernel, Profile};

pub(super) fn run(args: DoctorArgs) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    let caller = asked::caller(&gateway, &args.who)?;
    let health = gateway.health(&caller);
    if args.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&report_json(&gateway, &caller, &health))?)?;
    } else {
        report(&mut render::out(), &gateway, &caller, &health)?;
    }
    Ok(if health.problems.is_empty() { exit::OK } else { exit::DENIED })
}

fn report(out: &mut impl Write, gateway: &Gateway, caller: &Caller, health: &Health) -> io::Result<()> {
    let config = gateway.config();
    let places = &config.places;
    writeln!(out, "Places")?;
    writeln!(out, "  configuration  {}", places.config.display())?;
    for file in &config.read {
        writeln!(out, "    read         {}", file.display())?;
    }
    writeln!(out, "  state          {}", places.state.display())?;
    writeln!(out, "  workspace      {}", caller.workspace.display())?;
    writeln!(out, "\nCaller")?;
    let principal = &caller.principal;
    let attended = if principal.unattended { "unattended: what would ask is denied" } else { "attended" };
    writeln!(out, "  agent          {} (mode {}, {attended})", principal.agent, principal.mode)?;
    writeln!(out, "  profile        {}", caller.profile)?;
    writeln!(out, "\nRules")?;
    writeln!(out, "  policies       {} from {} files", health.policies, health.policy_files)?;
    writeln!(out, "  command rules  {}", health.command_rules)?;
    writeln!(out, "\nKernel")?;
    for (name, value) in kernel(gateway.kernel()) {
        writeln!(out, "  {name:<14} {value}")?;
    }
    writeln!(out, "\nConfinement")?;
    for profile in &health.profiles {
        let (tier, missing) = confinement(gateway.kernel(), profile);
        let told = if missing.is_empty() {
            format!("tier {tier}")
        } else {
            format!("NOT AVAILABLE, needs {}", missing.join(", "))
        };
        writeln!(out, "  {:<14} {told}: {}", profile.name, profile.description)?;
    }
    if let Some(profile) = health.profiles.iter().find(|p| p.name == caller.profile) {
        writeln!(out, "  what {} does not stop on this machine:", profile.name)?;
        for limitation in gateway.kernel().limitations(profile) {
            writeln!(out, "    - {limitation}")?;
        }
    }
    writeln!(out, "\nApproval (invariant I7)")?;
    writeln!(out, "  An agent that runs unconfined under this user can read what this user can read, the operator's")?;
    writeln!(out, "  token too. Run the agent behind Portcullis alone, or the gateway under an account of its own.")?;
    writeln!(out)?;
    for warning in &health.warnings {
        writeln!(out, "WARNING  {warning}")?;
    }
    if health.problems.is_empty() {
        writeln!(out, "No problems found.")?;
    }
    for problem in &health.problems {
        writeln!(out, "PROBLEM  {problem}")?;
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
        ("cgroup.kill", yes(kernel.cgroup_kill)),
        ("runs as root", yes(kernel.root)),
    ]
}

fn confinement(kernel: &Kernel, profile: &Profile) -> (&'static str, Vec<String>) {
    let missing = kernel.missing(profile).iter().map(ToString::to_string).collect();
    (kernel.tier(profile).as_str(), missing)
}

fn report_json(gateway: &Gateway, caller: &Caller, health: &Health) -> Value {
    let config = gateway.config();
    let places = &config.places;
    let profiles: Vec<Value> = health
        .profiles
        .iter()
        .map(|profile| {
            let (tier, missing) = confinement(gateway.kernel(), profile);
            json!({ "name": profile.name, "tier": tier, "missing": missing, "limitations": gateway.kernel().limitations(profile) })
        })
        .collect();
    let kernel: serde_json::Map<String, Value> =
        kernel(gateway.kernel()).into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    json!({
        "places": { "configuration": places.config, "read": config.read, "state": places.state, "workspace": caller.workspace },
        "caller": { "agent": caller.principal.agent, "mode": caller.principal.mode, "unattended": caller.principal.unattended, "profile": caller.profile },
        "rules": { "policies": health.policies, "policy_files": health.policy_files, "command_rules": health.command_rules },
        "kernel": kernel,
        "profiles": profiles,
        "warnings": health.warnings,
        "problems": health.problems,
    })
}
