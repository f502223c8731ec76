//! Puts the events of a room into words. Pure: events in, lines out.

use std::collections::{HashMap, VecDeque};

use client::room::{
    ParticipantInfo, RoomEvent, Status,
    event::{EventEnvelope, LlmDone, LlmFailed, LlmStarted},
    message::LlmToken,
};
use jiff::Timestamp;

use super::{show::machine, show::status};
use crate::commands::{answer::metrics, table::plain};

/// The most participants whose names are remembered.
const MOST_NAMES: usize = 2_000;

/// The most answers that are quoted at the same time; of others only the end is shown.
const MOST_ANSWERS: usize = 64;

/// The bytes after which a line of an answer is quoted even without its end.
const LONG: usize = 400;

/// The last reported state of a participant.
#[derive(Debug, PartialEq)]
pub(super) struct LastReported {
    name: String,
    status: Status,
    models: String,
}

/// Turns events into lines.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    /// The last reported states, by the participants' ids.
    last_reported: HashMap<String, LastReported>,
    /// Incomplete lines of answers, by the requests' ids.
    answers: HashMap<String, String>,
    /// The requests that ended last. Late tokens of these are shown at once, since no more may follow.
    ended: VecDeque<String>,
}

impl Narrator {
    /// Notes a participant, and returns its state before.
    pub(super) fn meet(&mut self, who: &ParticipantInfo) -> Option<LastReported> {
        let known =
            LastReported { name: plain(&who.nickname), status: who.status, models: models(who) };
        if self.last_reported.len() >= MOST_NAMES && !self.last_reported.contains_key(&who.id) {
            return None;
        }
        self.last_reported.insert(who.id.clone(), known)
    }

    /// The lines for an event.
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
                let before = self.meet(who);
                updated(who, before.as_ref()).into_iter().collect()
            }
            RoomEvent::ParticipantLeft(who) => {
                let line = format!("{} left", self.name(&who.participant_id));
                self.last_reported.remove(&who.participant_id);
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
        if self.ended.contains(&token.request_id) {
            return self.rest(&token.request_id, &token.participant_id);
        }
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
        lines.push(format!(
            "✗ {} failed: {}",
            self.name(&failed.participant_id),
            plain(&failed.error)
        ));
        lines
    }

    /// The last, unended line of an answer.
    fn rest(&mut self, request: &str, participant: &str) -> Vec<String> {
        let open = self.answers.remove(request).unwrap_or_default();
        if !self.ended.iter().any(|ended| ended == request) {
            self.ended.push_back(request.to_owned());
            let over = self.ended.len().saturating_sub(MOST_ANSWERS);
            self.ended.drain(..over);
        }
        self.quote(participant, &open)
    }

    fn quote(&self, participant: &str, text: &str) -> Vec<String> {
        let who = self.name(participant);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| format!("  {who}: {}", base::plain::lines(line))).collect()
    }

    fn name(&self, id: &str) -> String {
        match self.last_reported.get(id) {
            Some(known) => known.name.clone(),
            None if id.is_empty() => "nobody".to_owned(),
            None => plain(id),
        }
    }
}

fn models(who: &ParticipantInfo) -> String {
    plain(&if who.models.is_empty() { who.model.clone() } else { who.models.join(", ") })
}

fn joined(who: &ParticipantInfo) -> String {
    let machine = machine(&who.specs);
    let on = if machine.is_empty() { String::new() } else { format!(" on {}", plain(&machine)) };
    format!("{} ({}) joined with {}{on}", plain(&who.nickname), plain(&who.id), models(who))
}

/// A change of a participant that is worth a line.
fn updated(who: &ParticipantInfo, before: Option<&LastReported>) -> Option<String> {
    let name = plain(&who.nickname);
    if before.is_none_or(|before| before.status != who.status) {
        return Some(format!("{name} is {}", status(who.status)));
    }
    let other = before.is_some_and(|before| before.models != models(who));
    other.then(|| format!("{name} now has {}", models(who)))
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

    #[expect(clippy::needless_pass_by_value, reason = "it is made for this call")]
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
        happened(
            "llm.token",
            json!({"requestId": request, "participantId": "p1", "token": text,
            "seq": 0}),
        )
    }

    #[test]
    fn participants_are_shown_by_name() {
        let mut narrator = Narrator::default();
        let lines = narrator.tell(&happened("participant.joined", participant("p1", "Ann\u{1b}")));
        assert_eq!(lines, ["22:13:20Z  Ann\u{fffd} (p1) joined with llama3 on 32 GB RAM"]);
        let request = json!({"requestId": "1", "participantId": "p1", "model": "*",
            "protocol": "chatCompletions"});
        let lines = narrator.tell(&happened("llm.request", request));
        assert_eq!(lines, ["22:13:20Z  → Ann\u{fffd} is asked for *"]);
        let mut changed = participant("p1", "Ann");
        assert!(narrator.tell(&happened("participant.updated", changed.clone())).is_empty());
        changed["status"] = json!("busy");
        assert!(
            narrator.tell(&happened("participant.updated", changed.clone()))[0]
                .ends_with("Ann is busy")
        );
        changed["model"] = json!("qwen");
        assert!(
            narrator.tell(&happened("participant.updated", changed))[0].ends_with("now has qwen")
        );
        let left = json!({"participantId": "p1"});
        assert_eq!(
            narrator.tell(&happened("participant.left", left.clone())),
            ["22:13:20Z  Ann left"]
        );
        assert!(
            narrator.tell(&happened("participant.offline", left))[0].ends_with("p1 is offline")
        );
        assert!(narrator.tell(&happened("connected", json!({"clientId": "c"}))).is_empty());
    }

    #[test]
    fn answers_are_quoted_line_by_line_with_metrics() {
        let mut narrator = Narrator::default();
        assert!(narrator.tell(&token("1", "Hel")).is_empty());
        let lines = narrator.tell(&token("1", "lo\nwor"));
        assert_eq!(lines, ["22:13:20Z    p1: Hello"]);
        let done = json!({"requestId": "1", "participantId": "p1", "model": "m",
            "protocol": "chatCompletions", "metrics": {"ttftMs": 200, "durationMs": 2000,
            "outputTokens": 3, "tokensPerSecond": 1.5}});
        let lines = narrator.tell(&happened("llm.complete", done));
        let metrics = "3 tokens, 2.0 s, 1.5 tokens/s, the first after 0.2 s";
        assert_eq!(lines[0], "22:13:20Z    p1: wor");
        assert_eq!(lines[1], format!("22:13:20Z  ✓ p1 answered with m: {metrics}"));
        assert!(narrator.answers.is_empty());
        assert_eq!(narrator.tell(&token("1", "ld")), ["22:13:20Z    p1: ld"], "it came late");
        assert!(narrator.answers.is_empty());
    }

    #[test]
    fn names_and_answers_are_bounded() {
        let mut narrator = Narrator::default();
        for n in 0..=MOST_NAMES {
            let who = participant(&n.to_string(), "x");
            narrator.tell(&happened("participant.joined", who));
        }
        for n in 0..=MOST_ANSWERS {
            narrator.tell(&token(&n.to_string(), "x"));
        }
        assert_eq!(narrator.last_reported.len(), MOST_NAMES);
        assert_eq!(narrator.answers.len(), MOST_ANSWERS);
        let lines = narrator.tell(&token("0", &"y".repeat(LONG)));
        assert_eq!((lines.len(), narrator.answers["0"].as_str()), (1, ""));
    }
}
