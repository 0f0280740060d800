//! What a hook asks of the daemon, and does itself where no daemon runs: the same words, the same way.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::approval::Role;
use crate::call::{Mode, Origin, Request};
use crate::daemon::errand::{Errand, ErrandError};
use crate::gateway::{Caller, Ended, Gateway, Hosted, OpenError, Opinion};

/// The route of these errands; it is there on the Unix socket alone.
pub const HOSTED: &str = "/errand/hosted";

/// An event of an agent's own program, in the gateway's words.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostErrand {
    /// The agent to judge as, if it is configured. Otherwise the one that calls are made for without a name.
    pub agent: String,
    /// Whether `agent` was chosen by a person, so that it must be configured.
    pub chosen: bool,
    /// The name of the session.
    pub session: String,
    /// Where the session works if it begins with this event. One that began is where it began.
    pub here: PathBuf,
    /// The directory that the program says it is in now.
    pub cwd: Option<PathBuf>,
    /// The mode that the program says it is in. It can only tighten.
    pub mode: Option<Mode>,
    /// The profile in which the program was made to run commands.
    pub confined: Option<String>,
    pub what: What,
}

/// What happened there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The session began, or a person wrote something. Nothing is asked.
    Begins,
    /// A tool is to be used.
    Uses { calls: Vec<Use>, key: String, id: Option<String>, asks: bool },
    /// The use of a tool ended.
    Ends { key: String, ended: Ended },
}

/// A call that the use of a tool amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Use {
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

/// What the gateway says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It is known now.
    Noted,
    Judged {
        opinion: Opinion,
        workspace: PathBuf,
    },
}

impl HostErrand {
    /// Does the errand.
    ///
    /// # Errors
    ///
    /// When the agent is not configured, the workspace holds the gateway's own directories, or the state directory cannot be
    /// used.
    pub fn answer(
        &self,
        gateway: &Gateway,
        presented: Option<&Role>,
        home: Option<&Path>,
    ) -> Result<Said, ErrandError> {
        let caller = self.caller(gateway, presented, home)?;
        match &self.what {
            What::Begins => Ok(Said::Noted),
            What::Uses { calls, key, id, asks } => {
                let requests = calls.iter().map(|call| {
                    let arguments = crate::json::parse(call.arguments.as_bytes())?;
                    let request = caller.request(call.tool.clone(), arguments);
                    Ok(Request { cwd: self.cwd.clone(), caller_id: id.clone(), ..request })
                });
                let requests = requests.collect::<Result<Vec<_>, ErrandError>>()?;
                let hosted = Hosted { requests, key: key.clone(), asks: *asks };
                Ok(Said::Judged { opinion: gateway.opinion(&caller, hosted), workspace: caller.workspace })
            }
            What::Ends { key, ended } => {
                gateway.reported(&caller.principal.session, key, ended).map_err(OpenError::from)?;
                Ok(Said::Noted)
            }
        }
    }

    /// Whose calls these are: a configured agent's, in the workspace that the session began in, in no stronger a mode than
    /// the configuration and the program both say.
    fn caller(&self, gateway: &Gateway, presented: Option<&Role>, home: Option<&Path>) -> Result<Caller, ErrandError> {
        let config = gateway.config();
        let configured = config.file.agents.iter().any(|agent| agent.name == self.agent);
        let agent = (configured || self.chosen).then_some(self.agent.as_str());
        // Where the configuration says where the agent works, that is where.
        let placed = config.agent(agent).map_err(OpenError::from)?.workspace.is_some();
        // An agent that presents its credential has sessions of its own, apart from those of others.
        let session = match presented {
            Some(Role::Agent(name)) => format!("{name}/{}", self.session),
            _ => self.session.clone(),
        };
        let bound = gateway.bind(&session, &self.here).map_err(OpenError::from)?;
        let errand = Errand {
            agent: agent.map(str::to_owned),
            session: self.session.clone(),
            workspace: Some(bound).filter(|_| !placed),
            here: self.here.clone(),
            cwd: self.cwd.clone(),
            roams: false,
            tool: String::new(),
            arguments: String::new(),
            origin: Origin::Hook,
            caller_id: None,
            while_connected: false,
        };
        let mut caller = errand.caller(gateway, presented, home)?;
        let who = &mut caller.principal;
        who.mode = self.mode.map_or(who.mode, |mode| mode.min(who.mode));
        caller.confined = self.confined.is_some();
        caller.profile = self.confined.clone().unwrap_or(caller.profile);
        Ok(caller)
    }
}
