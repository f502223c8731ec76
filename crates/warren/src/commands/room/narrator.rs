//! What happens in a room, told to people. Pure: events in, lines out.

use std::collections::HashMap;

use client::room::{
    ParticipantInfo, RoomEvent,
    event::{EventEnvelope, LlmDone, LlmFailed, LlmStarted},
    message::LlmToken,
    types::AnswerMetrics,
};
use jiff::Timestamp;

use super::{clean, show::machine, show::status};
use crate::commands::table::plain;

/// The most participants whose names are remembered.
const MOST_NAMES: usize = 2_000;

/// The most answers that are told at the same time, line by line; of others only the end is told.
const MOST_ANSWERS: usize = 64;

/// A line of an answer is told when it is so long, in bytes.
const LONG: usize = 400;

/// Tells what happens in a room.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    /// Nicknames by the ids of participants.
    names: HashMap<String, String>,
    /// The line that is not complete yet, by the ids of requests.
    answers: HashMap<String, String>,
}

impl Narrator {
    /// Learns who is in the room.
    pub(super) fn meet(&mut self, participant: &ParticipantInfo) {
        if self.names.len() < MOST_NAMES || self.names.contains_key(&participant.id) {
            self.names.insert(participant.id.clone(), participant.nickname.clone());
        }
    }

    /// The lines for an event; none for what is of no interest.
    pub(super) fn tell(&mut self, happened: &EventEnvelope) -> Vec<String> {
        let at = clock(happened.timestamp);
        let lines = self.lines(&happened.event);
        lines.into_iter().map(|line| format!("{at}  {line}")).collect()
    }

    fn lines(&mut self, event: &RoomEvent) -> Vec<String> {
        match event {
            RoomEvent::Connected(_) => Vec::new(),
            RoomEvent::RoomCreated(room) => {
                vec![format!("the room is called {}", plain(&room.room.name))]
            }
            RoomEvent::RoomClosed(closed) => {
                vec![format!("the room is closed: {}", plain(&closed.reason))]
            }
            RoomEvent::ParticipantJoined(who) => {
                self.meet(who);
                vec![joined(who)]
            }
            RoomEvent::ParticipantUpdated(who) => {
                self.meet(who);
                vec![format!("{} is {}", named(who), status(who.status))]
            }
            RoomEvent::ParticipantLeft(who) => {
                let line = format!("{} left", self.name(&who.participant_id));
                self.names.remove(&who.participant_id);
                vec![line]
            }
            RoomEvent::ParticipantOffline(who) => {
                vec![format!("{} is offline", self.name(&who.participant_id))]
            }
            RoomEvent::LlmRequest(request) => vec![self.started(request)],
            RoomEvent::LlmToken(token) => self.token(token),
            RoomEvent::LlmComplete(done) => self.done(done),
            RoomEvent::LlmError(failed) => self.failed(failed),
        }
    }

    fn started(&self, request: &LlmStarted) -> String {
        format!("→ {} is asked for {}", self.name(&request.participant_id), plain(&request.model))
    }

    fn token(&mut self, token: &LlmToken) -> Vec<String> {
        if self.answers.len() >= MOST_ANSWERS && !self.answers.contains_key(&token.request_id) {
            return Vec::new();
        }
        let open = self.answers.entry(token.request_id.clone()).or_default();
        open.push_str(&token.token);
        let end = match open.rfind('\n') {
            Some(end) => end + 1,
            None if open.len() >= LONG => open.len(),
            None => return Vec::new(),
        };
        let whole: String = open.drain(..end).collect();
        self.quote(&token.participant_id, &whole)
    }

    fn done(&mut self, done: &LlmDone) -> Vec<String> {
        let mut lines = self.rest(&done.request_id, &done.participant_id);
        let (who, model) = (self.name(&done.participant_id), plain(&done.model));
        lines.push(format!("✓ {who} answered with {model}: {}", metrics(&done.metrics)));
        lines
    }

    fn failed(&mut self, failed: &LlmFailed) -> Vec<String> {
        let mut lines = self.rest(&failed.request_id, &failed.participant_id);
        lines.push(format!("✗ {} failed: {}", self.name(&failed.participant_id), plain(&failed.error)));
        lines
    }

    /// What was said last without an end of the line.
    fn rest(&mut self, request: &str, participant: &str) -> Vec<String> {
        let open = self.answers.remove(request).unwrap_or_default();
        self.quote(participant, &open)
    }

    fn quote(&self, participant: &str, text: &str) -> Vec<String> {
        let who = self.name(participant);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| format!("  {who}: {}", clean(line))).collect()
    }

    fn name(&self, id: &str) -> String {
        match self.names.get(id) {
            Some(name) => plain(name),
            None if id.is_empty() => "nobody".to_owned(),
            None => plain(id),
        }
    }
}

