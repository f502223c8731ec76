//! A stream as tokio's reader and writer.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use fleet::stream::{Reason, WINDOW};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::end::{FellowStream, Over};

impl AsyncRead for FellowStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.poll_piece(cx)) {
                Ok(Some(piece)) => self.rest = piece,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(over) => return Poll::Ready(Err(over.into())),
            }
        }
        let taken = self.rest.len().min(into.remaining());
        into.put_slice(&self.rest[..taken]);
        self.rest.advance(taken);
        self.consumed(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FellowStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let some = &bytes[..bytes.len().min(WINDOW as usize)];
        let written = self.cell.poll_write(cx, &Bytes::copy_from_slice(some), false);
        written.map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(self.cell.poll_write(cx, &Bytes::new(), true));
        Poll::Ready(written.map(|_| ()).map_err(io::Error::from))
    }
}

impl From<Over> for io::Error {
    fn from(over: Over) -> Self {
        let kind = match over.reason {
            Reason::TimedOut | Reason::Silent => io::ErrorKind::TimedOut,
            Reason::Refused => io::ErrorKind::ConnectionRefused,
            _ => io::ErrorKind::ConnectionReset,
        };
        Self::new(kind, over)
    }
}
