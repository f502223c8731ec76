//! Counts what a participant has served. Pure.

use std::time::Duration;

use client::room::RoomEvent;

/// The counts of one participant, from the room's events.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Tally {
    tokens: u64,
    /// Tokens a second of the last answer.
    rate: Option<f64>,
    failed: u64,
}

impl Tally {
    /// Counts an event, if it is this participant's.
    pub(super) fn take(&mut self, id: &str, event: &RoomEvent) {
        match event {
            RoomEvent::LlmComplete(done) if done.participant_id == id => {
                self.tokens = self.tokens.saturating_add(done.metrics.output_tokens.unwrap_or(0));
                self.rate = done.metrics.tokens_per_second.or(self.rate);
            }
            RoomEvent::LlmError(failed) if failed.participant_id == id => {
                self.failed += 1;
            }
            _ => {}
        }
    }

    /// The status line.
    pub(super) fn line(&self, answered: u64, in_flight: u64, since: Duration) -> String {
        let mut parts = vec![format!("{answered} answered"), format!("{in_flight} in flight")];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.tokens > 0 {
            parts.push(format!("{} tokens", self.tokens));
        }
        if let Some(rate) = self.rate {
            parts.push(format!("{rate:.1} tokens/s"));
        }
        parts.push(span(since.as_secs()));
        parts.join(" · ")
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn done(id: &str, tokens: Option<u64>) -> RoomEvent {
        let rate = tokens.map(|_| 12.5);
        let metrics =
            json!({"ttftMs": 1, "durationMs": 2, "outputTokens": tokens, "tokensPerSecond": rate});
        let event = json!({"type": "llm.complete", "data": {"requestId": "r", "participantId": id,
            "model": "m", "protocol": "chatCompletions", "metrics": metrics}});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn only_its_own_answers_count() {
        let mut tally = Tally::default();
        tally.take("p1", &done("p2", Some(7)));
        assert_eq!(tally.line(0, 1, Duration::from_secs(5)), "0 answered · 1 in flight · 5s");
        tally.take("p1", &done("p1", Some(7)));
        tally.take("p1", &done("p1", None));
        let line = tally.line(2, 0, Duration::from_secs(3_700));
        assert_eq!(line, "2 answered · 0 in flight · 7 tokens · 12.5 tokens/s · 1h01m");
    }
}
