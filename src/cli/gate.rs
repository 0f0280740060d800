//! The way to the gateway: the daemon's where one runs, else one in this process. Both give the same answers, and both
//! write to the same log.

use tokio::runtime::{Builder, Runtime};

use crate::approval::ApprovalId;
use crate::cli::{Failure, approvals, exit};
use crate::client::{Client, ClientError};
use crate::config::{Config, Places};
use crate::daemon::Answer;
use crate::daemon::errand::{Errand, presented};
use crate::daemon::hosted::{HostErrand, Said};
use crate::gateway::{Gateway, Judged, Outcome};

pub(super) enum Gate {
    Daemon(Client),
    Here { gateway: Box<Gateway>, runtime: Runtime },
}

impl Gate {
    pub fn open() -> Result<Self, Failure> {
        let places = Places::from_env()?;
        if let Some(client) = Client::connect(&places).map_err(failure)? {
            return Ok(Gate::Daemon(client));
        }
        let gateway = Box::new(Gateway::open(Config::load(places)?)?);
        Ok(Gate::Here { gateway, runtime: Builder::new_current_thread().enable_all().build()? })
    }

    pub fn call(&self, errand: &Errand) -> Result<Outcome, Failure> {
        match self {
            Gate::Daemon(client) => Ok(client.call(errand).map_err(failure)?),
            Gate::Here { gateway, runtime } => {
                let caller = errand.caller(gateway, presented(gateway)?.as_ref(), None)?;
                let request = errand.request(&caller)?;
                Ok(runtime.block_on(gateway.call(&caller, request)))
            }
        }
    }

    pub fn judge(&self, errand: &Errand) -> Result<Judged, Failure> {
        match self {
            Gate::Daemon(client) => Ok(client.judge(errand).map_err(failure)?),
            Gate::Here { gateway, .. } => {
                let caller = errand.caller(gateway, presented(gateway)?.as_ref(), None)?;
                let request = errand.request(&caller)?;
                Ok(gateway.judge(&caller, request))
            }
        }
    }

    /// Tells of an event of an agent's own program.
    pub fn hosted(&self, errand: &HostErrand) -> Result<Said, Failure> {
        match self {
            Gate::Daemon(client) => Ok(client.hosted(errand).map_err(failure)?),
            Gate::Here { gateway, .. } => Ok(errand.answer(gateway, presented(gateway)?.as_ref(), None)?),
        }
    }

    /// Answers an approval in the name of the person at the terminal.
    pub fn answer(&self, id: &ApprovalId, answer: &Answer) -> Result<(), Failure> {
        match self {
            Gate::Daemon(client) => Ok(client.answer(id, answer).map_err(failure)?),
            Gate::Here { gateway, .. } => {
                let by = approvals::approver(gateway)?;
                match answer {
                    Answer::Grant(reach) => gateway.grant_for(id, &by, *reach).map(drop)?,
                    Answer::Refuse(reason) => gateway.refuse(id, &by, reason.as_deref())?,
                }
                Ok(())
            }
        }
    }
}

fn failure(error: ClientError) -> Failure {
    let code = match &error {
        ClientError::Refused { forbidden: true, .. } | ClientError::Foreign(_) => exit::DENIED,
        ClientError::Absent | ClientError::Gone(_) | ClientError::Io(_) | ClientError::Unreadable(_) => exit::INTERNAL,
        ClientError::Refused { .. }
        | ClientError::Credential(_)
        | ClientError::State(_)
        | ClientError::Token
        | ClientError::Unreachable { .. } => exit::USAGE,
    };
    Failure { message: error.to_string(), code }
}
