//! A room that is watched, or was.

use base::Secret;
use client::ClientError;
use protocol::room::{
    ParticipantInfo, RoomEvent, RoomSummary, Status,
    event::{EventEnvelope, LlmDone},
};

use super::{
    activity::Activity,
    event::RoomNews,
    list::List,
    reading::is_private,
    rooms::{Entry, entry, has_code},
};
use crate::text;

/// The state of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchState {
    /// The watch begins.
    Asking,
    /// The room is watched.
    Live,
    /// The watch broke off for this reason, and is tried again.
    Lost(String),
    /// It needs a password, or another one.
    Locked,
    /// The room has ended, or does not exist, for this reason.
    Gone(String),
}

/// A room that is watched, or was.
#[derive(Debug)]
pub struct Room {
    /// The number of its watch.
    pub watch: u64,
    /// The code by which it was opened.
    pub code: String,
    /// Its password, if it was given.
    pub password: Option<Secret>,
    /// Its summary, once known.
    pub summary: Option<RoomSummary>,
    /// The state of the watch.
    pub watched: WatchState,
    /// Its participants.
    pub people: Vec<ParticipantInfo>,
    /// The place in the list of participants.
    pub list: List,
    /// Its events.
    pub activity: Activity,
    /// How many lines of the events are below the window.
    pub below: usize,
}

impl Room {
    /// A room that is not watched yet.
    pub fn new(watch: u64, code: &str, password: Option<Secret>) -> Self {
        Self {
            watch,
            code: code.to_owned(),
            password,
            summary: None,
            watched: WatchState::Asking,
            people: Vec::new(),
            list: List::default(),
            activity: Activity::default(),
            below: 0,
        }
    }

    /// Watches the room again.
    pub fn retry(&mut self, watch: u64, password: Option<Secret>) {
        self.watch = watch;
        self.password = password.or(self.password.take());
        self.watched = WatchState::Asking;
    }

    /// Whether `other`, a room of a list, is this room.
    pub fn is(&self, other: &RoomSummary) -> bool {
        let known = self.summary.as_ref();
        known.is_some_and(|known| known.room.id == other.room.id) || has_code(other, &self.code)
    }

    /// Its entry in the list.
    pub fn entry(&self) -> Entry {
        let unknown = || Entry {
            code: self.code.clone(),
            name: String::new(),
            people: None,
            locked: self.watched == WatchState::Locked,
        };
        self.summary.as_ref().map_or_else(unknown, entry)
    }

    /// The models that can be asked, each once.
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = self.people.iter().flat_map(models_of).collect();
        models.sort_unstable();
        models.dedup();
        models
    }

    /// Takes news of it; `at` is the time in milliseconds since 1970.
    pub fn take(&mut self, at: u64, news: RoomNews) {
        let before = self.activity.count();
        self.put_in(at, news);
        // A view that was scrolled back stays where it is, until its lines are forgotten.
        if self.below > 0 {
            self.below += self.activity.count() - before;
        }
    }

    fn put_in(&mut self, at: u64, news: RoomNews) {
        match news {
            RoomNews::Opened(summary) => self.opened(summary),
            RoomNews::People(people) => {
                self.people = people;
                self.people.truncate(MAX_PEOPLE);
            }
            RoomNews::Happened(event) => self.happened(event),
            RoomNews::Lost(error) => self.lost(at, &error),
            RoomNews::Refused(error) if is_private(&error) => self.watched = WatchState::Locked,
            RoomNews::Refused(error) => self.watched = WatchState::Gone(error.to_string()),
        }
    }

    fn opened(&mut self, summary: RoomSummary) {
        self.summary = Some(summary);
        self.watched = WatchState::Live;
    }

    fn lost(&mut self, at: u64, error: &ClientError) {
        // Only once: each further attempt would add the same line.
        if !matches!(self.watched, WatchState::Lost(_)) {
            self.activity.wrong(at, "the connection broke off; trying again");
        }
        self.watched = WatchState::Lost(error.to_string());
    }

    fn happened(&mut self, event: EventEnvelope) {
        let at = event.timestamp;
        match event.event {
            RoomEvent::Connected(_) => self.watched = WatchState::Live,
            RoomEvent::RoomCreated(summary) => self.changed(at, summary),
            RoomEvent::RoomClosed(closed) => self.closed(at, &closed.reason),
            RoomEvent::ParticipantJoined(who) => self.came(at, &who),
            RoomEvent::ParticipantUpdated(who) => self.updated(at, who),
            RoomEvent::ParticipantLeft(who) => self.left(at, &who.participant_id),
            RoomEvent::ParticipantOffline(who) => self.offline(at, &who.participant_id),
            RoomEvent::LlmRequest(started) => {
                self.activity.request(at, &self.name(&started.participant_id), &started);
            }
            RoomEvent::LlmToken(token) => {
                self.activity.token(at, &self.name(&token.participant_id), &token);
            }
            RoomEvent::LlmComplete(done) => self.done(at, &done),
            RoomEvent::LlmError(failed) => {
                self.activity.failed(at, &self.name(&failed.participant_id), &failed);
            }
        }
    }

    fn changed(&mut self, at: u64, summary: RoomSummary) {
        if self.summary.as_ref().is_some_and(|known| known.room != summary.room) {
            self.activity.people(at, "", "the room was changed");
        }
        self.summary = Some(summary);
    }

    fn closed(&mut self, at: u64, reason: &str) {
        let what = format!("the room was closed: {reason}");
        self.activity.wrong(at, &what);
        self.watched = WatchState::Gone(what);
    }

    fn came(&mut self, at: u64, who: &ParticipantInfo) {
        let what = format!("joined with {}", text::line(&who.model));
        self.put(who.clone());
        self.activity.people(at, &self.name(&who.id), &what);
    }

    fn updated(&mut self, at: u64, who: ParticipantInfo) {
        let known = self.people.iter().find(|known| known.id == who.id);
        let was = known.map(|known| known.connection.connected);
        let (id, is) = (who.id.clone(), who.connection.connected);
        self.put(who);
        if was.is_some_and(|was| was != is) {
            let what = if is { "connected" } else { "disconnected" };
            self.activity.people(at, &self.name(&id), what);
        }
    }

    fn left(&mut self, at: u64, id: &str) {
        self.activity.people(at, &self.name(id), "left");
        self.people.retain(|who| who.id != id);
    }

    fn offline(&mut self, at: u64, id: &str) {
        self.activity.people(at, &self.name(id), "is offline");
        if let Some(who) = self.people.iter_mut().find(|who| who.id == id) {
            who.status = Status::Offline;
        }
    }

    fn done(&mut self, at: u64, done: &LlmDone) {
        self.activity.done(at, &self.name(&done.participant_id), done);
        if let Some(who) = self.people.iter_mut().find(|who| who.id == done.participant_id) {
            who.metrics = Some(done.metrics);
        }
    }

    fn put(&mut self, who: ParticipantInfo) {
        match self.people.iter().position(|known| known.id == who.id) {
            Some(at) => self.people[at] = who,
            None if self.people.len() < MAX_PEOPLE => self.people.push(who),
            None => {}
        }
    }

    /// The name of a participant for people.
    fn name(&self, id: &str) -> String {
        let who = self.people.iter().find(|who| who.id == id);
        text::line(who.map_or(id, |who| &who.nickname))
    }
}

