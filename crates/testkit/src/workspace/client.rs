//! One connection to a workspace, and the messages that a client hears on it.

use std::{collections::VecDeque, net::SocketAddr};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        http::{HeaderMap, HeaderName, HeaderValue},
        protocol::{
            WebSocketConfig,
            frame::{
                Frame,
                coding::{Data, OpCode},
            },
        },
    },
};

use crate::wait::within;

/// No message of a server is longer.
const MAX_MESSAGE: usize = 48 * 1024 * 1024;

/// How long the part of a binary frame before its text is.
const HEADER: usize = 25;

#[derive(Debug, Clone)]
#[must_use]
pub struct Knock {
    address: SocketAddr,
    headers: HeaderMap,
    receive_buffer: Option<u32>,
}

impl Knock {
    /// At a server's `/ws`.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, headers: HeaderMap::new(), receive_buffer: None }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header value");
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sets the size of the receive buffer: with a small one the client falls behind soon.
    pub fn receive_buffer(mut self, bytes: u32) -> Self {
        self.receive_buffer = Some(bytes);
        self
    }

    /// Connects and upgrades.
    ///
    /// # Errors
    /// With the status of an answer that is no upgrade; with 0 when there was none.
    pub async fn open(self) -> Result<WorkspaceClient, u16> {
        within("a connection", self.try_open()).await
    }

    async fn try_open(self) -> Result<WorkspaceClient, u16> {
        let socket = TcpSocket::new_v4().expect("a socket");
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes).expect("a size that may be");
        }
        let stream = socket.connect(self.address).await.map_err(|_| 0_u16)?;
        stream.set_nodelay(true).expect("a TCP connection");
        let url = format!("ws://{}/ws", self.address);
        let mut request = url.into_client_request().expect("a URL");
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(WorkspaceClient { socket, kept: VecDeque::new() }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(_) => Err(0),
        }
    }
}

/// A connection on which a test says whatever it likes. Dropping it ends it without a word.
#[derive(Debug)]
pub struct WorkspaceClient {
    socket: WebSocketStream<TcpStream>,
    /// The messages that came while the test waited for another one.
    kept: VecDeque<ServerMessage>,
}

impl WorkspaceClient {
    pub async fn open(address: SocketAddr) -> Self {
        Knock::at(address).open().await.expect("the server takes clients")
    }

    /// Connects and authenticates with this token, which the server accepts.
    pub async fn connect(address: SocketAddr, token: &str) -> Self {
        Self::open(address).await.admitted(token).await
    }

    /// Authenticates with this token, which the server accepts.
    pub async fn admitted(mut self, token: &str) -> Self {
        let result = self.auth(token).await;
        assert_eq!(result["success"], true, "{result}");
        self
    }

    /// Authenticates with this token, and returns the server's answer.
    pub async fn auth(&mut self, token: &str) -> Value {
        self.ask(json!({"type": "auth", "token": token}), "auth_result").await
    }

    /// Says JSON. That the server has gone shows in what is heard.
    pub async fn say(&mut self, message: Value) {
        self.say_text(&message.to_string()).await;
    }

    pub async fn say_text(&mut self, text: &str) {
        let said = within("saying it", self.socket.send(Message::text(text))).await;
        drop(said);
    }

    /// Sends this many bytes of a message, and never finishes it.
    pub async fn begin(&mut self, bytes: usize) {
        let fragment = Frame::message(vec![b'x'; bytes], OpCode::Data(Data::Text), false);
        let said = within("saying it", self.socket.send(Message::Frame(fragment))).await;
        drop(said);
    }

    /// The next message, in order; nothing when the connection has ended.
    pub async fn next(&mut self) -> Option<ServerMessage> {
        match self.kept.pop_front() {
            Some(heard) => Some(heard),
            None => within("something to hear", self.read()).await,
        }
    }

    /// The same without a deadline.
    pub async fn next_ever(&mut self) -> Option<ServerMessage> {
        match self.kept.pop_front() {
            Some(heard) => Some(heard),
            None => self.read().await,
        }
    }

