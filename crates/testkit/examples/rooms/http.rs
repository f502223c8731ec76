//! Requests that never panic and have no deadline of their own: how long an answer may take is what
//! is tested.

use std::{io, net::SocketAddr};

use bytes::Bytes;
use serde_json::Value;
use testkit::{
    Request,
    http1::{Framing, Head, Reader},
};
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpSocket,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// The receive buffer of a reader that is slow, in bytes: the server is to feel it.
const SMALL: u32 = 2048;

/// An answer whose body is still to be read. Dropping it hangs up.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: Head,
    framing: Framing,
    reader: Reader<OwnedReadHalf>,
    _writer: OwnedWriteHalf,
}

/// Sends a request and reads the head of the answer.
pub(crate) async fn send(to: SocketAddr, request: &Request) -> io::Result<Answer> {
    start(TcpSocket::new_v4()?, to, request).await
}

/// The same from a machine that takes in little at a time.
pub(crate) async fn send_slowly(to: SocketAddr, request: &Request) -> io::Result<Answer> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(SMALL)?;
    start(socket, to, request).await
}

async fn start(socket: TcpSocket, to: SocketAddr, request: &Request) -> io::Result<Answer> {
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    let (read, mut writer) = stream.into_split();
    writer.write_all(&request.bytes()).await?;
    let mut reader = Reader::new(read);
    let head = reader.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.words()[1].parse().map_err(io::Error::other)?;
    let framing = Framing::of_response(&head);
    Ok(Answer { status, head, framing, reader, _writer: writer })
}

/// Sends a request and reads the whole answer as JSON; null when it is not JSON.
pub(crate) async fn json(to: SocketAddr, request: &Request) -> io::Result<(u16, Value)> {
    let answer = send(to, request).await?;
    let status = answer.status;
    let text = answer.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

impl Answer {
    /// The next piece of the body; nothing at its end.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        self.reader.piece(&mut self.framing).await
    }

    /// The rest of the body.
    pub(crate) async fn text(mut self) -> io::Result<String> {
        let body = self.reader.rest(self.framing).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Whether it is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}
