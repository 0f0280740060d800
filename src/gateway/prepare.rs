//! From a request to a call that can be judged: canonicalise it, and gather the facts.

use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::call::{Call, Digest, Origin, Request};
use crate::facts::path::{self, Access, Handles, Kind, PathFact, Resolver};
use crate::facts::scripts::OnDisk;
use crate::facts::url;
use crate::facts::{Facts, McpFacts, SandboxFacts, Scope, SessionFacts, Surroundings};
use crate::firewall::Prepared;
use crate::gateway::generation::Rules;
use crate::gateway::ground::Ground;
use crate::gateway::record::RecordError;
use crate::gateway::{Caller, Gateway, RulesError};
use crate::registry::{CallError, Confined, Definition, Foreign, Subject};
use crate::sandbox::{Host, Plan, PlanError, Profile, ProfileError};
use crate::state::{Sessions, StateDir};
use crate::verdict::{Finding, Severity};

impl Gateway {
    /// Everything that a judgement needs.
    ///
    /// # Errors
    ///
    /// The reason for which the request is denied as it stands. A panic on the way is such a reason.
    pub(super) fn prepare(&self, caller: &Caller, request: Request) -> Result<(Arc<Ground>, Prepared), Finding> {
        catch_unwind(AssertUnwindSafe(|| self.gather(caller, request))).unwrap_or_else(|_| {
            let message = "the call could not be analysed, so it is denied; please report this as a bug";
            Err(Finding::new("facts.panicked", Severity::Deny, message))
        })
    }

    fn gather(&self, caller: &Caller, request: Request) -> Result<(Arc<Ground>, Prepared), Finding> {
        let denied = |id: &str, why: &dyn ToString| Finding::new(id, Severity::Deny, why.to_string());
        let rules = self.rules();
        let workspace = workspace_of(caller, request.cwd.as_deref());
        if workspace != caller.workspace {
            rules.config.places.refuse_inside(&workspace).map_err(|e| denied("call.workspace", &e))?;
        }
        let ground = rules.ground(&workspace, &caller.profile).map_err(|e| match e {
            RulesError::Workspace { .. } => denied("call.workspace", &e),
            _ => denied("rules.unusable", &e),
        })?;

        let registry = match &caller.allowed_tools {
            Some(allowed) => &ground.registry.filtered(allowed.iter().map(String::as_str)),
            None => &ground.registry,
        };
        let origin = request.origin;
        let call = registry.canonicalise(request, &workspace).map_err(|e| match e {
            // Who has the configuration is told what stands in it; an agent's tools are all that there are for it.
            CallError::UnknownTool { name, known }
                if origin == Origin::Cli && ground.registry.names().any(|known| known == name) =>
            {
                let agent = caller.principal.agent.clone();
                denied("call.not-allowed", &CallError::NotAllowed { name, agent, known })
            }
            CallError::UnknownTool { .. } => denied("call.unknown-tool", &e),
            _ => denied("call.invalid", &e),
        })?;
        let tool = registry.get(&call.tool).ok_or_else(|| denied("call.invalid", &"the tool is not there"))?;
        let definition = tool.definition();

        let here = Surroundings { cwd: call.cwd.clone(), ..ground.surroundings.clone() };
        let mut notes = Vec::new();
        let agent = call.principal.agent.clone();
        let wrote = |path: &Path| self.has_written(&agent, path);
        let command = command_of(&call, definition).map(|text| match &ground.resolver {
            Ok(resolver) => {
                let scripts = OnDisk { resolver, here: &here, wrote: &wrote };
                ground.guard.analyse_with(text, &here, &scripts)
            }
            Err(_) => ground.guard.analyse(text, &here),
        });
        let (paths, handles) = match &ground.resolver {
            Ok(resolver) => path::gather(resolver, &call, definition, command.as_ref()),
            Err(error) => {
                notes.push(denied("call.workspace", error));
                Default::default()
            }
        };
        notes.extend(misplaced(&call, &ground, command.is_some()));
        let (urls, more) = if definition.subjects.is_empty() { url::urls(&call.arguments) } else { Default::default() };
        if more {
            let message = format!("the call holds more than {} URLs, and the rest was not looked at", url::MOST_URLS);
            notes.push(Finding::new("url.not-fully-checked", Severity::Warn, message));
        }
        let foreign = definition.upstream.as_deref();
        notes.extend(foreign.into_iter().flat_map(|foreign| &foreign.findings).cloned());
        let (confined, plan) = if command.is_some() {
            let (confined, plan) = self.confine_command(&rules, caller, &ground, &here, &paths, &mut notes);
            (Some(confined), plan)
        } else if let Some(server) = foreign.and_then(|foreign| Some((foreign, foreign.confinement.as_ref()?))) {
            match self.confine_server(&rules, &ground, server) {
                Ok((plan, profile)) => (Some(profile.facts(&self.kernel)), Some(plan)),
                Err(reason) => {
                    notes.push(reason);
                    (None, None)
                }
            }
        } else {
            (None, None)
        };
        let mut session = self.session(&call.principal.session).unwrap_or_else(|error| {
            notes.push(error.finding());
            SessionFacts::default()
        });
        session.wrote = command.iter().flat_map(|command| &command.scripts).any(|script| script.wrote);
        let facts = Facts {
            sensitivity: definition.sensitivity,
            sandbox: confined,
            command,
            paths,
            urls,
            mcp: foreign.map(mcp_facts),
            session,
            now: Timestamp::now(),
            notes,
        };
        let pin = foreign.map(|foreign| foreign.pin);
        let digest = digest(&call, &facts, &handles, &ground, plan.as_ref(), pin);
        let frame = frame(&call, &ground, plan.as_ref(), pin);
        Ok((ground, Prepared { call, facts, handles, plan, digest, frame }))
    }

