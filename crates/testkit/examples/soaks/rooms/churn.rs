//! Participants that join, leave and die.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use testkit::{
    FakeParticipant, Put, Random,
    lab::{Crew, http},
};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::rooms::{
    account::Report,
    answers::{Answers, Overheard},
    room::Room,
};

/// How often participants ping and send heartbeats: more often than stock ones, which do every 10 s.
const BEAT: Duration = Duration::from_secs(2);

/// The longest that a participant serves, and the longest that its slot is empty then.
const SERVES: u64 = 6_000;
const AWAY: u64 = 1_500;

/// How long a frozen participant stays frozen: longer than a server waits for a ping.
const FROZEN: Duration = Duration::from_secs(35);

/// How many dead ones are left listed in a room.
const DEAD: usize = 200;

/// A slot for one participant at a time.
pub(crate) struct Slot {
    room: Arc<Room>,
    overheard: Arc<Overheard>,
    report: Report,
    number: usize,
    random: Random,
    life: u64,
    /// Whether it shows the token of its session, as those of our own kind do.
    shows_token: bool,
    session: Option<String>,
    stop: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Leaves,
    /// Its socket is dropped without a word.
    Dies,
    /// It joins again while it is connected.
    IsSuperseded,
    /// It says and hears nothing any more, but its socket stays.
    Freezes,
}

/// Fills `count` slots, spread over the rooms. When that is stopped, every participant finishes as it is.
pub(crate) fn start(
    rooms: &[Arc<Room>],
    count: usize,
    random: &mut Random,
    report: &Report,
) -> Crew {
    let (mut crew, overheard) = (Crew::of("a participant"), Arc::<Overheard>::default());
    for number in 0..count {
        let slot = Slot {
            room: Arc::clone(&rooms[number % rooms.len()]),
            overheard: Arc::clone(&overheard),
            report: report.clone(),
            number,
            random: random.fork(),
            life: 0,
            shows_token: false,
            session: None,
            stop: crew.stop_token(),
        };
        crew.spawn(slot.run());
    }
    crew
}

impl Slot {
    async fn run(mut self) {
        while !self.stop.is_cancelled() {
            if self.life == 0 || self.random.chance(0.5) {
                self.become_another().await;
            }
            let participant = self.join().await;
            self.live(participant).await;
            let away = Duration::from_millis(self.random.below(AWAY));
            self.stop.run_until_cancelled(sleep(away)).await;
        }
    }

    fn id(&self) -> String {
        self.room.id(self.number, self.life)
    }

    /// Takes a new id.
    async fn become_another(&mut self) {
        let dead = self.room.expected().values().filter(|connected| !**connected).count();
        if self.life > 0 && dead > DEAD {
            self.delete().await;
        }
        self.life += 1;
        self.session = None;
        self.shows_token = self.random.chance(0.5);
    }

    async fn join(&mut self) -> FakeParticipant {
        let slots = if self.number.is_multiple_of(3) { 4 } else { 1 };
        let mut put = Put::new(self.room.address, &self.room.code).id(&self.id()).beating(BEAT);
        put = put.field("password", json!(self.room.password()));
        put = put.field("maxConcurrent", json!(slots));
        if let Some(session) = self.session.as_ref().filter(|_| self.shows_token) {
            put = put.field("sessionToken", json!(session));
        }
        let participant = put.join().await;
        self.session = participant.joined["sessionToken"].as_str().map(str::to_owned);
        self.room.is_in(&self.id(), true);
        self.report.tally(|tally| tally.lives.joined += 1);
        participant
    }

    async fn live(&mut self, mut participant: FakeParticipant) {
        loop {
            self.serve(&mut participant).await;
            if self.stop.is_cancelled() && self.random.chance(0.5) {
                // Half of those that are left at the end stay connected until they are removed.
                return self.report.tally(|tally| tally.kept.push(participant));
            }
            match self.end() {
                End::IsSuperseded => participant = self.supersede(participant).await,
                End::Leaves => return self.leave(participant).await,
                End::Dies => return self.die(participant),
                End::Freezes => return self.freeze(participant).await,
            }
        }
    }

    fn end(&mut self) -> End {
        match self.random.below(100) {
            0..40 => End::Leaves,
            40..80 => End::Dies,
            80..97 => End::IsSuperseded,
            _ => End::Freezes,
        }
    }

    async fn serve(&mut self, participant: &mut FakeParticipant) {
        let until = Instant::now() + Duration::from_millis(self.random.below(SERVES));
        let mut answers = Answers::new(self.id(), Arc::clone(&self.overheard), self.random.fork());
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = sleep_until(until) => break,
                frame = answers.frame() => participant.say(&frame).await,
                ask = participant.expect_request() => {
                    if let Err(wrong) = answers.begin(&self.room, ask) {
                        self.report.wrong(wrong);
                    }
                }
            }
        }
        if participant.has_ended() {
            self.report.wrong(format!("a heartbeat of {} failed", self.id()));
        }
    }

    async fn supersede(&mut self, mut old: FakeParticipant) -> FakeParticipant {
        let new = self.join().await;
        let close = old.expect_close().await;
        if close.as_ref().is_none_or(|(code, _)| *code != 1000) {
            self.report.wrong(format!("{} was superseded and told {close:?}", self.id()));
        }
        self.report.tally(|tally| tally.lives.superseded += 1);
        new
    }

    async fn leave(&mut self, participant: FakeParticipant) {
        if self.shows_token {
            self.delete().await;
            return;
        }
        let left = participant.leave().await;
        self.left(left.status);
    }

    /// Removes its last participant from the room.
    async fn delete(&mut self) {
        let mut request = self.room.plane("DELETE", &format!("/participants/{}", self.id()));
        if let Some(session) = self.session.as_ref().filter(|_| self.shows_token) {
            request = request.header("x-warren-session", session);
        }
        let status = http::json(self.room.address, &request).await.map_or(0, |(status, _)| status);
        self.left(status);
    }

    fn left(&self, status: u16) {
        let known = self.room.expected().contains_key(&self.id());
        if status != if known { 200 } else { 404 } {
            self.report.wrong(format!("{} could not leave: {status}", self.id()));
        }
        self.room.is_out(&self.id());
        self.report.tally(|tally| tally.lives.left += 1);
    }

    fn die(&self, participant: FakeParticipant) {
        drop(participant);
        self.room.is_in(&self.id(), false);
        self.report.tally(|tally| tally.lives.died += 1);
    }

    async fn freeze(&self, participant: FakeParticipant) {
        participant.fall_silent();
        self.report.tally(|tally| tally.lives.froze += 1);
        self.stop.run_until_cancelled(sleep(FROZEN)).await;
        drop(participant);
        self.room.is_in(&self.id(), false);
    }
}
