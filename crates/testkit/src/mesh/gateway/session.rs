//! A relay session of a gateway.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{Event, FakeGateway, GatewayAnswer, GatewayFailure};
use crate::{
    mesh::{
        socket::{data, forwarded},
        wire::{uuid, wrapped},
    },
    wait::within,
};

/// How long a node has for the first chunk.
const FIRST: Duration = Duration::from_secs(8);

/// A relay session of a gateway with a node that is ready.
#[derive(Debug)]
pub(super) struct GatewaySession<'a> {
    pub(super) gateway: &'a FakeGateway,
    pub(super) node: String,
    pub(super) session: String,
    pub(super) events: mpsc::Receiver<Event>,
}

impl GatewaySession<'_> {
    /// Sends one request, as gateways do: streaming, with its usage.
    pub(super) async fn ask(&self, request: &Value) {
        let mut request = request.clone();
        request["stream"] = json!(true);
        request["stream_options"] = json!({"include_usage": true});
        let body = json!({"request": request, "requestID": uuid(), "streaming": true});
        let message = wrapped("inferenceRequest", &body).to_string();
        let (gateway, node) = (self.gateway, &self.node);
        gateway.say(&data(&gateway.id, node, &self.session, message.as_bytes())).await;
    }

    /// Kind and body of the next message that is understood; `None` when the session is over.
    pub(super) async fn hear(&mut self) -> Option<(String, Value)> {
        match within("a message of the node", self.events.recv()).await {
            Some(Event::Said(kind, body)) => Some((kind, body)),
            Some(Event::Ready) => panic!("ready twice"),
            Some(Event::Gone | Event::Closed) | None => None,
        }
    }

    pub(super) async fn answer(&mut self) -> Result<GatewayAnswer, GatewayFailure> {
        let mut chunks = Vec::new();
        let first = timeout(FIRST, self.hear()).await;
        let mut said = first.map_err(|_| GatewayFailure::NoFirstChunk)?;
        while let Some((kind, mut body)) = said {
            match kind.as_str() {
                "inferenceChunk" => chunks.push(body["chunk"].take()),
                "inferenceComplete" => return Ok(GatewayAnswer { chunks, complete: body }),
                "inferenceError" => {
                    return Err(GatewayFailure::Error { error: body, chunks: chunks.len() });
                }
                _ => {}
            }
            said = self.hear().await;
        }
        Err(GatewayFailure::Lost(chunks.len()))
    }

    pub(super) async fn close(self) {
        let close = forwarded("relayClose", &self.gateway.id, &self.node, &self.session);
        self.gateway.say(&close).await;
    }
}

impl Drop for GatewaySession<'_> {
    fn drop(&mut self) {
        self.gateway.shared.sessions().remove(&self.session);
    }
}
