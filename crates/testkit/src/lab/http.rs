//! Requests that never panic and have no deadline of their own: how long an answer may take is what is tested.

use std::{io, net::SocketAddr};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpSocket,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    Request,
    http1::{Framing, Head, Reader},
};

/// The receive buffer of a slow reader, in bytes: so small that the server feels it.
const SMALL: u32 = 2048;

/// An answer whose head has come. Dropping it hangs up.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Head,
    framing: Framing,
    reader: Reader<OwnedReadHalf>,
    _writer: OwnedWriteHalf,
}

/// Sends a request and reads the head of the answer.
pub async fn send(to: SocketAddr, request: &Request) -> io::Result<Answer> {
    start(TcpSocket::new_v4()?, to, request).await
}

/// The same with a small receive buffer.
pub async fn send_slowly(to: SocketAddr, request: &Request) -> io::Result<Answer> {
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
pub async fn json(to: SocketAddr, request: &Request) -> io::Result<(u16, Value)> {
    let answer = send(to, request).await?;
    let status = answer.status;
    let text = answer.whole().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

impl Answer {
    pub async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        self.reader.piece(&mut self.framing).await
    }

    /// The rest of the body, as far as it came, and whether it came to its end.
    pub async fn text(mut self) -> (String, io::Result<()>) {
        let mut body = Vec::new();
        let ended = loop {
            match self.piece().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (String::from_utf8_lossy(&body).into_owned(), ended)
    }

    pub async fn whole(self) -> io::Result<String> {
        let (text, ended) = self.text().await;
        ended.map(|()| text)
    }

    pub fn is_stream(&self) -> bool {
        self.head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}
