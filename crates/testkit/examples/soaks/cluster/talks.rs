//! Clients that type numbered lines into sessions of other members, and read them back.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Random,
    workspace::{Follow, ServerMessage, Step, WorkspaceClient},
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::cluster::{
    account::Report,
    changes,
    ledger::{Kind, Ledger},
    members::Members,
};

/// The script's text when no key is echoed any more.
const READY: &str = "ready>";
const SCRIPT: &str = "stty -echo; echo 'ready>'; while read -r line; do echo \"got $line\"; done";
/// A line is acknowledged, or refused, within this time.
const ANSWER: Duration = Duration::from_secs(45);
/// All is shown this long after the last fault.
const REST: Duration = Duration::from_secs(60);
/// A refused line is typed again after this time.
const AGAIN: Duration = Duration::from_millis(200);
/// Between two lines.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a connection is kept, at most.
const CONNECTION: u64 = 15_000;

/// Talks to one session after the other, until there are no more faults.
pub(crate) async fn talk(
    members: Arc<Members>,
    ledger: Arc<Ledger>,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        let (entry, owner) = (members.any(&mut random), members.any(&mut random));
        let opened = changes::open(&members, entry, owner, ledger.name(), SCRIPT).await;
        let (id, object) = match opened {
            Ok(opened) => opened,
            Err(words) => {
                changes::failed(&words, &report);
                sleep(AGAIN).await;
                continue;
            }
        };
        let kills = object.kills;
        ledger.made(Kind::Session, &id, object.taken());
        let is_lost = || members.kills(owner) != kills;
        let mut talk = Talk::of(&id, until);
        while !talk.is_done() && !is_lost() {
            let entry = members.any_but(owner, &mut random);
            if let Err(wrong) = talk.over(&members, entry, &mut random, &is_lost).await
                && !is_lost()
            {
                report.wrong(format!("{id} of {owner}, through {entry}: {wrong}"));
                break;
            }
        }
        report.tally(|counts| {
            counts.lines += talk.acknowledged;
            counts.again += talk.again;
            counts.whole += u64::from(talk.is_done());
        });
    }
}

struct Talk {
    id: String,
    follow: Follow,
    /// No line is begun later.
    until: Instant,
    acknowledged: u64,
    /// When the present line was typed, or is typed again.
    typed: Option<Instant>,
    due: Option<Instant>,
    again: u64,
    /// No line is begun earlier.
    pause: Instant,
    shown: Shown,
}

impl Talk {
    fn of(id: &str, until: Instant) -> Self {
        Self {
            id: id.to_owned(),
            follow: Follow::new(id),
            until,
            acknowledged: 0,
            typed: None,
            due: None,
            again: 0,
            pause: Instant::now(),
            shown: Shown::default(),
        }
    }

    /// Whether every line was acknowledged and shown.
    fn is_done(&self) -> bool {
        let ended = Instant::now() >= self.until && self.typed.is_none();
        ended && self.shown.next == self.acknowledged
    }

    /// Goes on over a connection to this member.
    async fn over(
        &mut self,
        members: &Members,
        entry: usize,
        random: &mut Random,
        is_lost: &impl Fn() -> bool,
    ) -> Result<(), String> {
        let Some(mut client) = members.client(entry).await else {
            sleep(AGAIN).await;
            return Ok(());
        };
        let end = Instant::now() + Duration::from_millis(500 + random.below(CONNECTION));
        client.say(self.follow.attach()).await;
        // A line that the last connection left open is typed again.
        self.due = self.typed.map(|_| Instant::now());
        while !is_lost() && !self.is_done() && (Instant::now() < end || Instant::now() > self.until)
        {
            self.type_next(&mut client).await?;
            let look = Instant::now() + PAUSE;
            let Ok(heard) = timeout_at(look, client.next_ever()).await else { continue };
            let Some(heard) = heard else { break };
            if !self.take(&heard)? {
                sleep(AGAIN).await;
                break;
            }
        }
        Ok(())
    }

    async fn type_next(&mut self, client: &mut WorkspaceClient) -> Result<(), String> {
        let now = Instant::now();
        if now > self.until + REST {
            let (shown, acknowledged) = (self.shown.next, self.acknowledged);
            return Err(format!(
                "{shown} lines are shown, of {acknowledged} that were acknowledged"
            ));
        }
        match self.typed {
            Some(typed) if now > typed + ANSWER => {
                return Err(format!("line {} was not acknowledged", self.acknowledged));
            }
            Some(_) if self.due.is_none_or(|due| now < due) => return Ok(()),
            Some(_) => self.again += 1,
            None if now >= self.until || now < self.pause || !self.shown.is_ready => return Ok(()),
            None => {}
        }
        (self.typed, self.due) = (Some(now), None);
        let number = self.acknowledged;
        let line = json!({
            "type": "terminal_input", "session_id": self.id, "data": format!("{number}\n"),
            "input_id": format!("line {number}"),
        });
        client.say(line).await;
        Ok(())
    }

    /// Whether the session is known there.
    fn take(&mut self, heard: &ServerMessage) -> Result<bool, String> {
        if let ServerMessage::Message(message) = heard {
            match heard.kind() {
                "input_ack" if message["input_id"] == format!("line {}", self.acknowledged) => {
                    self.acknowledged += 1;
                    self.typed = None;
                    self.pause = Instant::now() + PAUSE;
                }
                "session_unknown" if message["session_id"] == *self.id => return Ok(false),
                "error" => return self.refused(message),
                _ => {}
            }
        }
        match self.follow.take(heard)? {
            Step::Nothing => {}
            Step::Paint(_, _, text) => self.shown.paint(&text)?,
            Step::Write(text) => self.shown.write(&text)?,
        }
        Ok(true)
    }

    /// A request whose end is open is asked again. One that does not say so is wrong.
    fn refused(&mut self, error: &Value) -> Result<bool, String> {
        let words = error["message"].as_str().unwrap_or_default();
        if !["cannot be reached", "was lost"].iter().any(|known| words.contains(known)) {
            return Err(format!("it was refused: {words}"));
        }
        self.due = self.typed.map(|_| Instant::now() + AGAIN);
        Ok(true)
    }
}

/// The lines that are shown.
#[derive(Default)]
struct Shown {
    is_ready: bool,
    rest: String,
    next: u64,
}

impl Shown {
    /// A snapshot ends with the newest line.
    fn paint(&mut self, text: &str) -> Result<(), String> {
        self.rest.clear();
        self.is_ready |= text.contains(READY);
        let numbers = text.rsplit("got ").next().filter(|_| text.contains("got "));
        let Some(newest) = numbers else { return Ok(()) };
        let digits: String = newest.chars().take_while(char::is_ascii_digit).collect();
        let newest: u64 = digits.parse().map_err(|_| format!("a screen ends with {newest:?}"))?;
        if newest + 1 < self.next {
            return Err(format!("a screen ends with line {newest}; {} was shown", self.next - 1));
        }
        self.next = newest + 1;
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        self.rest.push_str(text);
        while let Some(end) = self.rest.find("\r\n") {
            let line: String = self.rest.drain(..end + 2).collect();
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.ends_with(READY) {
            self.is_ready = true;
            return Ok(());
        }
        let expected = format!("got {}", self.next);
        if line != expected {
            return Err(format!("{line:?} came where {expected:?} should have"));
        }
        self.next += 1;
        Ok(())
    }
}
