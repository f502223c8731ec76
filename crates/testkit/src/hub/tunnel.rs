//! A participant's WebSocket.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::mpsc};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Error, Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

use super::{HubRequest, Shared};
use crate::{sockets::close, wait::within};

/// Frames that are kept until the test takes them.
const MAX_FRAMES: usize = 100_000;

#[derive(Debug)]
pub(super) enum Order {
    Send(Message),
    Close(u16, &'static str),
    Vanish,
    /// Send this request; frames about it go to this channel.
    Ask(String, Value, mpsc::Sender<Value>),
}

pub(super) type Orders = mpsc::Sender<Order>;

#[derive(Debug)]
pub struct HubTunnel {
    pub participant: String,
    orders: Orders,
    said: mpsc::Receiver<Value>,
}

impl HubTunnel {
    /// Sends a request for a chat, in the form of stock hubs.
    pub async fn ask(&self, id: &str, body: &Value, stream: bool) {
        self.say(&chat(id, body, stream)).await;
    }

    pub async fn ask_at(&self, path: &str, id: &str, body: &Value, stream: bool) {
        let mut request = chat(id, body, stream);
        request["path"] = json!(path);
        self.say(&request).await;
    }

    pub async fn say(&self, message: &Value) {
        self.text(&message.to_string()).await;
    }

    pub async fn text(&self, text: &str) {
        self.order(Order::Send(Message::text(text))).await;
    }

    pub async fn binary(&self, bytes: &'static [u8]) {
        self.order(Order::Send(Message::binary(bytes))).await;
    }

    pub async fn close(&self, code: u16, reason: &'static str) {
        self.order(Order::Close(code, reason)).await;
    }

    /// Ends the connection without a word.
    pub async fn vanish(&self) {
        self.order(Order::Vanish).await;
    }

    /// The next frame that the participant sends about a request of the test; `{"closed": code}` when
    /// it has closed the tunnel.
    pub async fn said(&mut self) -> Value {
        within("a frame of the participant", self.said.recv()).await.expect("the tunnel is there")
    }

    /// The next frame, which must be a `tunnel.response.` of this kind about this request.
    pub async fn response(&mut self, kind: &str, id: &str) -> Value {
        let said = self.said().await;
        assert_eq!(said["type"], format!("tunnel.response.{kind}"), "{said}");
        assert_eq!(said["requestId"], id, "{said}");
        said
    }

    /// The text of the next frame, which must be a chunk about this request.
    pub async fn bytes(&mut self, id: &str) -> String {
        let chunk = self.response("chunk", id).await;
        String::from_utf8(decoded(&chunk)).expect("text")
    }

    /// A whole answer to this request, which must be the only one that is answered: its status and
    /// its bytes.
    pub async fn answer(&mut self, id: &str) -> (u64, String) {
        let start = self.response("start", id).await;
        let mut bytes = Vec::new();
        loop {
            let said = self.said().await;
            assert_eq!(said["requestId"], id, "{said}");
            match said["type"].as_str() {
                Some("tunnel.response.chunk") => bytes.extend(decoded(&said)),
                Some("tunnel.response.end") => break,
                _ => panic!("{said} in an answer"),
            }
        }
        let status = start["status"].as_u64().expect("a status");
        (status, String::from_utf8(bytes).expect("text"))
    }

    /// How the participant closed the tunnel: with this code, or 0 for none.
    pub async fn closed(&mut self) -> u64 {
        loop {
            if let Some(code) = self.said().await["closed"].as_u64() {
                return code;
            }
        }
    }