    /// The confinement of a call's command, where it has one, and what is to be said of it.
    fn confine_command(
        &self,
        rules: &Rules,
        caller: &Caller,
        ground: &Ground,
        here: &Surroundings,
        paths: &[PathFact],
        notes: &mut Vec<Finding>,
    ) -> (SandboxFacts, Option<Plan>) {
        if !caller.confined {
            notes.extend(ground.resolver.as_ref().ok().and_then(|resolver| unconfined_beyond(resolver, paths)));
            return (SandboxFacts::unconfined(), None);
        }
        let facts = ground.profile.facts(&self.kernel);
        if ground.resolver.is_err() || notes.iter().any(|note| note.id == MISPLACED) {
            return (facts, None);
        }
        match self.confine(rules, ground, here) {
            Ok(plan) => {
                notes.extend(own_exposed(&plan));
                notes.extend(protected_exposed(&plan));
                (facts, Some(plan))
            }
            Err(error) => {
                notes.push(Finding::new("sandbox.no-plan", Severity::Deny, error.to_string()));
                (facts, None)
            }
        }
    }

    /// The confinement of programs that start where `here` says.
    pub(super) fn confine(&self, rules: &Rules, ground: &Ground, here: &Surroundings) -> Result<Plan, PlanError> {
        ground.plan((here.cwd.clone(), None), || {
            let host = Host { scratch: rules.config.places.scratch(), ..Host::current() };
            let plan = Plan::new(&ground.profile, &self.kernel, here, &host)?;
            Ok(match &ground.resolver {
                Ok(resolver) => plan.guarded_by(resolver),
                Err(_) => plan,
            })
        })
    }

    /// The confinement of a server that is a program, which starts in the workspace's root.
    pub(super) fn confine_server(
        &self,
        rules: &Rules,
        ground: &Ground,
        (foreign, confined): (&Foreign, &Confined),
    ) -> Result<(Plan, Arc<Profile>), Finding> {
        self.server_plan(rules, ground, &foreign.server, confined).map_err(|error| {
            let message = format!("the server `{}` cannot be confined: {error}", foreign.server);
            Finding::new("sandbox.no-plan", Severity::Deny, message)
        })
    }

