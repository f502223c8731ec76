//! Watchers of the rooms: quick ones and slow ones, in every form of events. Now and then each goes
//! and comes back.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use testkit::{
    Random,
    lab::{
        Crew,
        http::{self, Answer},
    },
};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::rooms::{
    account::Report,
    frames::{Frame, Frames, Tokens, belongs},
    room::Room,
};

/// The longest that a watcher stays before it goes and comes back, in milliseconds.
const STAYS: u64 = 12_000;

/// How long a slow one waits between two reads.
const SLOW: Duration = Duration::from_millis(200);

/// How long the last events may be on their way, on a machine that is busy.
const LAST: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The spec's messages.
    Messages,
    Named,
    /// Our own events, with ids and tokens.
    NamedWithIds,
    All,
}

/// Starts a quick one and a slow one for each form, in each room.
pub(crate) fn start(rooms: &[Arc<Room>], random: &mut Random, report: &Report) -> Crew {
    let mut crew = Crew::of("a watcher");
    for room in rooms {
        for form in [Form::Messages, Form::Named, Form::NamedWithIds, Form::All] {
            for slow in [false, true] {
                let (room, report) = (Arc::clone(room), report.clone());
                let watcher = Watcher { room, form, slow, random: random.fork(), report };
                crew.spawn(watcher.run(crew.stop_token()));
            }
        }
    }
    crew
}

struct Watcher {
    room: Arc<Room>,
    form: Form,
    slow: bool,
    random: Random,
    report: Report,
}

/// A watcher's knowledge of the stream so far.
struct StreamPosition {
    tokens: Tokens,
    last_id: Option<u64>,
    lagged: bool,
}

impl Watcher {
    async fn run(mut self, stop: CancellationToken) {
        let mut seen: Option<StreamPosition> = None;
        while !stop.is_cancelled() {
            let stays = Duration::from_millis(1_000 + self.random.below(STAYS));
            let until = Instant::now() + stays;
            match self.watch(seen.take(), until, &stop).await {
                Ok(so_far) => seen = self.may_resume().then_some(so_far),
                Err(wrong) => {
                    let (room, form) = (self.room.number, self.form);
                    self.report.wrong(format!("a watcher of room {room} ({form:?}): {wrong}"));
                }
            }
        }
    }

    /// Stock events have no ids; and sometimes a watcher begins again without one.
    fn may_resume(&mut self) -> bool {
        self.form != Form::Named && self.random.chance(0.7)
    }

    async fn watch(
        &self,
        before: Option<StreamPosition>,
        until: Instant,
        stop: &CancellationToken,
    ) -> Result<StreamPosition, String> {
        let last_id = before.as_ref().and_then(|seen| seen.last_id);
        let mut answer = self.open(last_id).await?;
        let mut seen = match before.filter(|seen| seen.last_id.is_some() && !seen.lagged) {
            Some(seen) => {
                self.report.tally(|tally| tally.events_seen.resumed += 1);
                seen
            }
            None => {
                StreamPosition { tokens: Tokens::since(self.room.now()), last_id, lagged: false }
            }
        };
        let mut frames = Frames::default();
        loop {
            let piece = tokio::select! {
                biased;
                () = sleep_until(until) => return Ok(seen),
                // A slow watcher never catches up.
                () = stop.cancelled(), if self.slow => return Ok(seen),
                piece = answer.piece() => piece,
                () = stop.cancelled() => return self.at_the_end(seen, answer, frames).await,
            };
            match piece.map_err(|error| error.to_string())? {
                Some(piece) => self.read(&mut seen, frames.feed(&piece)?)?,
                None if seen.lagged && frames.is_whole() => return Ok(seen),
                None => return Err("its stream ended".to_owned()),
            }
            if self.slow {
                sleep(SLOW).await;
            }
        }
    }

