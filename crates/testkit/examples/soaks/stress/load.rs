//! The clients, and what they ask of the backend.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{Client, Gate, MockBackend, Random, Reply, Response, Streaming, lab};
use tokio::time::timeout;

use crate::stress::Settings;

const PATH: &str = "/v1/chat/completions";

/// A request that has not ended by then has been forgotten.
const LOST_AFTER: Duration = Duration::from_secs(90);

const HANG_UPS: f64 = 0.1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Answered,
    /// Its client hung up, as it was meant to.
    HungUp,
    /// Its worker was lost after the answer had begun: the stream ended with the error event.
    EndedByEvent,
    /// Its worker was lost after a plain answer had begun: the connection was cut.
    Cut,
    /// Its workers were lost four times before the answer began.
    Exhausted,
    Wrong(String),
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) answered: u64,
    pub(crate) hung_up: u64,
    pub(crate) ended_by_event: u64,
    pub(crate) cut: u64,
    pub(crate) exhausted: u64,
}

pub(crate) type Report = lab::Report<Tally>;

impl Tally {
    fn add(&mut self, fate: RequestEnd) -> Option<String> {
        self.requests += 1;
        match fate {
            RequestEnd::Answered => self.answered += 1,
            RequestEnd::HungUp => self.hung_up += 1,
            RequestEnd::EndedByEvent => self.ended_by_event += 1,
            RequestEnd::Cut => self.cut += 1,
            RequestEnd::Exhausted => self.exhausted += 1,
            RequestEnd::Wrong(what) => return Some(what),
        }
        None
    }
}

/// Lets the backend answer each request with what its number asks for.
pub(crate) fn script(backend: &MockBackend, seed: u64) {
    let random = Mutex::new(Random::new(seed));
    let gate = Gate::closed();
    backend.answer_with(move |received| {
        let mut random = random.lock().expect("nobody panics with it");
        let body = received.json();
        let number = body["number"].as_u64().unwrap_or_default();
        let each = Duration::from_millis(random.below(12));
        if body["stream"] == true {
            Reply::stream(chunks(number), &gate).thinking(each)
        } else {
            let whole = Duration::from_millis(random.below(100));
            Reply::json(200, &json!({"number": number})).after(&gate).thinking(whole)
        }
    });
}

fn chunks(number: u64) -> Vec<String> {
    let chunk = |part: u64| format!("data: {{\"number\":{number},\"part\":{part}}}\n\n");
    let mut chunks: Vec<_> = (0..number % 16).map(chunk).collect();
    chunks.push("data: [DONE]\n\n".to_owned());
    chunks
}

pub(crate) struct Load {
    client: Client,
    next: AtomicU64,
    requests: u64,
    until: Option<Instant>,
}

impl Load {
    pub(crate) fn new(settings: &Settings, client: Client) -> Self {
        let until = settings.time.map(|time| Instant::now() + time);
        Self { client, next: AtomicU64::new(0), requests: settings.requests, until }
    }

    /// One client: request after request, until there are no more to make.
    pub(crate) async fn client(self: Arc<Self>, mut random: Random, report: Report) {
        while let Some(number) = self.take() {
            let ended = timeout(LOST_AFTER, self.ask(number, &mut random)).await;
            let lost = |_| RequestEnd::Wrong(format!("{number} was neither answered nor failed"));
            report.check(|tally| tally.add(ended.unwrap_or_else(lost)));
        }
    }

    fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let more = match self.until {
            Some(until) => Instant::now() < until,
            None => number < self.requests,
        };
        more.then_some(number)
    }

    async fn ask(&self, number: u64, random: &mut Random) -> RequestEnd {
        let stream = random.chance(0.5);
        let leaves = random.chance(HANG_UPS);
        let body = json!({"model": "m", "number": number, "stream": stream, "messages": []});
        let connection = self.client.post(PATH, &body).open().await;
        if leaves {
            let patience = Duration::from_millis(random.below(60));
            return hang_up(patience, connection.try_answer()).await;
        }
        match connection.try_answer().await {
            Ok(answer) if stream && answer.status == 200 => judge_stream(number, answer).await,
            Ok(answer) => judge(number, answer).await,
            Err(error) => RequestEnd::Wrong(format!("{number}: no answer at all: {error}")),
        }
    }
}

/// Reads for a while, then drops the connection, wherever the answer is.
async fn hang_up(
    patience: Duration,
    answer: impl Future<Output = io::Result<Streaming>>,
) -> RequestEnd {
    let reading = async {
        if let Ok(answer) = answer.await {
            // The end does not matter: the client has left.
            let _ended = answer.try_finish().await;
        }
    };
    let _left = timeout(patience, reading).await;
    RequestEnd::HungUp
}

async fn judge(number: u64, answer: Streaming) -> RequestEnd {
    let status = answer.status;
    match answer.try_finish().await {
        Ok(answer) => judge_whole(number, &answer),
        Err(_) if status == 200 => RequestEnd::Cut,
        Err(error) => RequestEnd::Wrong(format!("{number}: {status}, then {error}")),
    }
}

fn judge_whole(number: u64, answer: &Response) -> RequestEnd {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match answer.status {
        200 if body == json!({"number": number}) => RequestEnd::Answered,
        503 if body["error"]["message"] == "requeue attempts exhausted" => RequestEnd::Exhausted,
        status => RequestEnd::Wrong(format!("{number}: {status} {}", answer.text())),
    }
}

async fn judge_stream(number: u64, answer: Streaming) -> RequestEnd {
    let text = match answer.try_finish().await {
        Ok(answer) => answer.text(),
        Err(error) => return RequestEnd::Wrong(format!("{number}: a stream was cut: {error}")),
    };
    let whole = chunks(number).concat();
    if text == whole {
        return RequestEnd::Answered;
    }
    // A beginning of the stream as it should be, and one event that ends it.
    let ended = text
        .rsplit_once("data: {\"error\":")
        .is_some_and(|(begun, event)| whole.starts_with(begun) && event.ends_with("}\n\n"));
    if ended { RequestEnd::EndedByEvent } else { RequestEnd::Wrong(format!("{number}: {text:?}")) }
}