    pub(super) fn server_plan(
        &self,
        rules: &Rules,
        ground: &Ground,
        server: &str,
        confined: &Confined,
    ) -> Result<(Plan, Arc<Profile>), ConfineError> {
        let profile = ground.profiles.named(&confined.profile)?;
        let mut here = Surroundings { cwd: ground.workspace().to_owned(), ..ground.surroundings.clone() };
        here.read_roots.extend(confined.read_roots.iter().cloned());
        here.write_roots.extend(confined.write_roots.iter().cloned());
        let plan = ground.plan((here.cwd.clone(), Some(server.to_owned())), || {
            let host = Host { scratch: rules.config.places.scratch(), ..Host::current() };
            Plan::new(&profile, &self.kernel, &here, &host)
        })?;
        Ok((plan, profile))
    }

    /// The session's history, without making a state directory for it.
    fn session(&self, id: &str) -> Result<SessionFacts, RecordError> {
        if let Some(state) = self.state.get() {
            return state.session(id);
        }
        match self.sessions()? {
            Some(sessions) => Ok(sessions.session(id)?),
            None => Ok(SessionFacts::default()),
        }
    }

    /// Whether the agent wrote this file. Where that cannot be looked up, it may have.
    fn has_written(&self, agent: &str, path: &Path) -> bool {
        let found = match (self.state.get(), self.sessions()) {
            (Some(state), _) => state.has_written(agent, path),
            (None, Ok(Some(sessions))) => sessions.has_written(agent, path).map_err(RecordError::from),
            (None, Ok(None)) => Ok(false),
            (None, Err(error)) => Err(error),
        };
        found.unwrap_or(true)
    }

    /// The sessions of the state directory, if there is one.
    fn sessions(&self) -> Result<Option<&Sessions>, RecordError> {
        if let Some(sessions) = self.sessions.get() {
            return Ok(Some(sessions));
        }
        let config = self.config();
        let place = &config.places.state;
        if self.state.get().is_some() || !place.exists() {
            return Ok(None);
        }
        let opened = Sessions::open(&StateDir::open(place)?)?;
        Ok(Some(self.sessions.get_or_init(|| opened)))
    }
}

/// The workspace of a call: the caller's, or the call's own working directory where the caller is not bound.
fn workspace_of(caller: &Caller, cwd: Option<&Path>) -> PathBuf {
    match cwd {
        Some(cwd) if !caller.bound && cwd.is_absolute() && !cwd.starts_with(&caller.workspace) => {
            cwd.canonicalize().unwrap_or_else(|_| crate::facts::normalise(cwd))
        }
        _ => caller.workspace.clone(),
    }
}

/// The finding for a working directory in which the call cannot start.
const MISPLACED: &str = "call.cwd";

/// What is wrong with the directory that the call starts in, before anybody is asked about the call. Of a directory outside
/// it is not told whether it exists.
fn misplaced(call: &Call, ground: &Ground, runs_command: bool) -> Option<Finding> {
    let resolver = ground.resolver.as_ref().ok()?;
    if call.cwd == resolver.workspace() || call.cwd == ground.surroundings.workspace {
        return None;
    }
    let (fact, handle) = resolver.look("cwd", &call.cwd.to_string_lossy(), Access::Read, &call.cwd);
    let (cwd, workspace) = (call.cwd.display(), resolver.workspace().display());
    let message = match fact.scope {
        Scope::Workspace | Scope::ReadRoot | Scope::WriteRoot => match handle.and_then(|handle| handle.kind()) {
            Some(Kind::Directory) => return None,
            Some(_) => format!("the working directory {cwd} is no directory"),
            None => format!("the working directory {cwd} is not there: make it first, or start elsewhere"),
        },
        _ if runs_command || ground.firewall.restrict_to_workspace => format!(
            "the working directory {cwd} is outside of the workspace {workspace}: start inside of it, or name the \
             workspace that is meant (on the command line --workspace)"
        ),
        _ => return None,
    };
    Some(Finding::new(MISPLACED, Severity::Deny, message))
}

