//! Requests, answers and their bodies.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::{
    client::Body as ReceivedBody,
    demo::DemoBody,
    error::{BackendError, Phase},
    model_engines::Claim,
};

/// A request to a backend.
#[derive(Debug, Clone)]
pub struct BackendRequest {
    /// The method; `POST` by default.
    pub method: Method,
    /// Path and query below the backend's base URL; begins with `/`.
    pub path_and_query: String,
    /// The model that it is for, by the backend's name; empty if the sender does not know it.
    pub model: String,
    /// The client's headers. Those that a backend must not see are dropped on sending, see
    /// [`crate::headers`].
    pub headers: HeaderMap,
    /// The body, in the pieces in which it came.
    pub body: Vec<Bytes>,
}

impl Default for BackendRequest {
    fn default() -> Self {
        let (method, path_and_query, model) = (Method::POST, String::new(), String::new());
        Self { method, path_and_query, model, headers: HeaderMap::new(), body: Vec::new() }
    }
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
    /// An answer that this crate makes itself.
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
    change: Option<Changing>,
    /// An error that came and was not passed on yet: why it came is being found out.
    failed: Option<BackendError>,
}

/// Changes the bytes of an answer's body, piece by piece.
pub trait Change: Send {
    /// Reads the next bytes; appends what is to be passed on to `out`.
    ///
    /// # Errors
    /// Why they cannot be read, in words.
    fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), String>;

    /// Called when the answer is complete. Appends the rest to `out`.
    ///
    /// # Errors
    /// As [`Change::feed`].
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), String>;
}

#[derive(Debug)]
enum Source {
    /// Nothing more than the bytes that were put back.
    Nothing,
    Network(NetworkBody),
    Demo(DemoBody),
}

impl AnswerBody {
    pub(crate) fn network(body: ReceivedBody, idle: Duration, backend: Arc<str>) -> Self {
        Self::of(Source::Network(NetworkBody { body, idle, timer: None, backend }))
    }

    pub(crate) fn demo(body: DemoBody) -> Self {
        Self::of(Source::Demo(body))
    }

    fn of(source: Source) -> Self {
        Self { first: None, source, claim: None, change: None, failed: None }
    }

    /// A body whose bytes are all known.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let mut body = Self::of(Source::Nothing);
        body.put_back(bytes.into());
        body
    }

    /// The same body, whose bytes pass through `change`. `backend`: the name in the error if the
    /// change fails.
    #[must_use]
    pub fn changed(self, change: Box<dyn Change>, backend: &str) -> Self {
        Self { change: Some(Changing { change, over: false, backend: backend.into() }), ..self }
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
        if let Some(error) = &self.failed {
            let error = error.clone();
            return Some(Err(self.explained(error).await));
        }
        let next = match &mut self.change {
            Some(change) => change.next(&mut self.source).await,
            None => self.source.next().await,
        };
        match (next, &self.claim) {
            (Some(Ok(bytes)), _) => Some(Ok(bytes)),
            (Some(Err(error)), Some(_)) => {
                // Kept, since this call may be dropped while it waits for the explanation.
                self.failed = Some(error.clone());
                Some(Err(self.explained(error).await))
            }
            (end, claim) => {
                claim.iter().for_each(Claim::answered);
                self.claim = None;
                end
            }
        }
    }

    /// The error in the words of the model's server, if that has ended.
    async fn explained(&mut self, error: BackendError) -> BackendError {
        let error = match &self.claim {
            Some(claim) => claim.explain(error).await,
            None => error,
        };
        self.failed = None;
        error
    }
}

impl Source {
    async fn next(&mut self) -> Option<Result<Bytes, BackendError>> {
        match self {
            Self::Nothing => None,
            Self::Network(body) => body.next().await,
            Self::Demo(body) => body.next().await.map(Ok),
        }
    }
}

/// A change of a body, and whether the body is over.
struct Changing {
    change: Box<dyn Change>,
    over: bool,
    backend: Arc<str>,
}

impl fmt::Debug for Changing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changing").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Changing {
    async fn next(&mut self, source: &mut Source) -> Option<Result<Bytes, BackendError>> {
        while !self.over {
            let mut out = Vec::new();
            let changed = match source.next().await {
                Some(Ok(piece)) => self.change.feed(&piece, &mut out),
                Some(Err(error)) => {
                    self.over = true;
                    return Some(Err(error));
                }
                None => {
                    self.over = true;
                    self.change.end(&mut out)
                }
            };
            if let Err(reason) = changed {
                self.over = true;
                let backend = Arc::clone(&self.backend);
                return Some(Err(BackendError::Broke { backend, reason }));
            }
            if !out.is_empty() {
                return Some(Ok(out.into()));
            }
        }
        None
    }
}