    async fn order(&self, order: Order) {
        self.orders.send(order).await.expect("the tunnel is there");
    }
}

pub(super) fn chat(id: &str, body: &Value, stream: bool) -> Value {
    json!({
        "type": "tunnel.request", "requestId": id, "operation": "chat.completions.create",
        "method": "POST", "path": "/v1/chat/completions",
        "headers": {"Content-Type": "application/json"}, "body": body, "stream": stream,
    })
}

pub(super) fn decoded(chunk: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(chunk["chunk"].as_str().expect("a chunk")).expect("base64")
}

/// Tunnels are told apart by numbers.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

pub(super) async fn accept(stream: TcpStream, shared: &Arc<Shared>) {
    let mut place = None;
    #[expect(clippy::result_large_err, reason = "the library's callback")]
    let look = |request: &Request, response: Response| match redeem(request, shared) {
        Some(found) => {
            place = Some(found);
            Ok(response)
        }
        None => {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = 401.try_into().expect("a status");
            Err(refusal)
        }
    };
    // Connections without a token do not concern the test.
    let Ok(mut socket) = accept_hdr_async(stream, look).await else { return };
    let (code, id) = place.expect("a place that was found");
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (orders, ordered) = mpsc::channel(MAX_FRAMES);
    let (heard, said) = mpsc::channel(MAX_FRAMES);
    let before = {
        let mut state = shared.state();
        state.rooms.get_mut(&code).and_then(|room| room.opened(&id, number, orders.clone()))
    };
    if let Some(before) = before {
        // A tunnel that is gone needs no close.
        let _gone = before.send(Order::Close(1000, "superseded")).await;
    }
    let tunnel = HubTunnel { participant: id.clone(), orders, said };
    shared.opened.send(tunnel).await.expect("the test is there");
    serve(&mut socket, ordered, &heard).await;
    if let Some(room) = shared.state().rooms.get_mut(&code) {
        room.closed(&id, number);
    }
}

/// The room and the participant of a tunnel that is asked for, if its token opens it.
fn redeem(request: &Request, shared: &Shared) -> Option<(String, String)> {
    let mut state = shared.state();
    let line = format!("GET {}", request.uri());
    state.heard.push(HubRequest { line, authorization: None, body: Value::Null });
    let path: Vec<_> = request.uri().path().split('/').collect();
    let ["", "v1", "rooms", code, "participants", id, "tunnel"] = path[..] else { return None };
    let token = request.uri().query()?.strip_prefix("token=")?.split('&').next()?;
    let opens = state.rooms.get_mut(code)?.redeem(id, token);
    opens.then(|| (code.to_owned(), id.to_owned()))
}

async fn serve(
    socket: &mut WebSocketStream<TcpStream>,
    mut ordered: mpsc::Receiver<Order>,
    heard: &mpsc::Sender<Value>,
) {
    let mut answers: HashMap<String, mpsc::Sender<Value>> = HashMap::new();
    loop {
        tokio::select! {
            Some(order) = ordered.recv() => match order {
                Order::Send(message) => drop(socket.send(message).await),
                Order::Ask(id, request, answer) => {
                    answers.insert(id, answer);
                    drop(socket.send(Message::text(request.to_string())).await);
                }
                Order::Close(code, reason) => close(socket, code, reason).await,
                Order::Vanish => {
                    // A reset, so that nothing waits for a goodbye.
                    return socket.get_ref().set_zero_linger().expect("a TCP connection");
                }
            },
            message = socket.next() => {
                let Some(said) = said(message) else { continue };
                let over = said.get("closed").is_some();
                if said["type"] == "tunnel.ping" {
                    let pong = json!({"type": "tunnel.pong", "timestamp": said["timestamp"]});
                    drop(socket.send(Message::text(pong.to_string())).await);
                    continue;
                }
                let answer = said["requestId"].as_str().and_then(|id| answers.get(id));
                // The client may have gone, and a test may read no more.
                let _unheard = answer.unwrap_or(heard).send(said).await;
                if over {
                    // The goodbye is answered by reading on.
                    while let Some(Ok(_)) = socket.next().await {}
                    return;
                }
            }
        }
    }
}

fn said(message: Option<Result<Message, Error>>) -> Option<Value> {
    Some(match message {
        Some(Ok(Message::Text(text))) => {
            serde_json::from_str(text.as_str()).unwrap_or_else(|_| json!({"noJson": text.as_str()}))
        }
        Some(Ok(Message::Binary(bytes))) => json!({"binary": bytes.len()}),
        Some(Ok(Message::Close(frame))) => {
            json!({"closed": frame.map_or(0, |frame| u16::from(frame.code))})
        }
        Some(Ok(_)) => return None,
        Some(Err(_)) | None => json!({"closed": 0}),
    })
}