    async fn open(&self, last_id: Option<u64>) -> Result<Answer, String> {
        let code = &self.room.code;
        let mut request = self.room.get(&match self.form {
            Form::Messages => format!("/rooms/{code}/events"),
            Form::Named => format!("/v1/rooms/{code}/events"),
            Form::NamedWithIds => format!("/v1/rooms/{code}/events?ids=true"),
            Form::All => "/events?role=tui".to_owned(),
        });
        if let Some(id) = last_id {
            request = request.header("last-event-id", &id.to_string());
        }
        let answer = match self.slow {
            true => http::send_slowly(self.room.address, &request).await,
            false => http::send(self.room.address, &request).await,
        };
        let answer = answer.map_err(|error| format!("no answer: {error}"))?;
        if answer.status == 200 { Ok(answer) } else { Err(format!("{}", answer.status)) }
    }

    fn read(&self, seen: &mut StreamPosition, frames: Vec<Frame>) -> Result<(), String> {
        for frame in frames {
            // The first of a stream has the id from which it goes on: the last that was seen.
            let opens = frame.event.as_deref() == Some("connected");
            let follows = |(last, id)| last < id || (opens && last == id);
            let risen = seen.last_id.zip(frame.id).is_none_or(follows);
            if !risen {
                return Err(format!("after {:?} came {:?}", seen.last_id, frame.text));
            }
            seen.last_id = frame.id.or(seen.last_id);
            self.frame(seen, &frame).map_err(|wrong| format!("{wrong} in {:?}", frame.text))?;
        }
        Ok(())
    }

    fn frame(&self, seen: &mut StreamPosition, frame: &Frame) -> Result<(), String> {
        if frame.tells_of_loss() {
            self.report.tally(|tally| tally.events_seen.lagged += 1);
            seen.lagged = true;
            // Requests whose tokens follow may have begun before.
            seen.tokens = Tokens::since(u64::MAX);
            return Ok(());
        }
        if frame.data.is_null() {
            return Ok(());
        }
        self.report.tally(|tally| tally.events_seen.events += 1);
        match self.form {
            Form::All => Ok(()),
            Form::Messages => self.message(seen, &frame.data),
            Form::Named | Form::NamedWithIds => self.event(seen, frame),
        }
    }

    fn message(&self, seen: &mut StreamPosition, said: &Value) -> Result<(), String> {
        if !belongs(&self.room, said) {
            return Err("another room's".to_owned());
        }
        match said["type"].as_str() {
            Some("llm:token") => self.token(seen, said),
            Some("llm:complete" | "llm:error") => seen.tokens.end(said),
            Some(_) => Ok(()),
            None => Err("no message".to_owned()),
        }
    }

    fn event(&self, seen: &mut StreamPosition, frame: &Frame) -> Result<(), String> {
        let said = &frame.data;
        if said["roomCode"] != *self.room.code || !belongs(&self.room, &said["data"]) {
            return Err("another room's".to_owned());
        }
        if said["type"].as_str() != frame.event.as_deref() || !said["timestamp"].is_u64() {
            return Err("no event".to_owned());
        }
        match (said["type"].as_str(), self.form) {
            // Named ends come from the job, not from the reading of its answer: tokens may follow.
            (Some("llm.token"), Form::NamedWithIds) => self.token(seen, &said["data"]),
            (Some("llm.token"), _) => Err("a token for a stock watcher".to_owned()),
            _ => Ok(()),
        }
    }

    fn token(&self, seen: &mut StreamPosition, token: &Value) -> Result<(), String> {
        self.report.tally(|tally| tally.events_seen.tokens += 1);
        seen.tokens.token(&self.room, token)
    }

    /// Everything is over: every request that had begun has ended, and the watcher gets to see it.
    async fn at_the_end(
        &self,
        mut seen: StreamPosition,
        mut answer: Answer,
        mut frames: Frames,
    ) -> Result<StreamPosition, String> {
        let is_told_all = self.form == Form::Messages && !self.slow;
        let until = Instant::now() + LAST;
        while is_told_all && !seen.lagged && !seen.tokens.open.is_empty() {
            let Ok(piece) = timeout(until - Instant::now(), answer.piece()).await else {
                return Err(format!("never ended: {:?}", seen.tokens.open));
            };
            match piece.map_err(|error| error.to_string())? {
                Some(piece) => self.read(&mut seen, frames.feed(&piece)?)?,
                None => return Err("its stream ended".to_owned()),
            }
        }
        Ok(seen)
    }
}
