//! The stream of a response that is made in the background. Its client can read it again, from any event that is held.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::unfold;
use protocol::sse;
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};

use crate::body::BrokenOff;

/// The most that is held of one stream, in bytes. Of a longer stream the oldest events are dropped.
const MAX_HELD: usize = 4 * 1024 * 1024;

/// The events of one stream.
pub(crate) struct Log {
    state: Mutex<State>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// How many events have been dropped. Places in the stream are counted from its first event.
    gone: usize,
    has_ended: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self { state: Mutex::default(), news: watch::Sender::new(()) }
    }
}

/// The state of the stream at a reader's place.
enum Next {
    Events(Bytes),
    Nothing,
    End,
    Gone,
}

impl Log {
    /// Adds whole events. Comments are not held.
    pub(crate) fn add(&self, events: &Bytes) {
        let mut state = self.lock();
        for event in split(events).filter(|event| !event.starts_with(b":")) {
            state.bytes += event.len();
            state.events.push_back(event);
        }
        while state.bytes > MAX_HELD {
            let Some(gone) = state.events.pop_front() else { break };
            state.bytes -= gone.len();
            state.gone += 1;
        }
        drop(state);
        self.news.send_replace(());
    }

    /// Ends the stream: no events follow.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.news.send_replace(());
    }

    /// A body of the events after the one with the number `after`, or of all. `keepalive`: the silence after which it
    /// has a sign of life; zero: never.
    pub(crate) fn reader(
        self: &Arc<Self>,
        after: Option<u64>,
        keepalive: Duration,
    ) -> axum::body::Body {
        let at = self.lock().place_after(after);
        let keepalive = if keepalive.is_zero() { Duration::MAX } else { keepalive };
        let reader = Reader { log: Arc::clone(self), at, keepalive, done: false };
        let next = async |mut reader: Reader| Some((reader.next().await?, reader));
        axum::body::Body::from_stream(unfold(reader, next))
    }

    fn next(&self, at: &mut usize) -> Next {
        let state = self.lock();
        let Some(from) = at.checked_sub(state.gone) else { return Next::Gone };
        let events: Vec<u8> = state.events.iter().skip(from).flatten().copied().collect();
        *at = state.gone + state.events.len();
        match (events.is_empty(), state.has_ended) {
            (false, _) => Next::Events(events.into()),
            (true, true) => Next::End,
            (true, false) => Next::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The place of the first event with a number above `after`; without `after`, the place of the stream's first
    /// event.
    fn place_after(&self, after: Option<u64>) -> usize {
        let Some(after) = after else { return 0 };
        let is_later = |event: &Bytes| number(event).is_some_and(|number| number > after);
        let at = self.events.iter().position(is_later).unwrap_or(self.events.len());
        let first = self.events.front().and_then(|event| number(event));
        let has_missed =
            self.gone > 0 && first.is_some_and(|first| first.saturating_sub(1) > after);
        if has_missed { 0 } else { self.gone + at }
    }
}

/// The events of a piece of a stream.
fn split(events: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = events.clone();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let len = sse::event_len(&rest).unwrap_or(rest.len());
        Some(rest.split_to(len))
    })
}

/// The sequence number of an event.
fn number(event: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct EventNumber {
        sequence_number: u64,
    }
    let text = std::str::from_utf8(event).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data:"))?;
    serde_json::from_str::<EventNumber>(data).ok().map(|event| event.sequence_number)
}

/// A reader of a log.
struct Reader {
    log: Arc<Log>,
    at: usize,
    keepalive: Duration,
    done: bool,
}

impl Reader {
    /// The next events, or a sign of life after a silence.
    async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        while !self.done {
            // Subscribed before the log is read, so that events added in between wake this reader.
            let mut news = self.log.news.subscribe();
            match self.log.next(&mut self.at) {
                Next::Events(events) => return Some(Ok(events)),
                Next::Nothing => {
                    if timeout(self.keepalive, news.changed()).await.is_err() {
                        return Some(Ok(Bytes::from_static(sse::KEEPALIVE)));
                    }
                }
                Next::End => return None,
                Next::Gone => {
                    self.done = true;
                    return Some(Err(BrokenOff("its beginning is not held any more".to_owned())));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn event(number: usize) -> String {
        format!("event: x\ndata: {{\"sequence_number\":{number}}}\n\n")
    }

    async fn read(log: &Arc<Log>, after: Option<u64>) -> String {
        let body =
            axum::body::to_bytes(log.reader(after, Duration::ZERO), 2 * MAX_HELD).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_stream_is_read_from_any_event_on() {
        let log = Arc::<Log>::default();
        log.add(&format!(": comment\n\n{}{}", event(0), event(1)).into());
        let late = tokio::spawn({
            let log = Arc::clone(&log);
            async move { read(&log, Some(0)).await }
        });
        tokio::task::yield_now().await;
        log.add(&event(2).into());
        log.end();
        assert_eq!(late.await.unwrap(), event(1) + &event(2));
        assert_eq!(read(&log, None).await, event(0) + &event(1) + &event(2));
        assert_eq!(read(&log, Some(2)).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gives_signs_of_life() {
        let log = Arc::<Log>::default();
        let mut body = log.reader(None, Duration::from_secs(15));
        let began = tokio::time::Instant::now();
        for _ in 0..2 {
            let sign = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(sign, sse::KEEPALIVE);
        }
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_stream_is_held() {
        let log = Arc::<Log>::default();
        let mut early = log.reader(None, Duration::ZERO);
        let long = "x".repeat(MAX_HELD / 4);
        for number in 0..6 {
            log.add(&format!("data: {{\"sequence_number\":{number},\"x\":\"{long}\"}}\n\n").into());
        }
        log.end();
        assert!(log.lock().bytes <= MAX_HELD && log.lock().gone == 3);
        assert!(early.frame().await.unwrap().is_err(), "it has missed some");
        assert!(read(&log, Some(3)).await.starts_with("data: {\"sequence_number\":4"));
    }

    #[tokio::test]
    async fn events_end_at_an_empty_line_however_lines_end() {
        let log = Arc::<Log>::default();
        let crlf = |number| event(number).replace('\n', "\r\n");
        log.add(&format!(": comment\r\n\r\n{}{}{}", crlf(0), crlf(1), event(2)).into());
        log.end();
        assert_eq!(log.lock().events.len(), 3);
        assert_eq!(read(&log, Some(0)).await, crlf(1) + &event(2));
    }

    #[tokio::test]
    async fn nothing_comes_after_the_largest_number() {
        let log = Arc::<Log>::default();
        let long = "x".repeat(MAX_HELD / 2);
        for number in 0..3 {
            log.add(&format!("data: {{\"sequence_number\":{number},\"x\":\"{long}\"}}\n\n").into());
        }
        log.end();
        assert!(log.lock().gone > 0);
        assert_eq!(read(&log, Some(u64::MAX)).await, "");
    }
}
