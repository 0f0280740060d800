//! Results of servers behind the gateway, whole. The library's types drop what they do not know; here that is put back.
//!
//! Over stdio alone: over HTTP the library wants a handler of its own types.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ClientNotification, ClientRequest, CustomResult, ProtocolVersion, ServerConfig, ServerResult};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::mcp::Server;

/// What a request's result was before it got the library's types. The handler fills it in.
#[derive(Clone, Default)]
pub(super) struct Original(Arc<Mutex<Option<Value>>>);

impl Original {
    pub fn keep(&self, result: Value) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn take(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The server, with nothing lost.
#[derive(Clone)]
pub(super) struct Whole(pub Server);

impl Service<RoleServer> for Whole {
    async fn handle_request(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let original = Original::default();
        context.extensions.insert(original.clone());
        let result = Service::handle_request(&self.0, request, context).await?;
        let Some(original) = original.take() else { return Ok(result) };
        let Ok(mut typed) = serde_json::to_value(&result) else { return Ok(result) };
        restore(&mut typed, &original);
        Ok(ServerResult::CustomResult(CustomResult::new(typed)))
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}

/// Puts back what `original` has and `typed` has not. What both have stays as it is typed.
fn restore(typed: &mut Value, original: &Value) {
    match (typed, original) {
        (Value::Object(typed), Value::Object(original)) => {
            for (key, value) in original {
                match typed.get_mut(key) {
                    Some(known) => restore(known, value),
                    None => drop(typed.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(typed), Value::Array(original)) => {
            typed.iter_mut().zip(original).for_each(|(known, value)| restore(known, value));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_types_dropped_is_put_back_and_nothing_else_changes() {
        let mut typed = json!({ "content": [{ "type": "text", "text": "a" }, "note"], "_meta": { "portcullis": 1 } });
        let original = json!({
            "content": [{ "type": "text", "text": "b", "x": { "y": 1 } }],
            "_meta": { "portcullis": "forged", "own": 2 },
            "new": [],
        });
        restore(&mut typed, &original);
        assert_eq!(
            typed,
            json!({
                "content": [{ "type": "text", "text": "a", "x": { "y": 1 } }, "note"],
                "_meta": { "portcullis": 1, "own": 2 },
                "new": [],
            })
        );
    }
}
