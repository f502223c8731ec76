//! The state of a room. Pure: times are passed in, announcements are returned.
//!
//! - `joining`: joining, leaving, and the ids of participants
//! - `linking`: connecting, disconnecting, and the passing of time

mod joining;
mod linking;

use std::collections::{HashMap, HashSet};

use base::ProviderId;
use protocol::{
    model_use::is_for_chat,
    room::{
        ParticipantInfo, RoomEvent, RuntimeConfig, Selector, ServerMessage, Status,
        event::ParticipantRef,
        message::{ParticipantJoined, ParticipantLeft},
        selector,
    },
};
use store::KeyDigest;

use crate::{
    activity::{Activity, Holder, JobStarted},
    events::Announcement,
    member::Member,
    password::Password,
    room::{Available, ServedParticipant},
    stored::About,
    token,
};

pub(crate) use linking::LinkHandle;

/// The most participants of a room.
const MAX_PARTICIPANTS: usize = 1_000;

pub(crate) struct RoomState {
    pub(crate) name: String,
    pub(crate) password: Option<Password>,
    pub(crate) defaults: RuntimeConfig,
    pub(crate) activity: Activity,
    pub(crate) end: Option<RoomEnd>,
    members: HashMap<String, Member>,
    /// The connected participants.
    providers: HashMap<ProviderId, String>,
    /// For each model, how many connected participants have it.
    models: HashMap<String, usize>,
    /// How many connected participants have a model for chat.
    answering: usize,
    /// Counts participants and connections.
    counted: u64,
    /// A full room stays full until then, unless a participant disconnects or leaves.
    full_until: u64,
}

/// Why a room is not here any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomEnd {
    Closed,
    /// Another server has taken it over.
    Moved,
}

/// The changes that the passing of time made to a room.
#[derive(Default)]
pub(crate) struct SweepResult {
    pub(crate) announcements: Vec<Announcement>,
    /// Participants that are no longer in the room.
    pub(crate) forgotten: Vec<String>,
    /// Participants whose stored row is out of date.
    pub(crate) stale: Vec<String>,
}

impl RoomState {
    pub(crate) fn new(name: String, password: Option<Password>, defaults: RuntimeConfig) -> Self {
        Self {
            name,
            password,
            defaults,
            activity: Activity::default(),
            end: None,
            members: HashMap::new(),
            providers: HashMap::new(),
            models: HashMap::new(),
            answering: 0,
            counted: 0,
            full_until: 0,
        }
    }

    /// Adds a participant from an earlier run.
    pub(crate) fn add_stored(&mut self, mut member: Member) {
        self.counted += 1;
        member.order = self.counted;
        self.members.insert(member.id.clone(), member);
    }

    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether any participant is connected.
    pub(crate) fn is_used(&self) -> bool {
        !self.providers.is_empty()
    }

