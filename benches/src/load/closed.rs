//! A closed loop: each connection sends its next request when the last answer is whole. Every byte
//! of every answer is compared.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::Failures;
use crate::{
    http1::Link,
    payload::{Answer, Api, BenchRequest, Words},
    stats::Times,
};

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The pause after a failure, so that a dead target is not hammered.
const PAUSE: Duration = Duration::from_millis(10);

/// One round of requests, all alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) addr: SocketAddr,
    /// Connections, each with one request in flight.
    pub(crate) connections: u32,
    pub(crate) body: usize,
    pub(crate) answer: Answer,
    pub(crate) api: Api,
    /// The prefix of the API's path: that of a room, or nothing.
    pub(crate) prefix: String,
    pub(crate) key: Option<String>,
    /// Whether events are serialised again on the way, so that only their words are compared.
    #[serde(default)]
    pub(crate) rewritten: bool,
    pub(crate) warmup: f64,
    pub(crate) seconds: f64,
    /// The most requests sent, warm-up included.
    pub(crate) most: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Requests answered rightly, warm-up included.
    pub(crate) all: u64,
    /// Requests answered rightly while measuring.
    pub(crate) measured: u64,
    /// Seconds from the begin of measuring to the last answer.
    pub(crate) seconds: f64,
    /// Time from sending to the last byte of the answer.
    pub(crate) latency: Times,
    /// Time from sending to the first byte of the answer's body.
    pub(crate) first_byte: Times,
    /// Connections opened again because the target had closed the old one.
    pub(crate) reconnects: u64,
    /// Requests not answered, or wrongly.
    pub(crate) failures: Failures,
}

impl Closed {
    /// Plain chats over one connection, measured from the first request on.
    pub(crate) fn new(addr: SocketAddr, body: usize, answer: Answer, seconds: f64) -> Self {
        Self {
            addr,
            connections: 1,
            body,
            answer,
            api: Api::Chat,
            prefix: String::new(),
            key: None,
            rewritten: false,
            warmup: 0.0,
            seconds,
            most: u64::MAX,
        }
    }
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.measured += other.measured;
        self.seconds += other.seconds;
        self.latency.merge(&other.latency);
        self.first_byte.merge(&other.first_byte);
        self.reconnects += other.reconnects;
        self.failures.merge(&other.failures);
    }

    /// Requests a second while measuring.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.measured as f64 / self.seconds)
    }
}

/// Sends requests until the plan's time is over or its requests are sent.
pub(crate) async fn run(plan: &Closed) -> Result<Outcome> {
    let round = Arc::new(Round::new(plan));
    let mut clients = JoinSet::new();
    for _ in 0..plan.connections {
        clients.spawn(client(round.clone()));
    }
    let mut sum = Tally::new(round.measure_from);
    while let Some(tally) = clients.join_next().await {
        sum.merge(&tally?);
    }
    Ok(sum.outcome())
}

enum Expected {
    /// Every byte, where nothing is translated.
    Bytes(Bytes),
    /// The words of a stream, each once and in order, in whatever events.
    Words(u32),
}

impl Expected {
    fn of(plan: &Closed) -> Self {
        match (plan.api, plan.answer) {
            (Api::Chat, answer) if !plan.rewritten => Self::Bytes(answer.expected()),
            (_, Answer::Stream { chunks, .. }) => Self::Words(chunks),
            (_, Answer::Plain { .. }) => Self::Words(0),
        }
    }
}

struct Round {
    addr: SocketAddr,
    path: String,
    key: Option<String>,
    body: Bytes,
    expected: Expected,
    measure_from: Instant,
    until: Instant,
    left: AtomicU64,
}

impl Round {
    fn new(plan: &Closed) -> Self {
        let ask = BenchRequest { id: 0, answer: plan.answer };
        let body = match plan.api {
            Api::Chat if !plan.rewritten => ask.body(plan.body),
            api => ask.foreign_body(api, plan.body),
        };
        let expected = Expected::of(plan);
        let measure_from = Instant::now() + Duration::from_secs_f64(plan.warmup);
        let until = measure_from + Duration::from_secs_f64(plan.seconds);
        let path = format!("{}{}", plan.prefix, plan.api.path());
        let (addr, key) = (plan.addr, plan.key.clone());
        Self { addr, path, key, body, expected, measure_from, until, left: plan.most.into() }
    }

