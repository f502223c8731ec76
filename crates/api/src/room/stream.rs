//! Streams of events as response bodies. A stream has no task and no channel of its own: the connection that writes
//! it polls its source.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use http_body::{Body, Frame};
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

/// How often a sign of life is sent.
const EVERY: Duration = Duration::from_secs(10);

/// A sign of life: a comment, which every client skips.
const PING: &[u8] = b": ping\n\n";

/// A source of frames.
pub(super) trait Frames: Send + Unpin + 'static {
    /// Whole frames; `None` after the last.
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

pub(super) struct EventStream<F> {
    /// The first bytes to send.
    first: Option<Bytes>,
    frames: F,
    pings: Interval,
    /// Ready when the stream has to end before its frames do.
    until: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    bell: Arc<Bell>,
    /// The task that the bell wakes.
    task: Waker,
    over: bool,
}

/// Wakes the task of a stream when one of its deadlines is due, and remembers that it did. So the thousands of streams
/// that one event wakes need not look at their deadlines, which lie elsewhere in memory.
struct Bell {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

impl Bell {
    /// A bell that has rung already, because the deadlines have not been polled yet.
    fn rung() -> Arc<Self> {
        Arc::new(Self { rung: AtomicBool::new(true), task: Mutex::new(Waker::noop().clone()) })
    }

    fn wakes(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = task.clone();
    }
}

impl<F: Frames> EventStream<F> {
    pub(super) fn new(frames: F) -> Self {
        let mut pings = interval_at(Instant::now() + EVERY, EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (bell, task) = (Bell::rung(), Waker::noop().clone());
        Self { first: None, frames, pings, until: None, bell, task, over: false }
    }

    /// The same stream with a frame before all others.
    pub(super) fn beginning_with(self, first: Option<Bytes>) -> Self {
        Self { first, ..self }
    }

    /// Ends the stream when the server drains: an endless stream would hold up the drain.
    pub(super) fn until(self, mut draining: watch::Receiver<bool>) -> Self {
        let until = async move {
            // The wait fails only without a sender, which exists as long as the server.
            let _ = draining.wait_for(|draining| *draining).await;
        };
        Self { until: Some(Box::pin(until)), ..self }
    }

    /// Ends the stream also when this is ready.
    pub(super) fn or_until(self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        let before = self.until;
        let until = async move {
            let before = async move {
                match before {
                    Some(before) => before.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = before => {}
                () = end => {}
            }
        };
        Self { until: Some(Box::pin(until)), ..self }
    }

    /// A response with this stream as its body.
    pub(super) fn response(self) -> Response {
        let mut response = Response::new(axum::body::Body::new(self));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let buffering = HeaderName::from_static("x-accel-buffering");
        headers.insert(buffering, HeaderValue::from_static("no"));
        response
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(frames) = self.frames.poll_frames(cx) {
            return Poll::Ready(frames);
        }
        if !self.task.will_wake(cx.waker()) {
            self.task.clone_from(cx.waker());
            self.bell.wakes(cx.waker());
        }
        // Cleared before the deadlines are polled: if the bell rings meanwhile, the task is woken again.
        match self.bell.rung.swap(false, Ordering::Acquire) {
            true => self.poll_deadlines(),
            false => Poll::Pending,
        }
    }

    fn poll_deadlines(&mut self) -> Poll<Option<Bytes>> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let cx = &mut Context::from_waker(&waker);
        if let Some(until) = &mut self.until
            && until.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        let ping = self.pings.poll_tick(cx).map(|_| Some(Bytes::from_static(PING)));
        if ping.is_ready() {
            // The next ping has no waker yet: the deadlines have to be polled again.
            self.bell.rung.store(true, Ordering::Relaxed);
        }
        ping
    }
}

impl<F: Frames> Body for EventStream<F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.poll_next(cx);
        self.over = matches!(next, Poll::Ready(None));
        next.map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::BodyExt;

    use super::*;

    struct GivenFrames(VecDeque<Option<&'static str>>);

    impl Frames for GivenFrames {
        fn poll_frames(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            match self.0.pop_front() {
                Some(frames) => Poll::Ready(frames.map(|text| Bytes::from_static(text.as_bytes()))),
                None => Poll::Pending,
            }
        }
    }

    fn stream<const N: usize>(frames: [Option<&'static str>; N]) -> EventStream<GivenFrames> {
        EventStream::new(GivenFrames(frames.into()))
    }

    async fn next(stream: &mut EventStream<GivenFrames>) -> Option<Bytes> {
        Some(stream.frame().await?.unwrap().into_data().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_shows_every_ten_seconds_that_it_lives() {
        let mut stream = stream([Some("data: 1\n\n")]).beginning_with(Some("hi".into()));
        assert_eq!(next(&mut stream).await.unwrap(), "hi");
        assert_eq!(next(&mut stream).await.unwrap(), "data: 1\n\n");
        let began = Instant::now();
        for n in 1..=3 {
            assert_eq!(next(&mut stream).await.unwrap(), PING);
            assert_eq!(began.elapsed(), EVERY * n);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_its_frames_or_when_the_server_drains() {
        let mut ended = stream([Some("last"), None, Some("never")]);
        assert_eq!(next(&mut ended).await.unwrap(), "last");
        assert!(next(&mut ended).await.is_none() && next(&mut ended).await.is_none());
        let draining = watch::Sender::new(false);
        let mut open = stream([]).until(draining.subscribe());
        assert_eq!(next(&mut open).await.unwrap(), PING);
        draining.send_replace(true);
        assert!(next(&mut open).await.is_none() && open.is_end_stream());
        let mut late = stream([]).until(draining.subscribe());
        assert!(next(&mut late).await.is_none(), "it was draining already");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_on_the_way_is_to_keep_it_back() {
        let response = stream([]).response();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
    }
}