#[derive(Debug)]
struct NetworkBody {
    body: ReceivedBody,
    idle: Duration,
    /// The idle timer, made at the first wait.
    timer: Option<Pin<Box<Sleep>>>,
    backend: Arc<str>,
}

impl NetworkBody {
    async fn next(&mut self) -> Option<Result<Bytes, BackendError>> {
        let mut waits = false;
        poll_fn(|cx| self.poll_next(cx, &mut waits)).await
    }

    /// `waits`: whether the idle timer runs already for this call.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        waits: &mut bool,
    ) -> Poll<Option<Result<Bytes, BackendError>>> {
        if let Poll::Ready(next) = self.body.poll_next(cx) {
            return Poll::Ready(next.map(|next| next.map_err(|reason| self.broke(reason))));
        }
        let idle = self.idle;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(idle)));
        if !mem::replace(waits, true)
            && let Some(by) = Instant::now().checked_add(idle)
        {
            timer.as_mut().reset(by);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(self.stopped())))
    }

    fn stopped(&self) -> BackendError {
        BackendError::Timeout {
            backend: Arc::clone(&self.backend),
            phase: Phase::Idle,
            after: self.idle,
        }
    }

    fn broke(&self, reason: String) -> BackendError {
        BackendError::Broke { backend: Arc::clone(&self.backend), reason }
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

#[cfg(test)]
mod tests {
    use testkit::{MockBackend, Reply};

    use super::*;
    use crate::{BackendConfig, Hold, HttpBackend};

    struct Doubled;

    impl Change for Doubled {
        fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
            if piece == b"bad" {
                return Err("it is bad".to_owned());
            }
            out.extend_from_slice(&[piece, piece].concat());
            Ok(())
        }

        fn end(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
            out.push(b'.');
            Ok(())
        }
    }

    async fn answered(text: &str) -> AnswerBody {
        let server = MockBackend::start(&["m"]).await;
        server.then(Reply::full(200, &[], text));
        let backend = HttpBackend::new(&BackendConfig::new(server.url())).unwrap();
        let ask = BackendRequest { path_and_query: "/x".to_owned(), ..BackendRequest::default() };
        backend.send(ask).await.unwrap().body.changed(Box::new(Doubled), "b")
    }

    #[tokio::test]
    async fn a_body_may_be_changed_on_its_way() {
        let mut changed = answered("ab").await;
        changed.put_back("first".into());
        for expected in ["first", "abab", "."] {
            assert_eq!(changed.next().await.unwrap().unwrap(), expected, "what was put back stays");
        }
        assert!(changed.next().await.is_none());
        let mut bad = answered("bad").await;
        let error = bad.next().await.unwrap().unwrap_err().to_string();
        assert!(error.contains("b broke off: it is bad"), "{error}");
        assert!(bad.next().await.is_none());
    }

    /// A hold that learns late why the model's server has ended.
    struct Late(Arc<tokio::sync::Notify>);

    impl fmt::Debug for Late {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Late")
        }
    }

    impl Hold for Late {
        fn answered(&self) {}

        fn doubt(&self) {}

        fn why_ended(&self) -> Pin<Box<dyn Future<Output = Option<BackendError>> + Send + '_>> {
            Box::pin(async {
                self.0.notified().await;
                let (model, reason) = ("m".into(), "it was killed".into());
                Some(BackendError::Engine { model, reason, busy: false })
            })
        }
    }

    #[tokio::test]
    async fn an_error_is_not_lost_if_the_wait_for_its_reason_is_dropped() {
        let known = Arc::new(tokio::sync::Notify::new());
        let server = HttpBackend::new(&BackendConfig::new("http://127.0.0.1:9")).unwrap();
        let claim = Claim::new(Arc::new(server), Late(Arc::clone(&known)));
        let mut bad = AnswerBody { claim: Some(claim), ..answered("bad").await };
        {
            let mut next = std::pin::pin!(bad.next());
            // The body is here already, and only the reason is waited for.
            let waits = tokio::time::timeout(Duration::from_millis(500), next.as_mut()).await;
            assert!(waits.is_err(), "{waits:?}");
        }
        known.notify_one();
        let error = bad.next().await.unwrap().unwrap_err().to_string();
        assert!(error.contains("it was killed"), "{error}");
        assert!(bad.next().await.is_none());
    }

    #[tokio::test]
    async fn a_body_may_be_here_already() {
        let mut whole = AnswerBody::whole("here");
        assert_eq!(whole.next().await.unwrap().unwrap(), "here");
        assert!(whole.next().await.is_none());
    }
}
