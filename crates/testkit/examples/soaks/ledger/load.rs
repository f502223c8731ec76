//! The clients.

use std::{
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Client, Random, Streaming, lab};
use tokio::time::timeout;

use crate::{
    ledger::backend::{LEFT, WHOLE, WORD},
    tokens::{APIS, Api},
};

/// A request that has not ended by then has been forgotten.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// The share of streams whose client leaves.
const LEAVERS: f64 = 0.25;

/// The most words that a client waits for before it leaves.
const MOST_WORDS: u64 = 30;

pub(crate) type Report = lab::Report<()>;

pub(crate) struct Load {
    requests: u64,
    next: AtomicU64,
    client: Client,
}

impl Load {
    pub(crate) fn new(requests: u64, client: Client) -> Self {
        Self { requests, next: AtomicU64::new(0), client }
    }

    /// One client: request after request, until there are no more to make.
    pub(crate) async fn client(self: Arc<Self>, mut random: Random, report: Report) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.requests {
                return;
            }
            let asked = self.ask(number, &mut random);
            match timeout(LOST_AFTER, asked).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => report.wrong(format!("request {number}: {why}")),
                Err(_) => report.wrong(format!("request {number} was neither answered nor failed")),
            }
        }
    }

    async fn ask(&self, number: u64, random: &mut Random) -> Result<(), String> {
        let api = APIS[random.below(APIS.len() as u64) as usize];
        let stream = !matches!(api, Api::Embeddings) && random.chance(0.6);
        if stream && random.chance(LEAVERS) {
            return self.leave(api, number, random.below(MOST_WORDS) + 1).await;
        }
        let mut body = api.body(WHOLE, stream, &format!("n={number}"));
        // Some clients ask for the usage themselves.
        if stream && matches!(api, Api::Chat) && random.chance(0.5) {
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = self.start(api, &body).await?;
        let whole = answer.try_finish().await.map_err(|error| format!("{api:?}: {error}"))?;
        let text = whole.text();
        let failed = text.contains("\"error\":{") || text.contains("event: error");
        if failed { Err(format!("{api:?}: {text}")) } else { Ok(()) }
    }

    /// Waits for `words` words of a stream, and leaves.
    async fn leave(&self, api: Api, number: u64, words: u64) -> Result<(), String> {
        let body = api.body(LEFT, true, &format!("n={number} words={words}"));
        let mut answer = self.start(api, &body).await?;
        let word = format!("\"{WORD}\"");
        let mut text = String::new();
        while (text.matches(&word).count() as u64) < words {
            let chunk = answer.try_chunk().await.map_err(|error| error.to_string())?;
            let chunk = chunk.ok_or_else(|| format!("{api:?} ended early: {text}"))?;
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        Ok(())
    }

    async fn start(&self, api: Api, body: &Value) -> Result<Streaming, String> {
        let connection = self.client.post(api.path(), body).open().await;
        let answer = connection.try_answer().await.map_err(|error| format!("{api:?}: {error}"))?;
        match answer.status {
            200 => Ok(answer),
            status => Err(format!("{api:?}: {status} {}", answer.finish().await.text())),
        }
    }
}
