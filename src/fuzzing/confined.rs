//! Runs programs of the harness in our own sandbox: a workspace, no network, limits.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::facts::Surroundings;
use crate::sandbox::{Host, Kernel, Launcher, Plan, Profiles, Program, Streams};

/// Runs `arguments` with write access to `workspace` alone, for so long at most.
pub fn confined(launcher: &Launcher, workspace: &Path, arguments: &[String], timeout: Duration) -> io::Result<()> {
    let profiles = Profiles::built_in().map_err(io::Error::other)?;
    let profile = profiles.get("workspace-write").ok_or_else(|| io::Error::other("no profile `workspace-write`"))?;
    let here = Surroundings::new(workspace, "/nonexistent");
    let beside = workspace.parent().unwrap_or(workspace);
    let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let host = Host { scratch: beside.join("scratch"), caches: beside.join("caches"), environment: vec![path] };
    let plan = Plan::new(profile, Kernel::probe(), &here, &host).map_err(io::Error::other)?;
    let program = Program { arguments: arguments.to_vec(), timeout, streams: Streams::Capture };
    launcher.run_blocking(&plan, &program).map_err(io::Error::other)?;
    Ok(())
}
