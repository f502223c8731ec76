//! One request and its answer on one connection.

use std::{
    io,
    mem::{self, MaybeUninit},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use wire::{Advice, advised};

use super::{AnswerReader, Fed, Head, Malformed, Request, pool::Pool};

/// The most bytes of one read. The buffer is on the stack, so that a waiting connection holds none.
const READ: usize = 32 * 1024;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes that came are not an answer.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Broken {
    /// The failure in words, and what to do about it.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Io(error) => advised(error),
            Self::Malformed(no_http @ Malformed::NoHttp(_)) => {
                format!("{no_http}: {}", Advice::NoHttp)
            }
            Self::Malformed(malformed) => malformed.to_string(),
        }
    }
}

/// A request that is written, and the answer that is read.
#[derive(Debug)]
pub(super) struct Exchange {
    stream: TcpStream,
    /// `None` once it is written and answered.
    request: Option<Request>,
    /// Whether the backend accepts no more of the request.
    is_refused: bool,
    reader: AnswerReader,
    /// Whether any byte has come.
    is_heard: bool,
}

impl Exchange {
    pub(super) fn new(stream: TcpStream, request: Request) -> Self {
        let reader = AnswerReader::new(request.to_head());
        Self { stream, request: Some(request), is_refused: false, reader, is_heard: false }
    }

    /// The request, if nothing has come back.
    pub(super) fn unheard(self) -> Option<Request> {
        self.request.filter(|_| !self.is_heard)
    }

    /// Writes the request, and waits for the head of the answer. Returns the head, and the part of
    /// the body that came with it.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Head, Bytes), Broken>> {
        self.write(cx);
        loop {
            let (head, first) = ready!(self.poll_read(cx))?;
            let Some(head) = head else { continue };
            self.request = self.request.take().filter(|request| !request.is_written());
            return Poll::Ready(Ok((head, first)));
        }
    }

    /// The next bytes of the body, never empty; `None` at its end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        self.write(cx);
        while !self.reader.is_over() {
            let (_, piece) = ready!(self.poll_read(cx))?;
            if !piece.is_empty() {
                return Poll::Ready(Ok(Some(piece)));
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Writes as much of the request as the connection takes now.
    fn write(&mut self, cx: &mut Context<'_>) {
        let Some(request) = self.request.as_mut().filter(|_| !self.is_refused) else { return };
        while !request.is_written() {
            let mut slices = Request::no_slices();
            let filled = request.next(&mut slices);
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write_vectored(cx, &slices[..filled]) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => request.advance(bytes),
                Poll::Pending => return,
                // Not an error yet: the backend may have answered before it closed, which the next
                // read shows.
                Poll::Ready(_) => {
                    self.is_refused = true;
                    return;
                }
            }
        }
    }

    /// Reads once from the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Option<Head>, Bytes), Broken>> {
        let mut space = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled_mut();
        if bytes.is_empty() {
            self.reader.close()?;
            return Poll::Ready(Ok((None, Bytes::new())));
        }
        self.is_heard = true;
        let Fed { head, content } = self.reader.feed(bytes)?;
        Poll::Ready(Ok((head, Bytes::copy_from_slice(&bytes[content]))))
    }

    /// The connection, if another request may be sent on it.
    fn into_idle(self) -> Option<TcpStream> {
        (self.request.is_none() && self.reader.may_go_on()).then_some(self.stream)
    }
}

/// The body of an answer. Dropping it before its end closes the connection.
#[derive(Debug)]
pub(crate) struct Body {
    /// The bytes that came with the head.
    first: Bytes,
    exchange: Option<Box<Exchange>>,
    pool: Arc<Pool>,
}

impl Body {
    pub(super) fn new(first: Bytes, exchange: Exchange, pool: Arc<Pool>) -> Self {
        let mut body = Self { first, exchange: Some(Box::new(exchange)), pool };
        body.give_back();
        body
    }

    /// The next bytes, never empty; `None` at the end. Nothing comes after an error.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(mem::take(&mut self.first))));
        }
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
        let next = ready!(exchange.poll_piece(cx));
        match &next {
            Ok(_) => self.give_back(),
            Err(_) => self.exchange = None,
        }
        Poll::Ready(next.transpose())
    }

    /// If the answer is complete, keeps its connection for the next request.
    fn give_back(&mut self) {
        if let Some(over) = self.exchange.take_if(|exchange| exchange.reader.is_over())
            && let Some(idle) = over.into_idle()
        {
            self.pool.put(idle);
        }
    }
}
