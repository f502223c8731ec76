//! An answer as it is sent, and its pace.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

/// The steps to send, in order.
#[derive(Debug, Default)]
pub(super) struct Script(VecDeque<Step>);

#[derive(Debug)]
struct Step {
    bytes: Bytes,
    /// Whether it is a word, which comes at the pace of words.
    word: bool,
}

impl Script {
    /// One step with all bytes.
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self([Step { bytes, word: false }].into())
    }

    /// Adds an event; `name` is empty for events without one.
    pub(super) fn event(&mut self, name: &str, data: &Value) {
        self.push(sse(name, &data.to_string()), false);
    }

    /// Adds an event with one word, which is sent at the pace of words.
    pub(super) fn word(&mut self, name: &str, data: &Value) {
        self.push(sse(name, &data.to_string()), true);
    }

    /// Adds `[DONE]`, the end of a stream in OpenAI's older APIs.
    pub(super) fn done(&mut self) {
        self.push(sse("", "[DONE]"), false);
    }

    /// Begins to send, with this many words per second; 0: as fast as the client reads.
    pub(super) fn play(self, pace: u32) -> DemoBody {
        let gap = if pace == 0 { Duration::ZERO } else { Duration::from_secs(1) / pace };
        DemoBody { steps: self.0, gap, next: Instant::now() }
    }

    fn push(&mut self, event: String, word: bool) {
        self.0.push_back(Step { bytes: event.into(), word });
    }
}

fn sse(name: &str, data: &str) -> String {
    match name {
        "" => format!("data: {data}\n\n"),
        _ => format!("event: {name}\ndata: {data}\n\n"),
    }
}

/// The body of a demo's answer.
#[derive(Debug)]
pub struct DemoBody {
    steps: VecDeque<Step>,
    gap: Duration,
    /// When the next word is due.
    next: Instant,
}

impl DemoBody {
    /// A body whose bytes all come at once.
    pub(crate) fn whole(body: String) -> Self {
        Script::whole(Bytes::from(body)).play(0)
    }

    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let step = self.steps.front()?;
        if step.word && !self.gap.is_zero() {
            sleep_until(self.next).await;
            // Counted from now, so that a reader that paused does not get the missed words in a
            // burst.
            self.next = Instant::now() + self.gap;
        }
        self.steps.pop_front().map(|step| step.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn words_come_at_their_pace_and_the_rest_at_once() {
        let mut script = Script::default();
        script.event("", &Value::Null);
        (0..5).for_each(|n| script.word("w", &n.into()));
        script.done();
        let start = Instant::now();
        let mut body = script.play(10);
        let mut times = Vec::new();
        while let Some(bytes) = body.next().await {
            times.push((bytes.len(), start.elapsed().as_millis() / 100));
        }
        let (head, word, done) = (12, 18, 14);
        assert_eq!(
            times,
            [(head, 0), (word, 0), (word, 1), (word, 2), (word, 3), (word, 4), (done, 4)]
        );
    }
}
