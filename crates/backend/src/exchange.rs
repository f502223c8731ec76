//! Asks, answers and their bodies.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use base::error::chain;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::{
    demo::DemoBody,
    error::{BackendError, Phase},
    model_engines::Claim,
};

/// What to ask of a backend.
#[derive(Debug, Clone, Default)]
pub struct BackendRequest {
    /// Path and query below the backend's base URL; begins with `/`.
    pub path_and_query: String,
    /// The model that it is for, by the backend's name for it, where its sender knows that; else empty.
    pub model: String,
    /// The client's headers. What a backend must not see is dropped, see [`crate::headers`].
    pub headers: HeaderMap,
    /// The body, in as many pieces as it came in.
    pub body: Vec<Bytes>,
}

/// A backend's answer, from its head on.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers, without those of the connection.
    pub headers: HeaderMap,
    /// The body.
    pub body: AnswerBody,
}

impl Answer {
    /// An answer of our own.
    pub(crate) fn json(status: StatusCode, body: String) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        Self { status, headers, body: AnswerBody::demo(DemoBody::whole(body)) }
    }

    /// The answer of a model's server, which keeps the model loaded until it ends or is dropped.
    pub(crate) fn claimed(mut self, claim: Claim) -> Self {
        self.body.claim = Some(claim);
        self
    }
}

/// The body of an answer, as the network brings it. Dropping it before its end closes the
/// backend's connection at once.
#[derive(Debug)]
pub struct AnswerBody {
    /// Bytes that were read and put back.
    first: Option<Bytes>,
    source: Source,
    /// Keeps the model loaded until the body has ended.
    claim: Option<Claim>,
}

#[derive(Debug)]
enum Source {
    Network(NetworkBody),
    Demo(DemoBody),
}

impl AnswerBody {
    pub(crate) fn network(body: Incoming, idle: Duration, backend: Arc<str>) -> Self {
        Self::of(Source::Network(NetworkBody { body, idle, backend }))
    }

    pub(crate) fn demo(body: DemoBody) -> Self {
        Self::of(Source::Demo(body))
    }

    fn of(source: Source) -> Self {
        Self { first: None, source, claim: None }
    }

    /// Puts bytes back, to be the next ones. Empty bytes are dropped.
    pub fn put_back(&mut self, bytes: Bytes) {
        self.first = Some(bytes).filter(|bytes| !bytes.is_empty());
    }

    /// The next bytes, never empty; `None` at the end. Nothing comes after an error. May be
    /// dropped at any await and called again.
    pub async fn next(&mut self) -> Option<Result<Bytes, BackendError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let next = match &mut self.source {
            Source::Network(body) => body.next().await,
            Source::Demo(body) => body.next().await.map(Ok),
        };
        match (next, &self.claim) {
            (Some(Ok(bytes)), _) => Some(Ok(bytes)),
            (Some(Err(error)), Some(claim)) => Some(Err(claim.explain(error).await)),
            (end, claim) => {
                claim.iter().for_each(Claim::answered);
                self.claim = None;
                end
            }
        }
    }
}

#[derive(Debug)]
struct NetworkBody {
    body: Incoming,
    idle: Duration,
    backend: Arc<str>,
}

impl NetworkBody {
    async fn next(&mut self) -> Option<Result<Bytes, BackendError>> {
        loop {
            let Ok(frame) = timeout(self.idle, self.body.frame()).await else {
                return Some(Err(self.stopped()));
            };
            match frame?.map(Frame::into_data) {
                Ok(Ok(data)) if !data.is_empty() => return Some(Ok(data)),
                // Trailers, or nothing.
                Ok(_) => {}
                Err(error) => return Some(Err(self.broke(&error))),
            }
        }
    }

    fn stopped(&self) -> BackendError {
        BackendError::Timeout {
            backend: Arc::clone(&self.backend),
            phase: Phase::Idle,
            after: self.idle,
        }
    }

    fn broke(&self, error: &hyper::Error) -> BackendError {
        BackendError::Broke { backend: Arc::clone(&self.backend), reason: chain(error) }
    }
}

/// The body of a request: pieces whose length is known together. A clone shares their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into(), left }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