    fn goes_on(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        Instant::now() < self.until
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

async fn client(round: Arc<Round>) -> Tally {
    let mut tally = Tally::new(round.measure_from);
    let mut link = None;
    while round.goes_on() {
        let sent = Instant::now();
        let outcome = match timeout(LIMIT, exchange(&mut link, &round, &mut tally)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("time-out")),
        };
        match outcome {
            Ok(first) => tally.answered(sent, first, Instant::now()),
            Err(e) => {
                link = None;
                tally.outcome.failures.add(&format!("{e:#}"));
                sleep(PAUSE).await;
            }
        }
    }
    tally
}

/// One request and its answer; returns when the first byte of its body came.
async fn exchange(link: &mut Option<Link>, round: &Round, tally: &mut Tally) -> Result<Instant> {
    if let Some(open) = link
        && !open.ready().await
    {
        *link = None;
        tally.outcome.reconnects += 1;
    }
    let link = match link {
        Some(link) => link,
        None => link.insert(Link::open(round.addr).await?),
    };
    let sent = link.post(&round.path, round.key.as_deref(), round.body.clone());
    let response = sent.await?;
    ensure!(response.status() == 200, "status {}", response.status().as_u16());
    match &round.expected {
        Expected::Bytes(bytes) => compare(response.into_body(), bytes).await,
        Expected::Words(words) => count(response.into_body(), *words).await,
    }
}

/// Reads a stream of events to its end and finds its words in order.
async fn count(mut body: Incoming, expected: u32) -> Result<Instant> {
    let (mut words, mut first) = (Words::default(), None);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        first.get_or_insert_with(Instant::now);
        words.feed(&data);
    }
    ensure!(words.count == expected, "{} of {expected} words", words.count);
    Ok(first.unwrap_or_else(Instant::now))
}

/// Reads a body to its end, byte by byte as expected.
async fn compare(mut body: Incoming, expected: &[u8]) -> Result<Instant> {
    let (mut rest, mut first) = (expected, None);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        first.get_or_insert_with(Instant::now);
        match rest.strip_prefix(&data[..]) {
            Some(left) => rest = left,
            None => bail!("wrong bytes"),
        }
    }
    ensure!(rest.is_empty(), "a short answer");
    Ok(first.unwrap_or_else(Instant::now))
}

/// The results so far of one connection, or of all.
struct Tally {
    measure_from: Instant,
    last: Instant,
    outcome: Outcome,
}

impl Tally {
    fn new(measure_from: Instant) -> Self {
        Self { measure_from, last: measure_from, outcome: Outcome::default() }
    }

    /// Notes an answer. A request that was sent before measuring began is left out: it would be measured only in part.
    fn answered(&mut self, sent: Instant, first: Instant, end: Instant) {
        self.outcome.all += 1;
        self.last = self.last.max(end);
        if sent >= self.measure_from {
            self.outcome.measured += 1;
            self.outcome.latency.add(end - sent);
            self.outcome.first_byte.add(first - sent);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.outcome.add(&other.outcome);
        self.last = self.last.max(other.last);
    }

    fn outcome(self) -> Outcome {
        Outcome { seconds: (self.last - self.measure_from).as_secs_f64(), ..self.outcome }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn plan(addr: SocketAddr, answer: Answer) -> Closed {
        Closed { connections: 4, most: 100, ..Closed::new(addr, 3000, answer, 30.0) }
    }

    #[tokio::test]
    async fn every_request_is_answered_and_counted_once() {
        let addr = crate::backend::start().await;
        for answer in [Answer::Plain { bytes: 1024 }, Answer::back_to_back(64)] {
            let outcome = run(&plan(addr, answer)).await.unwrap();
            assert_eq!((outcome.all, outcome.measured, outcome.failures.total()), (100, 100, 0));
            assert!(outcome.latency.millis(0.5).unwrap() > 0.0);
        }
    }

    /// Answers each connection's first read with `answer`, then closes.
    async fn server(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = [0; 3000];
                socket.read_exact(&mut request).await.unwrap();
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        addr
    }

    #[tokio::test]
    async fn a_fast_wrong_answer_is_a_failure() {
        for (answer, failure) in [
            (
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\noops",
                "wrong bytes",
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\n{",
                "a short answer",
            ),
            ("HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "status 503"),
        ] {
            let addr = server(answer).await;
            let asked =
                Closed { most: 3, connections: 1, ..plan(addr, Answer::Plain { bytes: 900 }) };
            let outcome = run(&asked).await.unwrap();
            assert_eq!(outcome.all, 0);
            assert_eq!(outcome.failures.iter().collect::<Vec<_>>(), [(failure, 3)]);
        }
    }
}
