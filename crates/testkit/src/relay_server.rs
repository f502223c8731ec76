//! A stock-shaped relay server in the hands of a test.
//!
//! It lets workers in or closes their connections as the stock server does, and tells the test what its
//! client would have got. Its JSON is written out literally, and it shares no code with the house.

use std::{
    net::SocketAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::wait::within;

/// How many wrong secrets shut everybody out, and for how long.
const FAILURES: u32 = 3;
const COOL_DOWN: Duration = Duration::from_millis(250);

/// A server on a port of its own. It lets workers in only while a test waits for one.
#[derive(Debug)]
pub struct RelayServer {
    listener: TcpListener,
    /// Names and secrets.
    providers: Vec<(&'static str, &'static str)>,
    admission: Mutex<Admission>,
}

#[derive(Debug, Default)]
struct Admission {
    failures: u32,
    shut_until: Option<Instant>,
    /// How many more are turned away, whatever the time.
    turned_away: u32,
    reasons: Vec<&'static str>,
}

#[derive(Debug)]
pub struct RelayLink {
    socket: WebSocketStream<TcpStream>,
    pub provider: String,
    pub register: Value,
    requests: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayAnswer {
    pub status: u64,
    pub content_type: String,
    pub body: String,
}

impl RelayServer {
    pub async fn start(providers: &[(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the server");
        Self { listener, providers: providers.to_vec(), admission: Mutex::default() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("its address")
    }

    /// Turns the next ones away, whatever their secret, as after too many wrong ones.
    pub fn turn_away(&self, workers: u32) {
        self.admission.lock().unwrap().turned_away = workers;
    }

    pub fn refusals(&self) -> Vec<&'static str> {
        self.admission.lock().unwrap().reasons.clone()
    }

    /// The next worker that is let in, registered and ready: it has sent its models once more, which
    /// is when a stock server hands out what is queued.
    pub async fn worker(&self) -> RelayLink {
        loop {
            let (socket, provider, refusal) = within("a worker", self.knock()).await;
            match refusal {
                Some(reason) => close(socket, CloseCode::Policy, reason).await,
                None => return RelayLink::register(socket, provider).await,
            }
        }
    }

    /// One connection, whether or not it is let in: a stock server upgrades them all.
    async fn knock(&self) -> (WebSocketStream<TcpStream>, String, Option<&'static str>) {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        let mut asked = None;
        #[expect(clippy::result_large_err, reason = "the callback's type is given")]
        let see = |request: &Request, response: Response| {
            let secret = request.headers().get("x-worker-secret").cloned();
            asked = Some((request.uri().query().unwrap_or_default().to_owned(), secret));
            Ok(response)
        };
        let socket = accept_hdr_async(stream, see).await.expect("an upgrade");
        let (query, secret) = asked.expect("a request");
        let query = form_urlencoded::parse(query.as_bytes());
        let provider = query.filter(|(name, _)| name == "provider").map(|(_, name)| name).next();
        let provider = provider.map_or_else(|| "local".to_owned(), |name| name.into_owned());
        let secret = secret.as_ref().and_then(|secret| secret.to_str().ok());
        let refusal = self.refusal(&provider, secret);
        (socket, provider, refusal)
    }

    fn refusal(&self, provider: &str, secret: Option<&str>) -> Option<&'static str> {
        let mut admission = self.admission.lock().unwrap();
        let now = Instant::now();
        let is_shut =
            admission.shut_until.is_some_and(|until| until > now) || admission.turned_away > 0;
        admission.turned_away = admission.turned_away.saturating_sub(1);
        let reason = if is_shut {
            Some("worker authentication temporarily rate limited")
        } else if self.providers.iter().any(|known| (known.0, Some(known.1)) == (provider, secret))
        {
            admission.failures = 0;
            None
        } else {
            admission.failures += 1;
            if admission.failures >= FAILURES {
                admission.failures = 0;
                admission.shut_until = Some(now + COOL_DOWN);
            }
            Some("worker authentication failed")
        };
        admission.reasons.extend(reason);
        reason
    }
}

impl RelayLink {
    async fn register(socket: WebSocketStream<TcpStream>, provider: String) -> Self {
        let mut link = Self { socket, provider, register: Value::Null, requests: 0 };
        let register = link.said().await;
        assert_eq!(register["type"], "register", "{register}");
        let version = register.get("protocol_version");
        assert!(version.is_none_or(|version| version == "2026-04-bridge-v1"), "{register}");
        link.say(&json!({
            "type": "register_ack", "worker_id": "worker-1", "models": register["models"],
            "protocol_version": version,
        }))
        .await;
        assert_eq!(link.said().await["type"], "models_update");
        link.register = register;
        link
    }

    /// The answer to a client that posts this body to `path`: a stream, if the body asks for one.
    pub async fn ask(&mut self, path: &str, body: &Value) -> RelayAnswer {
        self.requests += 1;
        let (id, streams) = (format!("request-{}", self.requests), body["stream"] == true);
        self.say(&json!({
            "type": "request", "request_id": id, "model": body["model"], "endpoint_path": path,
            "is_streaming": streams, "body": body.to_string(),
            "headers": {"content-type": "application/json"},
        }))
        .await;
        let mut chunks = String::new();
        loop {
            let said = self.said().await;
            match said["type"].as_str() {
                Some("response_chunk") => {
                    assert_eq!(said["request_id"], id, "a stock server closes the link at {said}");
                    chunks.push_str(said["chunk"].as_str().expect("text"));
                }
                Some("response_complete") if said["request_id"] == id => {
                    return answer(&said, Some(chunks).filter(|all| streams && !all.is_empty()));
                }
                Some("response_complete" | "pong" | "models_update") => {}
                _ => panic!("a stock server closes the link at {said}"),
            }
        }
    }

    async fn say(&mut self, message: &Value) {
        let sent = self.socket.send(Message::text(message.to_string()));
        within("sending to the worker", sent).await.expect("the worker is there");
    }

    async fn said(&mut self) -> Value {
        loop {
            let message = within("a message of the worker", self.socket.next()).await;
            match message.expect("the worker is there").expect("a message") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("a stock server closes the link at {other:?}"),
            }
        }
    }
}

/// Once a chunk has been passed on, the final status and everything with it is thrown away.
fn answer(complete: &Value, chunks: Option<String>) -> RelayAnswer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match chunks {
        Some(body) => RelayAnswer { status: 200, content_type: "text/event-stream".into(), body },
        None => RelayAnswer {
            status: complete["status_code"].as_u64().expect("a status"),
            content_type: text(&complete["headers"]["content-type"]),
            body: text(&complete["body"]),
        },
    }
}

/// As the stock server does: it neither reads what has come nor waits for an answer, so that the
/// connection is reset.
async fn close(mut socket: WebSocketStream<TcpStream>, code: CloseCode, reason: &'static str) {
    // Closing a connection with unread data resets it.
    within("the registration", socket.get_ref().readable()).await.expect("the worker is there");
    let goodbye = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // A worker that has left meanwhile needs no message.
    let _ = socket.send(goodbye).await;
}
