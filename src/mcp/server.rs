//! The protocol's side of a call.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode,
    Extensions, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::call::Origin;
use crate::daemon::{Daemon, Shares};
use crate::gateway::{Caller, Gateway, Outcome};
use crate::mcp::behind::{BUSY, Behind, Thin, Wanted};
use crate::mcp::http::Head;
use crate::mcp::wait::{self, Answer, Patience};
use crate::mcp::{answer, listing};

/// Calls of one stdio client that may run at once; more wait for their turn. Each holds up to three threads of the
/// runtime's blocking pool.
const TURNS: u32 = 64;
/// Calls that may be under way at once, running or waiting, of all agents and of one. More are told to come back.
const UNDER_WAY: usize = 1024;
const UNDER_WAY_OF_ONE: usize = 512;
/// How long a client may keep the list of tools. Policies can change at any time, and a tool that is gone is only refused.
const LIST_TTL_MS: u64 = 60_000;

const INSTRUCTIONS: &str = "Every call passes a security gateway. A result that begins with DENIED names the rule and what \
    to do instead; do that, and do not try to get around it. A result that begins with PENDING waits for a person: tell \
    the user its approval id, and make the same call again with the same arguments once it is granted.";

/// An MCP server over the gateway. Clones share its limits.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    who: Who,
}

struct Shared {
    patience: Patience,
    /// For all but the daemon's calls, to which the daemon gives turns.
    turns: Arc<Semaphore>,
    under_way: Shares,
}

/// On whose behalf the calls come in.
#[derive(Clone)]
enum Who {
    One(Behind),
    /// Each HTTP request brings the identity that authentication found.
    Authenticated(Arc<Daemon>),
}

impl Server {
    /// A server whose client is this caller.
    pub fn of(gateway: Arc<Gateway>, caller: Caller, patience: Patience) -> Self {
        let caller = Arc::new(Caller { origin: Origin::Mcp, ..caller });
        Self::new(Who::One(Behind::Here(gateway, caller)), patience)
    }

    /// A server whose client is the caller of a thin client, as over stdio.
    pub fn thin(thin: Arc<Thin>, patience: Patience) -> Self {
        Self::new(Who::One(Behind::Thin(thin)), patience)
    }

    /// A server whose requests are authenticated one by one; see [`crate::mcp::http::routes`].
    pub(super) fn authenticated(daemon: Arc<Daemon>, patience: Patience) -> Self {
        Self::new(Who::Authenticated(daemon), patience)
    }

    fn new(who: Who, patience: Patience) -> Self {
        let turns = Arc::new(Semaphore::new(TURNS as usize));
        let shared = Shared { patience, turns, under_way: Shares::new(UNDER_WAY, UNDER_WAY_OF_ONE) };
        Server { shared: Arc::new(shared), who }
    }

    /// Waits until no call of a stdio client runs any more, so that the end of each is on record.
    pub(super) async fn idle(&self) {
        let _ = self.shared.turns.acquire_many(TURNS).await;
    }

    /// Where a request goes, and how long its calls may wait.
    fn behind(&self, extensions: &Extensions) -> Result<(Behind, Patience), ErrorData> {
        let patience = self.shared.patience;
        match &self.who {
            Who::One(behind) => Ok((behind.clone(), patience)),
            Who::Authenticated(daemon) => {
                let Head { agent, session, wait } = Head::of(extensions)?;
                // Agents whose configuration names no place work in the daemon's.
                let caller = daemon.gateway().caller_from(Some(&agent), &session, None, daemon.workspace());
                let caller = caller.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                // A workspace that nobody chose is the daemon's own, and calls stay in it.
                let caller = Arc::new(Caller { origin: Origin::Mcp, bound: true, ..caller });
                Ok((Behind::Daemon(Arc::clone(daemon), caller), wait.map_or(patience, Patience::of)))
            }
        }
    }

    /// Makes a call and waits, within the client's patience, for a person where it asks.
    async fn answer(
        &self,
        tool: String,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let (behind, patience) = self.behind(&context.extensions)?;
        let Some(_under_way) = self.shared.under_way.try_take(behind.agent()) else {
            let message = "too many calls are under way; make this one again when some have ended";
            return Err(ErrorData::new(BUSY, message, None));
        };
        let mut since = None;
        loop {
            let turn = self.turn(context).await?;
            let caller_id = context.id.to_string();
            let wanted = Wanted { tool: tool.clone(), arguments: arguments.clone(), caller_id, turn };
            let cancel = context.ct.clone();
            let asks = match behind.call(wanted, async move { cancel.cancelled().await }).await? {
                Outcome::Done(done) => return Ok(answer::done(&done)),
                Outcome::Denied(judged) => return Ok(answer::denied(&judged)),
                Outcome::Asks(asks) => asks,
            };
            let since = *since.get_or_insert_with(Instant::now);
            match wait::for_answer(&behind, &asks.pending, context, patience, since).await {
                Answer::Granted => {}
                Answer::Refused(reason) => return Ok(answer::refused(&asks, reason.as_deref())),
                Answer::None => return Ok(answer::pending(&asks)),
            }
        }
    }

    /// Waits for a turn where the daemon does not give it, as long as the client waits.
    async fn turn(&self, context: &RequestContext<RoleServer>) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        if matches!(self.who, Who::Authenticated(_)) {
            return Ok(None);
        }
        let turn = tokio::select! {
            turn = Arc::clone(&self.shared.turns).acquire_owned() => turn.ok(),
            () = context.ct.cancelled() => None,
        };
        turn.map(Some)
            .ok_or_else(|| ErrorData::invalid_request("the request was cancelled before the call began", None))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("portcullis", env!("CARGO_PKG_VERSION"));
        info.with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if params.is_some_and(|params| params.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list has one page: leave `cursor` out", None));
        }
        let (behind, _) = self.behind(&context.extensions)?;
        let offered = behind.offers().await?;
        let mut list = ListToolsResult::with_all_items(listing::of(&offered));
        list.ttl_ms = Some(LIST_TTL_MS);
        // What is shown depends on who asks.
        list.cache_scope = Some(CacheScope::Private);
        Ok(list)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = params.arguments.map_or_else(|| json!({}), Value::Object);
        Ok(self.answer(params.name.into_owned(), arguments, &context).await?.into())
    }

    /// A `tools/call` whose parameters have not the protocol's types lands here. Where it names a tool it is a call like
    /// any other, and the gateway refuses it on record.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None));
        }
        let tool = params.as_ref().and_then(|p| p.get("name")).and_then(Value::as_str).map(str::to_owned);
        let Some(tool) = tool else {
            return Err(ErrorData::invalid_params("`name` must be the name of a tool", None));
        };
        let arguments = params.as_ref().and_then(|p| p.get("arguments")).cloned().unwrap_or_else(|| json!({}));
        let result = serde_json::to_value(self.answer(tool, arguments, &context).await?);
        Ok(CustomResult::new(result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?))
    }
}