/// The most participants of a room.
const MAX_PEOPLE: usize = 1_000;

/// The models that a participant says it has.
pub fn models_of(who: &ParticipantInfo) -> Vec<&str> {
    match who.models.as_slice() {
        [] => vec![&who.model],
        models => models.iter().map(String::as_str).collect(),
    }
}

#[cfg(test)]
mod tests {
    use protocol::room::event::{ParticipantRef, RoomClosed};

    use super::*;
    use crate::app::fixture::{done, participant, refused, room as summary, unreachable};

    fn watched() -> Room {
        let mut room = Room::new(1, "swift-eagle-42", None);
        room.take(0, RoomNews::Opened(summary()));
        room.take(0, RoomNews::People(vec![participant("ada")]));
        room
    }

    fn happen(room: &mut Room, event: RoomEvent) {
        let room_code = "K7QWTZ".to_owned();
        room.take(0, RoomNews::Happened(EventEnvelope { event, timestamp: 5, room_code }));
    }

    fn last(room: &Room) -> String {
        let line = room.activity.lines().next_back().unwrap();
        format!("{} {}", line.who, line.text)
    }

    #[test]
    fn joins_and_leaves_are_shown_and_listed() {
        let mut room = watched();
        happen(&mut room, RoomEvent::ParticipantJoined(participant("bob")));
        assert_eq!(last(&room), "Bob joined with llama3.2:3b");
        let id = || ParticipantRef { participant_id: "bob".to_owned() };
        happen(&mut room, RoomEvent::ParticipantOffline(id()));
        assert_eq!(
            (last(&room), room.people[1].status),
            ("Bob is offline".into(), Status::Offline)
        );
        happen(&mut room, RoomEvent::ParticipantLeft(id()));
        assert_eq!((last(&room), room.people.len()), ("Bob left".into(), 1));
    }

    #[test]
    fn an_update_adds_a_line_only_if_the_connection_has_changed() {
        let mut room = watched();
        let mut ada = participant("ada");
        happen(&mut room, RoomEvent::ParticipantUpdated(ada.clone()));
        assert_eq!(room.activity.lines().len(), 0);
        ada.connection.connected = false;
        happen(&mut room, RoomEvent::ParticipantUpdated(ada));
        assert_eq!(last(&room), "Ada disconnected");
    }

    #[test]
    fn an_answer_changes_its_participants_metrics() {
        let mut room = watched();
        happen(&mut room, RoomEvent::LlmComplete(done("ada")));
        assert_eq!(last(&room), "Ada 42 tokens in 1.2 s, 35.0/s");
        assert_eq!(room.people[0].metrics.and_then(|m| m.tokens_per_second), Some(35.0));
    }

    #[test]
    fn a_lost_connection_adds_one_line_until_it_is_back() {
        let mut room = watched();
        room.take(1, RoomNews::Lost(unreachable()));
        room.take(2, RoomNews::Lost(unreachable()));
        assert_eq!(room.activity.lines().len(), 1);
        assert!(matches!(room.watched, WatchState::Lost(_)));
        room.take(3, RoomNews::Opened(summary()));
        assert_eq!(room.watched, WatchState::Live);
    }

    #[test]
    fn a_room_that_is_closed_or_locked_says_so() {
        let mut room = watched();
        happen(&mut room, RoomEvent::RoomClosed(RoomClosed { reason: "by its host".into() }));
        assert_eq!(room.watched, WatchState::Gone("the room was closed: by its host".into()));
        room.take(0, RoomNews::Refused(refused(401)));
        assert_eq!(room.watched, WatchState::Locked);
    }
}
