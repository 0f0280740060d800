//! A server's tool as a tool of the registry.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use super::output;
use super::pool::{UpstreamError, Upstreams, Whom};
use crate::config::Upstream;
use crate::firewall::Cleared;
use crate::registry::{Definition, Foreign, Output, Tool, ToolError};

pub(super) struct UpstreamTool {
    pub definition: Definition,
    pub foreign: Arc<Foreign>,
    pub upstream: Arc<Upstream>,
    pub servers: Arc<Upstreams>,
}

impl UpstreamTool {
    async fn run(&self, cleared: Cleared) -> Result<Output, ToolError> {
        let call = cleared.call();
        let whom = Whom { agent: &call.principal.agent, plan: cleared.confinement() };
        let server = (self.foreign.server.as_str(), &*self.upstream);
        let tool = (self.foreign.original.as_str(), self.foreign.pin);
        let arguments = Value::Object(call.arguments.clone());
        match self.servers.call(&whom, server, tool, &arguments).await {
            Ok(result) => Ok(output::of(result)),
            Err(error @ UpstreamError::Unconfined(_)) => Err(ToolError::Setup(error.to_string())),
            Err(error) => Err(ToolError::Failed(error.to_string())),
        }
    }
}

impl Tool for UpstreamTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
        Box::pin(self.run(cleared))
    }
}