    pub(crate) fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id)
    }

    /// Whether a participant's session token has this digest.
    pub(crate) fn has_session(&self, digest: &KeyDigest) -> bool {
        self.members.values().any(|member| token::are_equal(digest, &member.session))
    }

    pub(crate) fn member_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.members.get_mut(id)
    }

    /// All participants, in the order in which they came.
    fn ids(&self) -> impl Iterator<Item = &Member> {
        let mut members: Vec<_> = self.members.values().collect();
        // The map has no order, and clients show participants in the order in which they came.
        members.sort_unstable_by_key(|member| member.order);
        members.into_iter()
    }

    /// All participants, in the order in which they came.
    pub(crate) fn participants(&self) -> Vec<ParticipantInfo> {
        self.ids().map(|member| self.info(member)).collect()
    }

    pub(crate) fn participant(&self, id: &str) -> Option<ParticipantInfo> {
        self.member(id).map(|member| self.info(member))
    }

    pub(crate) fn served(&self, id: &str) -> Option<ServedParticipant> {
        self.member(id).map(|member| member.served(&self.defaults))
    }

    /// A participant's status.
    pub(crate) fn status(&self, id: &str) -> Option<Status> {
        self.member(id).map(|member| member.status(self.activity.in_flight(id)))
    }

    fn info(&self, member: &Member) -> ParticipantInfo {
        let activity = &self.activity;
        member.info(activity.in_flight(&member.id), activity.metrics(&member.id))
    }

    /// Records that a job was given to a provider.
    pub(crate) fn started(&mut self, job: &JobStarted) -> Option<Announcement> {
        let member = self.members.get(self.providers.get(&job.provider)?)?;
        let About { nickname, endpoint, models, .. } = &member.stored.about;
        self.activity.started(job, Holder { id: &member.id, nickname, endpoint, models })
    }

    /// Participants with an endpoint that no connection calls yet.
    pub(crate) fn uncalled(&self) -> Vec<String> {
        let uncalled = self.ids().filter(|member| member.is_uncalled());
        uncalled.map(|member| member.id.clone()).collect()
    }

    /// The participants that a selector matches.
    pub(crate) fn find(&self, selector: &Selector, now: u64) -> Available {
        match self.matching(selector, now) {
            // Without a word for this case, a client could not tell a wrong name from a room without models.
            Available::Nobody if !self.awaits(now, |_| true) => Available::Empty,
            found => found,
        }
    }

    fn matching(&self, selector: &Selector, now: u64) -> Available {
        match selector {
            Selector::Any if self.answering > 0 || self.awaits(now, Member::answers) => {
                Available::Known(selector::ANY.to_owned())
            }
            Selector::Any => Available::Nobody,
            Selector::Model(model) => self.find_model(model, now),
            Selector::Named(name) => match self.member(name) {
                None => self.find_model(name, now),
                Some(member) if member.is_awaited(now) && member.is_able() => {
                    Available::Known(selector::participant_name(name))
                }
                Some(member) => Available::Disconnected { id: member.id.clone() },
            },
        }
    }

    fn find_model(&self, model: &str, now: u64) -> Available {
        let has_it = |member: &Member| member.stored.about.models.iter().any(|own| own == model);
        match self.models.contains_key(model) || self.awaits(now, has_it) {
            true => Available::Known(model.to_owned()),
            false => Available::Nobody,
        }
    }

    /// Whether a matching participant is connected, or likely to be in a moment.
    fn awaits(&self, now: u64, such: impl Fn(&Member) -> bool) -> bool {
        self.members
            .values()
            .any(|member| member.is_awaited(now) && member.is_able() && such(member))
    }

    /// Adds the models of a participant that is now connected.
    fn count_in(&mut self, models: &[String]) {
        self.answering += usize::from(models.iter().any(|model| is_for_chat(model)));
        for model in distinct(models) {
            *self.models.entry(model.clone()).or_default() += 1;
        }
    }

    /// Subtracts the models of a participant that was connected.
    fn count_out(&mut self, models: &[String]) {
        self.answering -= usize::from(models.iter().any(|model| is_for_chat(model)));
        for model in distinct(models) {
            if let Some(count) = self.models.get_mut(model) {
                *count -= 1;
                if *count == 0 {
                    self.models.remove(model);
                }
            }
        }
    }
}

fn distinct(models: &[String]) -> HashSet<&String> {
    models.iter().collect()
}

/// The announcement of a changed participant.
fn updated(info: ParticipantInfo, comes_back: bool) -> Announcement {
    let message = comes_back
        .then(|| ServerMessage::ParticipantJoined(ParticipantJoined { participant: info.clone() }));
    Announcement { event: Some(RoomEvent::ParticipantUpdated(info)), message }
}

/// The announcement of a new participant.
fn joined(info: ParticipantInfo) -> Announcement {
    let message = ServerMessage::ParticipantJoined(ParticipantJoined { participant: info.clone() });
    Announcement::both(RoomEvent::ParticipantJoined(info), message)
}

/// The announcement that a participant left. Readers of messages get it only if they have
/// not got the one that it is offline.
fn left(id: &str, is_shown_offline: bool) -> Announcement {
    let event = RoomEvent::ParticipantLeft(ParticipantRef { participant_id: id.to_owned() });
    Announcement { event: Some(event), message: (!is_shown_offline).then(|| left_message(id)) }
}

/// The announcement that a participant is offline.
fn offline(id: &str) -> Announcement {
    let event = RoomEvent::ParticipantOffline(ParticipantRef { participant_id: id.to_owned() });
    Announcement::both(event, left_message(id))
}

fn left_message(id: &str) -> ServerMessage {
    ServerMessage::ParticipantLeft(ParticipantLeft { participant_id: id.to_owned() })
}

#[cfg(test)]
mod tests;
