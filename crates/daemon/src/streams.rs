//! The streams of an HTTP/2 connection. A client that sends frames for ever without a request would
//! otherwise keep its connection.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, sleep, sleep_until};

/// The streams of a connection: requests whose answers are not complete.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Mutex<StreamCounts>>);

struct StreamCounts {
    /// How many streams there are.
    open: usize,
    /// Streams whose next bytes this server still has to produce.
    ours: usize,
    /// When a stream last began, ended, or changed between waiting for this server and for the client.
    moved: Instant,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(StreamCounts { open: 0, ours: 0, moved: Instant::now() })))
    }

    /// Counts a stream from its request until the client has taken the answer that `answering` makes.
    pub(crate) fn answered<F, E>(
        &self,
        answering: F,
    ) -> impl Future<Output = Result<Response<Body>, E>> + use<F, E>
    where
        F: Future<Output = Result<Response<Body>, E>>,
    {
        let mut stream = Stream::open(self.clone());
        async move {
            let response = answering.await?;
            // The body is not polled until the client has room for more.
            stream.waits_for_us(false);
            Ok(response.map(|body| Body::new(CountedBody { body, stream })))
        }
    }

    /// Waits until there was no stream for `unused`, or until the client has taken nothing for `untaken` although all
    /// streams have data for it.
    pub(crate) async fn end(&self, unused: Duration, untaken: Duration) {
        while let Some(check) = self.next_check(unused, untaken) {
            match check {
                NextCheck::At(when) => sleep_until(when).await,
                // This server still makes an answer, to which other deadlines apply.
                NextCheck::Later => sleep(unused).await,
            }
        }
    }

    /// When to check again; `None` if the connection has to end.
    fn next_check(&self, unused: Duration, untaken: Duration) -> Option<NextCheck> {
        let state = self.lock();
        let patience = match (state.open, state.ours) {
            (0, _) => unused,
            (_, 0) => untaken,
            _ => return Some(NextCheck::Later),
        };
        let end = state.moved + patience;
        (end > Instant::now()).then_some(NextCheck::At(end))
    }

    fn lock(&self) -> MutexGuard<'_, StreamCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum NextCheck {
    At(Instant),
    Later,
}

/// Counts one stream until this is dropped.
struct Stream {
    streams: Streams,
    is_ours: bool,
}

impl Stream {
    fn open(streams: Streams) -> Self {
        streams.change(|state| {
            state.open += 1;
            state.ours += 1;
        });
        Self { streams, is_ours: true }
    }

    /// Notes whether this server has to produce the next bytes, or the client has to take them.
    fn waits_for_us(&mut self, is_ours: bool) {
        let was_ours = std::mem::replace(&mut self.is_ours, is_ours);
        self.streams.change(|state| {
            state.ours = state.ours + usize::from(is_ours) - usize::from(was_ours);
        });
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.waits_for_us(false);
        self.streams.change(|state| state.open -= 1);
    }
}

impl Streams {
    fn change(&self, change: impl FnOnce(&mut StreamCounts)) {
        let mut state = self.lock();
        change(&mut state);
        state.moved = Instant::now();
    }
}

/// The body of an answer. It is asked for more only when the client takes more.
struct CountedBody {
    body: Body,
    stream: Stream,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.stream.waits_for_us(frame.is_pending());
        Poll::Ready(ready!(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const UNUSED: Duration = Duration::from_secs(75);
    const UNTAKEN: Duration = Duration::from_secs(120);

    async fn frame(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
    }

    async fn ended(streams: &Streams) -> Duration {
        let began = Instant::now();
        streams.end(UNUSED, UNTAKEN).await;
        began.elapsed()
    }

    async fn answer(streams: &Streams, body: Body, after: Duration) -> Response<Body> {
        let answering = async move {
            sleep(after).await;
            Ok::<_, Infallible>(Response::new(body))
        };
        streams.answered(answering).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_streams_ends_and_one_with_a_pending_answer_does_not() {
        let streams = Streams::new();
        assert_eq!(ended(&streams).await, UNUSED);
        let (slow, others) = (Duration::from_secs(1000), streams.clone());
        let answering = tokio::spawn(async move {
            drop(answer(&others, Body::from("a"), slow).await);
        });
        tokio::task::yield_now().await;
        assert!(ended(&streams).await >= slow + UNUSED);
        answering.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_could_be_taken_and_is_not_ends_the_connection() {
        let streams = Streams::new();
        let untaken = answer(&streams, Body::from("a"), Duration::ZERO).await;
        assert_eq!(ended(&streams).await, UNTAKEN);
        let mut body = untaken.into_body();
        assert!(frame(&mut body).await.is_some());
        assert_eq!(ended(&streams).await, UNTAKEN, "from when some was taken");
        drop(body);
        assert_eq!(ended(&streams).await, UNUSED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_for_more_is_not_to_blame() {
        let streams = Streams::new();
        let quiet = futures_util::stream::pending::<Result<Bytes, Infallible>>();
        let body = Body::from_stream(quiet);
        let mut body = answer(&streams, body, Duration::ZERO).await.into_body();
        let waiting = tokio::time::timeout(10 * UNTAKEN, async {
            tokio::join!(frame(&mut body), streams.end(UNUSED, UNTAKEN))
        });
        assert!(waiting.await.is_err());
    }
}