    /// The first message of this `type`, which may have come already; what else comes is kept. An
    /// `error` that is not asked for fails the test.
    #[track_caller]
    pub fn hear(&mut self, kind: &str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        self.hear_at(kind, |_| true, caller)
    }

    /// The first message of this `type` that is as wished.
    #[track_caller]
    pub fn hear_where(
        &mut self,
        kind: &str,
        wished: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        self.hear_at(kind, wished, caller)
    }

    #[track_caller]
    pub fn ask(&mut self, message: Value, kind: &str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            self.say(message).await;
            self.hear_at(kind, |_| true, caller).await
        }
    }

    /// Asks for what is refused by an `error`, and hears its words.
    #[track_caller]
    pub fn refused(&mut self, message: Value) -> impl Future<Output = String> {
        let asked = self.ask(message, "error");
        async move { asked.await["message"].as_str().expect("words").to_owned() }
    }

    /// All that the server has said by the time it answers a sign of life. Requests that are worked on
    /// beside the connection may be answered later.
    pub async fn so_far(&mut self) -> Vec<ServerMessage> {
        self.say(json!({"type": "keepalive"})).await;
        let mut heard: Vec<ServerMessage> = Vec::new();
        loop {
            let next = self.next().await.expect("the connection stays");
            if next.as_message("keepalive_ack").is_some() {
                return heard;
            }
            heard.push(next);
        }
    }

    /// Waits for the end of the connection; what was said until then.
    pub async fn ends(&mut self) -> Vec<ServerMessage> {
        let mut heard = Vec::new();
        while let Some(next) = self.next().await {
            heard.push(next);
        }
        heard
    }

    pub async fn close(mut self) {
        let closed = within("closing", self.socket.close(None)).await;
        drop(closed);
    }

    async fn hear_at(
        &mut self,
        kind: &str,
        wished: impl Fn(&Value) -> bool,
        caller: &std::panic::Location<'_>,
    ) -> Value {
        let is_wished = |heard: &ServerMessage| heard.as_message(kind).is_some_and(&wished);
        if let Some(at) = self.kept.iter().position(is_wished) {
            return message(self.kept.remove(at).expect("it was found"));
        }
        loop {
            let what = format!("{kind}, asked for at {caller},");
            let heard = within(&what, self.read()).await;
            let heard = heard.unwrap_or_else(|| panic!("{what} did not come: it ended"));
            if is_wished(&heard) {
                return message(heard);
            }
            if let Some(error) = heard.as_message("error").filter(|_| kind != "error") {
                panic!("{what} did not come: {error}");
            }
            self.kept.push_back(heard);
        }
    }

    async fn read(&mut self) -> Option<ServerMessage> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Text(text)) => return Some(ServerMessage::text(text.as_str())),
                Ok(Message::Binary(bytes)) => return Some(ServerMessage::binary(&bytes)),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

fn message(heard: ServerMessage) -> Value {
    match heard {
        ServerMessage::Message(message) => message,
        ServerMessage::Output(output) => panic!("{output:?} is no message"),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    Message(Value),
    Output(Output),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub session: String,
    pub seq: u64,
    pub text: String,
}

impl ServerMessage {
    fn text(text: &str) -> Self {
        Self::Message(serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }

    pub(super) fn binary(bytes: &[u8]) -> Self {
        assert!(bytes.len() >= HEADER && bytes[0] == 1, "no output frame: {bytes:?}");
        let hex = hex::encode(&bytes[1..17]);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        let seq = bytes[17..HEADER].iter().fold(0, |seq, byte| seq << 8 | u64::from(*byte));
        let text = std::str::from_utf8(&bytes[HEADER..]).expect("output is UTF-8").to_owned();
        Self::Output(Output { session: parts.join("-"), seq, text })
    }

    pub fn as_message(&self, kind: &str) -> Option<&Value> {
        match self {
            Self::Message(message) if message["type"] == kind => Some(message),
            _ => None,
        }
    }

    pub fn kind(&self) -> &str {
        match self {
            Self::Message(message) => message["type"].as_str().unwrap_or_default(),
            Self::Output(_) => "output",
        }
    }
}
