//! The queue of spans, and the task that sends them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base::Backoff;
use protocol::otlp::{Span, Value, export};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Collector, NotTaken},
    target::Target,
};

/// Spans that may wait. A span takes about a KiB.
const MOST_WAITING: usize = 4096;

/// Spans of one message.
const BATCH: usize = 512;

/// How long spans are gathered for a message.
const GATHER: Duration = Duration::from_secs(1);

/// How often a message is sent again if the collector may take it later.
const TRIES: u32 = 4;

/// The pauses between these tries.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));

/// How long the last spans may take when the process ends.
const LAST: Duration = Duration::from_secs(3);

/// The longest text of an attribute, in bytes: names of models are the clients'.
const LONGEST: usize = 256;

/// Where spans are handed over. Clones share it.
#[derive(Debug, Clone)]
pub struct Traces {
    queue: mpsc::Sender<Span>,
    counts: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// How many spans there were so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Taken by the collector.
    pub sent: u64,
    /// Dropped: the queue was full, or the collector did not take them.
    pub dropped: u64,
}

/// The far end of the queue.
pub struct Export {
    queue: mpsc::Receiver<Span>,
    counts: Arc<Counters>,
    collector: Collector,
    resource: Vec<(&'static str, Value)>,
    version: &'static str,
    /// Whether the log knows that spans are not taken.
    has_warned: bool,
}

impl Traces {
    /// A queue to a collector. `service` is what this process is called there. Nothing is sent until [`Export::run`].
    ///
    /// # Errors
    /// When this machine's certificates cannot be read.
    pub fn to(
        target: Target,
        service: &str,
        machine: &str,
        version: &'static str,
    ) -> io::Result<(Self, Export)> {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let counts = Arc::<Counters>::default();
        let resource = vec![
            ("service.name", service.into()),
            ("service.version", version.into()),
            ("host.name", machine.into()),
        ];
        let export = Export {
            queue: receiver,
            counts: Arc::clone(&counts),
            collector: Collector::new(target)?,
            resource,
            version,
            has_warned: false,
        };
        Ok((Self { queue: sender, counts }, export))
    }

    /// Hands a span over. Never waits: if the queue is full it is dropped, and counted.
    pub fn record(&self, mut span: Span) {
        span.attributes.iter_mut().for_each(|(_, value)| shorten(value));
        if self.queue.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many spans there were so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts { sent: read(&self.counts.sent), dropped: read(&self.counts.dropped) }
    }
}

impl Export {
    /// Sends spans until `stop`; then what is left, for a moment.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(Some(span)) = stop.run_until_cancelled(self.queue.recv()).await {
            batch.push(span);
            self.gather(&mut batch, &stop).await;
            // A collector that is away is not waited for at the end.
            let sent = stop.run_until_cancelled(self.send(&batch)).await;
            if sent.is_none() {
                break;
            }
            batch.clear();
        }
        if timeout(LAST, self.send_rest(batch)).await.is_err() {
            self.drop_rest();
        }
    }

    /// Adds what comes within a moment.
    async fn gather(&mut self, batch: &mut Vec<Span>, stop: &CancellationToken) {
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            let more = timeout_at(until, self.queue.recv_many(batch, room));
            match stop.run_until_cancelled(more).await {
                Some(Ok(1..)) => {}
                _ => return,
            }
        }
    }

    /// Sends the spans that are left, one try each.
    async fn send_rest(&mut self, mut batch: Vec<Span>) {
        self.queue.close();
        loop {
            if !batch.is_empty() {
                let message = export(&self.resource, self.version, &batch);
                let posted = self.collector.post(message.into()).await;
                self.count(batch.len(), posted.is_ok());
                batch.clear();
            }
            if self.queue.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
        }
    }

    fn drop_rest(&mut self) {
        let mut left = 0;
        while self.queue.try_recv().is_ok() {
            left += 1;
        }
        self.count(left, false);
    }

    /// Sends a message, several times if need be. Meanwhile the queue fills.
    async fn send(&mut self, batch: &[Span]) {
        let message = bytes::Bytes::from(export(&self.resource, self.version, batch));
        let mut pauses = RETRY;
        let mut tries = 1;
        let sent = loop {
            match self.collector.post(message.clone()).await {
                Err(NotTaken::Yet(_)) if tries < TRIES => sleep(pauses.next(rand::random())).await,
                sent => break sent,
            }
            tries += 1;
        };
        self.count(batch.len(), sent.is_ok());
        self.tell(&sent);
    }

    fn count(&self, spans: usize, taken: bool) {
        let counter = if taken { &self.counts.sent } else { &self.counts.dropped };
        counter.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// Logs a problem when it begins, and its end.
    fn tell(&mut self, sent: &Result<(), NotTaken>) {
        match sent {
            Err(why) if !self.has_warned => {
                tracing::warn!(%why, "the collector of traces takes no spans: they are dropped");
            }
            Ok(()) if self.has_warned => {
                tracing::info!("the collector of traces takes spans again");
            }
            _ => {}
        }
        self.has_warned = sent.is_err();
    }
}