fn named(who: &ParticipantInfo) -> String {
    plain(&who.nickname)
}

fn joined(who: &ParticipantInfo) -> String {
    let models = if who.models.is_empty() { who.model.clone() } else { who.models.join(", ") };
    let machine = machine(&who.specs);
    let on = if machine.is_empty() { String::new() } else { format!(" on {}", plain(&machine)) };
    format!("{} ({}) joined with {}{on}", named(who), plain(&who.id), plain(&models))
}

/// How an answer went, in a few words.
pub(super) fn metrics(metrics: &AnswerMetrics) -> String {
    let mut parts = Vec::new();
    if let Some(tokens) = metrics.output_tokens {
        parts.push(super::count(tokens, "token"));
    }
    parts.push(format!("{:.1} s", metrics.duration_ms as f64 / 1000.0));
    if let Some(rate) = metrics.tokens_per_second {
        parts.push(format!("{rate:.1} tokens/s"));
    }
    parts.push(format!("the first after {:.1} s", metrics.ttft_ms as f64 / 1000.0));
    parts.join(", ")
}

/// The time of the day, in UTC.
fn clock(ms: u64) -> String {
    let instant = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    instant.map_or("--:--:--Z".to_owned(), |instant| instant.strftime("%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn happened(kind: &str, data: Value) -> EventEnvelope {
        let event = json!({"type": kind, "timestamp": 1_700_000_000_000_u64, "roomCode": "ABC123",
            "data": data});
        serde_json::from_value(event).unwrap()
    }

    fn participant(id: &str, nickname: &str) -> Value {
        json!({"id": id, "nickname": nickname, "model": "llama3", "endpoint": "http://h",
            "config": {"hasInstructions": false}, "specs": {"ram": 32},
            "capabilities": {}, "connection": {"kind": "tunnel", "connected": true,
            "lastTunnelSeenAt": null}, "status": "online", "joinedAt": 1, "lastSeen": 1,
            "updatedAt": 1})
    }

    fn token(request: &str, text: &str) -> EventEnvelope {
        happened("llm.token", json!({"requestId": request, "participantId": "p1", "token": text,
            "seq": 0}))
    }

    #[test]
    fn participants_are_told_by_their_names() {
        let mut narrator = Narrator::default();
        let told = narrator.tell(&happened("participant.joined", participant("p1", "Ann\u{1b}")));
        assert_eq!(told, ["22:13:20Z  Ann\u{fffd} (p1) joined with llama3 on 32 GB RAM"]);
        let asked = json!({"requestId": "1", "participantId": "p1", "model": "*",
            "protocol": "chatCompletions"});
        let told = narrator.tell(&happened("llm.request", asked));
        assert_eq!(told, ["22:13:20Z  → Ann\u{fffd} is asked for *"]);
        let left = json!({"participantId": "p1"});
        assert_eq!(narrator.tell(&happened("participant.left", left.clone()))[0].len(), 22);
        assert!(narrator.tell(&happened("participant.offline", left))[0].ends_with("p1 is offline"));
        assert!(narrator.tell(&happened("connected", json!({"clientId": "c"}))).is_empty());
    }

    #[test]
    fn answers_are_told_line_by_line_and_with_their_metrics() {
        let mut narrator = Narrator::default();
        assert!(narrator.tell(&token("1", "Hel")).is_empty());
        let told = narrator.tell(&token("1", "lo\nwor"));
        assert_eq!(told, ["22:13:20Z    p1: Hello"]);
        let done = json!({"requestId": "1", "participantId": "p1", "model": "m",
            "protocol": "chatCompletions", "metrics": {"ttftMs": 200, "durationMs": 2000,
            "outputTokens": 3, "tokensPerSecond": 1.5}});
        let told = narrator.tell(&happened("llm.complete", done));
        let metrics = "3 tokens, 2.0 s, 1.5 tokens/s, the first after 0.2 s";
        assert_eq!(told[0], "22:13:20Z    p1: wor");
        assert_eq!(told[1], format!("22:13:20Z  ✓ p1 answered with m: {metrics}"));
        assert!(narrator.answers.is_empty());
    }

    #[test]
    fn a_flood_of_names_and_answers_is_not_remembered() {
        let mut narrator = Narrator::default();
        for n in 0..=MOST_NAMES {
            let who = participant(&n.to_string(), "x");
            narrator.tell(&happened("participant.joined", who));
        }
        for n in 0..=MOST_ANSWERS {
            narrator.tell(&token(&n.to_string(), "x"));
        }
        assert_eq!(narrator.names.len(), MOST_NAMES);
        assert_eq!(narrator.answers.len(), MOST_ANSWERS);
        let told = narrator.tell(&token("0", &"y".repeat(LONG)));
        assert_eq!((told.len(), narrator.answers["0"].as_str()), (1, ""));
    }
}
