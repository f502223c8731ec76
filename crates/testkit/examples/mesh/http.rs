//! Requests that never panic and have no deadline of their own: how long an answer may take is what
//! is tested.

use std::{io, net::SocketAddr};

use bytes::Bytes;
use serde_json::Value;
use testkit::{
    Request,
    http1::{Framing, Reader},
};
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// An answer whose body is still to be read. Dropping it hangs up.
pub(crate) struct Answer {
    pub(crate) status: u16,
    framing: Framing,
    reader: Reader<OwnedReadHalf>,
    _writer: OwnedWriteHalf,
}

/// Sends a request and reads the head of the answer.
pub(crate) async fn send(to: SocketAddr, request: &Request) -> io::Result<Answer> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (read, mut writer) = stream.into_split();
    writer.write_all(&request.bytes()).await?;
    let mut reader = Reader::new(read);
    let head = reader.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.words()[1].parse().map_err(io::Error::other)?;
    let framing = Framing::of_response(&head);
    Ok(Answer { status, framing, reader, _writer: writer })
}

/// Sends a request and reads the whole answer as JSON; null when it is not JSON.
pub(crate) async fn json(to: SocketAddr, request: &Request) -> io::Result<(u16, Value)> {
    let answer = send(to, request).await?;
    let status = answer.status;
    let (text, ended) = answer.text().await;
    ended?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

impl Answer {
    /// The next piece of the body; nothing at its end.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        self.reader.piece(&mut self.framing).await
    }

    /// The rest of the body, as far as it came, and whether that is its end.
    pub(crate) async fn text(mut self) -> (String, io::Result<()>) {
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
}
