//! An HTTP client that sees bytes as they arrive and hangs up where a test wants.

use std::{io, net::SocketAddr};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    http1::{Framing, Head, Reader},
    wait::within,
};

/// A client of one server. Each request opens a connection of its own.
#[derive(Debug, Clone)]
#[must_use]
pub struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new() }
    }

    /// The same client, sending one more header with every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same client, with a token in `Authorization: Bearer`.
    pub fn with_token(self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    /// A request that can be changed before it is sent.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let mut headers = vec![("host".to_owned(), self.address.to_string())];
        headers.extend(self.headers.iter().cloned());
        let line = format!("{method} {path} HTTP/1.1");
        Request { address: self.address, line, headers, body: Bytes::new() }
    }

    /// A `POST` of JSON that can be changed before it is sent.
    pub fn post(&self, path: &str, body: &Value) -> Request {
        let request = self.request("POST", path).header("content-type", "application/json");
        request.body(body.to_string())
    }

    pub async fn post_json(&self, path: &str, body: &Value) -> Response {
        self.post(path, body).send().await
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request("GET", path).send().await
    }

    /// Opens a connection without sending anything.
    pub async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }
}

#[derive(Debug, Clone)]
#[must_use]
pub struct Request {
    address: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Request {
    /// Adds a header; `host` replaces the one there is.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if name.eq_ignore_ascii_case("host") {
            self.headers.retain(|(known, _)| known != "host");
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body; its length is sent with it.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub async fn send(self) -> Response {
        self.start().await.finish().await
    }

    pub async fn start(self) -> Streaming {
        self.open().await.answer().await
    }

    /// Sends it and reads nothing yet.
    pub async fn open(self) -> Connection {
        let mut connection = Connection::open(self.address).await;
        connection.write(&self.bytes()).await;
        connection
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let framed = self.headers.iter().any(|(name, _)| {
            ["content-length", "transfer-encoding"].contains(&name.to_lowercase().as_str())
        });
        if !framed && (!self.body.is_empty() || self.line.starts_with("POST")) {
            text.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        [text.as_bytes(), &self.body].concat()
    }
}

/// One connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    reader: Reader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        Self::try_open(address).await.expect("the server takes connections")
    }

    /// Connects, unless nobody listens.
    pub async fn try_open(address: SocketAddr) -> io::Result<Self> {
        let stream = within("connecting", TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Self { reader: Reader::new(reader), writer })
    }

    /// Writes bytes as they are. A server that has already closed is no failure.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _closed = within("writing a request", self.writer.write_all(bytes)).await;
    }

    pub async fn send(&mut self, request: &Request) {
        self.write(&request.bytes()).await;
    }

    /// Says that nothing more will be written, while still reading.
    pub async fn half_close(&mut self) {
        let _closed = self.writer.shutdown().await;
    }

    /// Closes with a reset rather than in order.
    pub fn reset(self) {
        let _unset = self.writer.as_ref().set_zero_linger();
    }

    pub async fn answer(self) -> Streaming {
        self.try_answer().await.expect("an answer")
    }

    pub async fn try_answer(mut self) -> io::Result<Streaming> {
        let head = within("the head of an answer", self.reader.head()).await?;
        let head = head.ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.words()[1].parse().map_err(io::Error::other)?;
        let framing = Framing::of_response(&head);
        Ok(Streaming { status, head, framing, connection: self })
    }

    pub async fn closed(&mut self) {
        within("the server closing the connection", self.reader.closed()).await;
    }
}

/// An answer whose body is still coming. Dropping it hangs up.
#[derive(Debug)]
pub struct Streaming {
    pub status: u16,
    pub head: Head,
    framing: Framing,
    connection: Connection,
}

impl Streaming {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The next piece of the body, as the server wrote it; nothing at its end.
    pub async fn next_chunk(&mut self) -> Option<Bytes> {
        self.try_chunk().await.expect("a body that is not cut")
    }

    pub async fn try_chunk(&mut self) -> io::Result<Option<Bytes>> {
        let piece = self.connection.reader.piece(&mut self.framing);
        within("the next piece of an answer", piece).await
    }

    /// Reads until as many bytes as `text` has are there, and compares them.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let mut got = Vec::new();
            while got.len() < text.len() {
                let chunk = self.next_chunk().await;
                let Some(chunk) = chunk else { break };
                got.extend_from_slice(&chunk);
            }
            let got = String::from_utf8_lossy(&got);
            assert_eq!(got, text, "at {caller}");
        }
    }

    pub async fn finish(self) -> Response {
        self.try_finish().await.expect("a body that is not cut")
    }

    pub async fn try_finish(mut self) -> io::Result<Response> {
        let rest = self.connection.reader.rest(self.framing);
        let body = within("the end of an answer", rest).await?;
        Ok(Response { status: self.status, head: self.head, body })
    }

    /// Reads the rest of the body, and returns the trailers after it, each in a line.
    pub async fn trailers(mut self) -> Vec<String> {
        let rest = self.connection.reader.rest(self.framing);
        within("the end of an answer", rest).await.expect("a body that is not cut");
        self.connection.reader.trailers().to_vec()
    }

    /// Reads the rest of the body and gives the connection back for the next request.
    pub async fn finish_and_keep(mut self) -> (Response, Connection) {
        let rest = self.connection.reader.rest(self.framing);
        let body = within("the end of an answer", rest).await.expect("a body that is not cut");
        (Response { status: self.status, head: self.head, body }, self.connection)
    }

    /// Closes with a reset rather than in order.
    pub fn reset(self) {
        self.connection.reset();
    }
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub head: Head,
    pub body: Bytes,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}