fn mcp_facts(foreign: &Foreign) -> McpFacts {
    McpFacts {
        server: foreign.server.clone(),
        standing: foreign.standing.as_str().to_owned(),
        findings: foreign.findings.iter().map(|finding| finding.id.clone()).collect(),
    }
}

/// Why a server cannot be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

fn command_of<'a>(call: &'a Call, definition: &Definition) -> Option<&'a str> {
    definition.subjects.iter().find_map(|subject| match subject {
        Subject::Command { argument } => call.text(argument),
        Subject::Path { .. } | Subject::Tree { .. } => None,
    })
}

/// Said where a command could replace the gateway's own binary, as it lies in the workspace of whoever works on the gateway.
/// The guards protect it by every name; only a confinement of the full tiers does so for what a program does unseen.
fn own_exposed(plan: &Plan) -> Option<Finding> {
    let message = "the gateway's own binary lies in the workspace, and this kernel's confinement cannot keep a command from \
        replacing it; install it elsewhere";
    plan.exposes_own().then(|| Finding::new("sandbox.own-binary-exposed", Severity::Warn, message))
}

/// Said where a command that does not name a protected path can reach it all the same, by a pattern or a recursion.
fn protected_exposed(plan: &Plan) -> Option<Finding> {
    let tier = plan.tier();
    let message = format!(
        "tier {} cannot keep protected paths inside the workspace from a command that does not name them",
        tier.as_str()
    );
    (!tier.is_full()).then(|| Finding::new("sandbox.protected-exposed", Severity::Note, message))
}

/// Said where nothing confines a command that can read more than what it names.
fn unconfined_beyond(resolver: &Resolver, paths: &[PathFact]) -> Option<Finding> {
    let found = path::beyond(resolver, paths)?;
    let message = format!("the command can read what it does not name, and no sandbox confines it: {found}");
    let finding = Finding::new("path.unconfined", Severity::Warn, message);
    Some(finding.safer("name the files, or have the gateway run it"))
}

/// What binds grants for calls that are alike: everything besides the arguments and what they lead to.
fn frame(call: &Call, ground: &Ground, plan: Option<&Plan>, pin: Option<Digest>) -> Digest {
    Digest::of_json(&json!({
        "tool": call.tool,
        "cwd": hex::encode(call.cwd.as_os_str().as_bytes()),
        "workspace": hex::encode(ground.surroundings.workspace.as_os_str().as_bytes()),
        "principal": call.principal,
        "origin": call.origin,
        "rules": ground.hashes(),
        "restrict_to_workspace": ground.firewall.restrict_to_workspace,
        "plan": plan.map(Plan::digest),
        "pin": pin,
    }))
}

/// What binds judged, approved and executed together. The call's own id is not part of it: a granted call is made again.
/// A path is bound by where it leads, not by its name alone.
fn digest(
    call: &Call,
    facts: &Facts,
    handles: &Handles,
    ground: &Ground,
    plan: Option<&Plan>,
    pin: Option<Digest>,
) -> Digest {
    Digest::of_json(&json!({
        "tool": call.tool,
        "arguments": call.arguments,
        "cwd": hex::encode(call.cwd.as_os_str().as_bytes()),
        "workspace": hex::encode(ground.surroundings.workspace.as_os_str().as_bytes()),
        "paths": facts.paths,
        "places": handles.places(),
        "principal": call.principal,
        "origin": call.origin,
        "rules": ground.hashes(),
        "scripts": facts.command.as_ref().map(|command| &command.scripts),
        "restrict_to_workspace": ground.firewall.restrict_to_workspace,
        "plan": plan.map(Plan::digest),
        "pin": pin,
    }))
}
