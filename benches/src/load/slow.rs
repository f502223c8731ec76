//! Many streams held open, each with a chunk now and then.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::Failures;
use crate::{
    http1::Link,
    payload::{Answer, BenchRequest, Events},
};

const AT_ONCE: usize = 64;

/// How long a stream may take to bring its first chunk.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slow {
    pub(crate) addr: SocketAddr,
    pub(crate) streams: u32,
    pub(crate) body: usize,
    /// Milliseconds between two chunks of a stream; the first comes at once.
    pub(crate) gap_ms: u64,
}

/// Told when all streams are open, or have failed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Streams that brought their first chunk.
    pub(crate) open: u64,
    pub(crate) seconds: f64,
    pub(crate) failures: Failures,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Closed {
    /// Chunks that came since all were open.
    pub(crate) chunks: u64,
    pub(crate) seconds: f64,
    pub(crate) ended: u64,
}

pub(crate) struct OpenStreams {
    pub(crate) opened: Opened,
    shared: Arc<Shared>,
    streams: JoinSet<()>,
    since: Instant,
    chunks_before: u64,
}

struct Shared {
    plan: Slow,
    gate: Semaphore,
    chunks: AtomicU64,
    ended: AtomicU64,
    closing: watch::Sender<bool>,
}

pub(crate) async fn open(plan: &Slow) -> Result<OpenStreams> {
    let begun = Instant::now();
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        gate: Semaphore::new(AT_ONCE),
        chunks: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        closing: watch::Sender::new(false),
    });
    let (told, mut outcomes) = mpsc::channel(AT_ONCE);
    let mut streams = JoinSet::new();
    for _ in 0..plan.streams {
        streams.spawn(stream(shared.clone(), told.clone()));
    }
    drop(told);
    let mut opened = Opened::default();
    for _ in 0..plan.streams {
        match outcomes.recv().await.context("a stream was lost")? {
            Ok(()) => opened.open += 1,
            Err(why) => opened.failures.add(&why),
        }
    }
    opened.seconds = begun.elapsed().as_secs_f64();
    let chunks_before = shared.chunks.load(Ordering::Relaxed);
    Ok(OpenStreams { opened, shared, streams, since: Instant::now(), chunks_before })
}

impl OpenStreams {
    pub(crate) async fn close(mut self) -> Closed {
        let closed = Closed {
            chunks: self.shared.chunks.load(Ordering::Relaxed) - self.chunks_before,
            seconds: self.since.elapsed().as_secs_f64(),
            ended: self.shared.ended.load(Ordering::Relaxed),
        };
        self.shared.closing.send_replace(true);
        while self.streams.join_next().await.is_some() {}
        closed
    }
}

async fn stream(shared: Arc<Shared>, told: mpsc::Sender<Result<(), String>>) {
    let mut closing = shared.closing.subscribe();
    match begin(&shared).await {
        Err(e) => drop(told.send(Err(format!("{e:#}"))).await),
        Ok((_link, body)) => {
            let _ = told.send(Ok(())).await;
            tokio::select! {
                () = follow(body, &shared.chunks) => {
                    shared.ended.fetch_add(1, Ordering::Relaxed);
                }
                _ = closing.wait_for(|now| *now) => {}
            }
        }
    }
}

/// Opens one stream and reads its first event.
async fn begin(shared: &Shared) -> Result<(Link, Incoming)> {
    let _turn = shared.gate.acquire().await?;
    let answer = Answer::Stream { chunks: u32::MAX, burst: 1, gap_ms: shared.plan.gap_ms };
    let ask = BenchRequest { id: 0, answer }.body(shared.plan.body);
    let opening = async {
        let mut link = Link::open(shared.plan.addr).await?;
        let response = link.chat(ask).await?;
        ensure!(response.status() == 200, "status {}", response.status().as_u16());
        let mut body = response.into_body();
        let mut events = Events::default();
        while events.count == 0 {
            let frame = body.frame().await.context("ended before its first chunk")??;
            events.feed(frame.data_ref().map_or(&[], |data| data));
        }
        Ok((link, body))
    };
    timeout(LIMIT, opening).await.unwrap_or_else(|_| Err(anyhow!("time-out")))
}

/// Counts events until the stream ends, which should not happen.
async fn follow(mut body: Incoming, chunks: &AtomicU64) {
    let mut events = Events::default();
    while let Some(Ok(frame)) = body.frame().await {
        let before = events.count;
        events.feed(frame.data_ref().map_or(&[], |data| data));
        chunks.fetch_add(events.count - before, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_are_open_until_closed() {
        let addr = crate::backend::start().await;
        let plan = Slow { addr, streams: 100, body: 1024, gap_ms: 60_000 };
        let held = open(&plan).await.unwrap();
        assert_eq!((held.opened.open, held.opened.failures.total()), (100, 0));
        let closed = held.close().await;
        assert_eq!((closed.ended, closed.chunks), (0, 0));
    }

    #[tokio::test]
    async fn a_refused_stream_is_a_failure() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        let held = open(&Slow { addr, streams: 3, body: 1024, gap_ms: 1 }).await.unwrap();
        assert_eq!((held.opened.open, held.opened.failures.total()), (0, 3));
    }
}
