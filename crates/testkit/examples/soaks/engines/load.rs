//! The clients.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{
    Client, Random,
    lab::{self, http},
};
use tokio::time::{sleep, timeout};

/// A request that has not ended by then has been forgotten.
const LOST_AFTER: Duration = Duration::from_secs(180);

/// How long a client waits for a server that is not there.
const AGAIN: Duration = Duration::from_millis(200);

/// The most tokens of an answer.
const TOKENS: u64 = 40;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) answered: u64,
    /// Of those, the streams.
    pub(crate) streams: u64,
    pub(crate) failed: u64,
    /// How often each reason of a failure was given.
    pub(crate) reasons: BTreeMap<String, u64>,
    /// The most engines at once.
    pub(crate) most: usize,
    /// The engines that were seen.
    pub(crate) loads: usize,
}

pub(crate) type Report = lab::Report<Tally>;

pub(crate) struct Load {
    requests: u64,
    next: AtomicU64,
    address: SocketAddr,
    models: Vec<String>,
}

/// How a request ended.
enum End {
    Answered { stream: bool },
    Failed { reason: String },
}

impl Load {
    pub(crate) fn new(requests: u64, address: SocketAddr, models: Vec<String>) -> Self {
        Self { requests, next: AtomicU64::new(0), address, models }
    }

    /// One client: request after request, until there are no more to make.
    pub(crate) async fn client(self: Arc<Self>, mut random: Random, report: Report) {
        while self.next.fetch_add(1, Ordering::Relaxed) < self.requests {
            let (path, body) = self.request(&mut random);
            report.tally(|tally| tally.requests += 1);
            match timeout(LOST_AFTER, self.ask(path, &body)).await {
                Ok(Ok(end)) => note(&report, end),
                Ok(Err(wrong)) => report.wrong(format!("{path} {body}: {wrong}")),
                Err(_) => report.wrong(format!("{path} {body} was neither answered nor failed")),
            }
        }
    }

    /// Some models are asked for far more often than others.
    fn request(&self, random: &mut Random) -> (&'static str, Value) {
        let most = random.below(self.models.len() as u64) + 1;
        let model = &self.models[random.below(most) as usize];
        let (stream, tokens) = (random.chance(0.6), random.below(TOKENS) + 1);
        let mut body = json!({"model": model, "stream": stream, "max_tokens": tokens});
        if random.chance(0.25) {
            body["prompt"] = json!("the rabbit");
            return ("/v1/completions", body);
        }
        body["messages"] = json!([{"role": "user", "content": "the rabbit"}]);
        let path = if random.chance(0.3) { "/v1/messages" } else { "/v1/chat/completions" };
        (path, body)
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<End, String> {
        let request = Client::new(self.address).post(path, body);
        let answer = loop {
            match http::send(self.address, &request).await {
                Ok(answer) => break answer,
                // The server is being started again, and has not taken the request.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    sleep(AGAIN).await;
                }
                Err(_) => return failed("the server was killed"),
            }
        };
        let (status, is_stream) = (answer.status, answer.is_stream());
        let (text, ended) = answer.text().await;
        match ended {
            Err(_) => failed("the server was killed in the middle of an answer"),
            Ok(()) if is_stream => end_of_stream(path, &text),
            Ok(()) => end_of_whole(status, &text),
        }
    }
}

fn failed(reason: &str) -> Result<End, String> {
    Ok(End::Failed { reason: reason.to_owned() })
}

fn end_of_whole(status: u16, text: &str) -> Result<End, String> {
    let body: Value = serde_json::from_str(text).map_err(|_| format!("{status} {text}"))?;
    if status == 200 {
        let said = body["choices"].is_array() || body["content"].is_array();
        return if said { Ok(End::Answered { stream: false }) } else { Err(text.to_owned()) };
    }
    match body["error"]["message"].as_str() {
        Some(reason) if !reason.is_empty() => {
            failed(&format!("{status} {}", without_numbers(reason)))
        }
        _ => Err(format!("{status} without a reason: {text}")),
    }
}

/// A stream has one end: its last event, or an error.
fn end_of_stream(path: &str, text: &str) -> Result<End, String> {
    let last = if path == "/v1/messages" { "event: message_stop" } else { "data: [DONE]" };
    let events = lab::without_comments(text);
    let error = events.lines().filter_map(|line| line.strip_prefix("data: ")).find_map(|data| {
        let data: Value = serde_json::from_str(data).ok()?;
        data["error"]["message"].as_str().map(str::to_owned)
    });
    match (error, events.matches(last).count()) {
        (None, 1) => Ok(End::Answered { stream: true }),
        (Some(reason), 0 | 1) => failed(&format!("in a stream: {}", without_numbers(&reason))),
        (_, ends) => Err(format!("a stream with {ends} ends: {text}")),
    }
}

/// A reason without what differs from one time to the next.
fn without_numbers(reason: &str) -> String {
    const SHOWN: usize = 160;
    let line = reason.lines().next().unwrap_or_default();
    let plain = line.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter });
    let text: String = plain.take(SHOWN).collect();
    text.replace("##", "#").replace("##", "#")
}

fn note(report: &Report, end: End) {
    report.tally(|tally| match end {
        End::Answered { stream } => {
            tally.answered += 1;
            tally.streams += u64::from(stream);
        }
        End::Failed { reason } => {
            tally.failed += 1;
            *tally.reasons.entry(reason).or_default() += 1;
        }
    });
}
