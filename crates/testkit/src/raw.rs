//! A model server of raw bytes: the test writes exactly what the network brings.

use std::net::Ipv4Addr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

use crate::wait::DEADLINE;

#[derive(Debug)]
pub struct RawServer {
    listener: TcpListener,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

impl RawServer {
    pub async fn start() -> Self {
        Self::with_spare().0
    }

    /// A server, and a socket that keeps its port when the server is gone: it refuses until it
    /// is made a server itself.
    pub fn with_spare() -> (Self, TcpSocket) {
        let socket = || {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseport(true).unwrap();
            socket
        };
        let (first, spare) = (socket(), socket());
        first.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        spare.bind(first.local_addr().unwrap()).unwrap();
        (Self::on(first), spare)
    }

    /// A server on a socket that is bound.
    pub fn on(socket: TcpSocket) -> Self {
        let listener = socket.listen(128).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn accept(&self) -> RawConnection {
        let (stream, _) = timeout(DEADLINE, self.listener.accept()).await.unwrap().unwrap();
        stream.set_nodelay(true).unwrap();
        RawConnection { stream }
    }

    /// Takes one connection and one request on it.
    pub async fn request(&self) -> (RawConnection, RawRequest) {
        let mut connection = self.accept().await;
        let request = connection.request().await;
        (connection, request)
    }
}

#[derive(Debug)]
pub struct RawRequest {
    pub line: String,
    /// Lower-cased header lines.
    pub headers: Vec<String>,
    /// The body, as long as announced.
    pub body: Vec<u8>,
}

#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
}

impl RawConnection {
    pub async fn request(&mut self) -> RawRequest {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(DEADLINE, self.stream.read_u8()).await.unwrap().unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<_> = lines.map(str::to_lowercase).collect();
        let length = headers.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        timeout(DEADLINE, self.stream.read_exact(&mut body)).await.unwrap().unwrap();
        RawRequest { line, headers, body }
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Writes `bytes` bytes, or as many as the other end takes.
    pub async fn flood(&mut self, bytes: usize) {
        // The other end may close in the middle.
        let _ = self.stream.write_all(&vec![b' '; bytes]).await;
    }

    /// Answers with JSON; `extra` are further header lines.
    pub async fn json(&mut self, status: &str, extra: &str, body: &str) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{extra}content-length: \
             {length}\r\n\r\n{body}"
        ))
        .await;
    }

    pub async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A reset is a close as well.
        let _ = timeout(DEADLINE, self.stream.read_to_end(&mut rest)).await.unwrap();
    }
}