/// Cuts a long text.
fn shorten(value: &mut Value) {
    if let Value::Text(text) = value
        && text.len() > LONGEST
    {
        text.truncate(text.floor_char_boundary(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use protocol::otlp::SpanKind;
    use testkit::{Collector as FakeCollector, DEADLINE, eventually};

    use super::*;

    fn span(name: &str) -> Span {
        Span {
            trace: [1; 16],
            id: [2; 8],
            parent: None,
            name: name.to_owned(),
            kind: SpanKind::Internal,
            start: 1,
            end: 2,
            attributes: vec![("text", "é".repeat(LONGEST).into())],
            error: None,
        }
    }

    fn to(url: &str) -> (Traces, Export) {
        let headers = "x-key=hush".into();
        Traces::to(Target::new(url, Some(&headers)).unwrap(), "s", "m", "1").unwrap()
    }

    #[tokio::test]
    async fn spans_arrive_together_and_the_last_ones_at_the_end() {
        let collector = FakeCollector::start().await;
        let (traces, export) = to(&collector.url());
        let stop = CancellationToken::new();
        let running = tokio::spawn(export.run(stop.clone()));
        (0..3).for_each(|number| traces.record(span(&format!("s{number}"))));
        let spans = collector.has_spans(3).await;
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["s0", "s1", "s2"]);
        assert_eq!(collector.requests(), 1, "in one message");
        assert!(spans[0].text("text").unwrap().len() <= LONGEST);
        assert_eq!(spans[0].resource["service.name"], "s");
        assert_eq!(collector.header("x-key").as_deref(), Some("hush"));
        traces.record(span("last"));
        stop.cancel();
        running.await.unwrap();
        assert_eq!(collector.spans().len(), 4);
        assert_eq!(traces.counts(), Counts { sent: 4, dropped: 0 });
        traces.record(span("too late"));
        assert_eq!(traces.counts().dropped, 1);
    }

    #[tokio::test]
    async fn a_collector_that_is_busy_gets_them_again_and_one_that_refuses_does_not() {
        let collector = FakeCollector::start().await;
        collector.refuse(&[503, 429]);
        let (traces, export) = to(&collector.url());
        let stop = CancellationToken::new();
        let running = tokio::spawn(export.run(stop.clone()));
        traces.record(span("a"));
        collector.has_spans(1).await;
        assert_eq!(collector.requests(), 3);
        collector.refuse(&[400]);
        traces.record(span("b"));
        let dropped = async || traces.counts().dropped == 1;
        eventually("the refused span being dropped", DEADLINE, dropped).await;
        stop.cancel();
        running.await.unwrap();
        assert_eq!(traces.counts(), Counts { sent: 1, dropped: 1 });
    }

    /// Over the bound spans are dropped, at once.
    #[tokio::test]
    async fn a_full_queue_drops_and_counts() {
        let (traces, export) = to("http://127.0.0.1:9");
        (0..MOST_WAITING + 7).for_each(|_| traces.record(span("s")));
        assert_eq!(traces.counts(), Counts { sent: 0, dropped: 7 });
        let stop = CancellationToken::new();
        stop.cancel();
        export.run(stop).await;
        let Counts { sent, dropped } = traces.counts();
        assert_eq!((sent, dropped), (0, MOST_WAITING as u64 + 7), "nobody is there");
    }
}
