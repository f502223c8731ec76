//! Generated histories of a room.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use protocol::room::ServerMessage;

use super::{HERE, THERE, ended, join, join_request, provider, state};
use crate::{
    events::Announcement,
    member::{FORGOTTEN, OFFLINE},
    participant::{ConnectionEnd, JoinRequest, Kind},
    state::{LinkHandle, RoomState},
};

/// A step of somebody in a generated history.
#[derive(Debug, Clone)]
enum Step {
    Join { id: u8, kind: u8, here: bool, shows: bool },
    Connect { id: u8 },
    Drop { which: usize },
    Heard { id: u8 },
    Models { which: usize, models: u8 },
    Leave { id: u8 },
    Pass { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..4u8;
    let pass = prop_oneof![Just(1), Just(5_000), Just(OFFLINE), Just(FORGOTTEN)];
    prop_oneof![
        (id.clone(), 0..3u8, any::<bool>(), any::<bool>())
            .prop_map(|(id, kind, here, shows)| Step::Join { id, kind, here, shows }),
        id.clone().prop_map(|id| Step::Connect { id }),
        any::<usize>().prop_map(|which| Step::Drop { which }),
        id.clone().prop_map(|id| Step::Heard { id }),
        (any::<usize>(), 0..3u8).prop_map(|(which, models)| Step::Models { which, models }),
        id.prop_map(|id| Step::Leave { id }),
        pass.prop_map(|ms| Step::Pass { ms }),
    ]
}

/// A room, and what somebody knows who watches it from outside.
struct Watched {
    state: RoomState,
    now: u64,
    sessions: HashMap<String, String>,
    linked: Vec<(String, u64, LinkHandle)>,
    /// The participants that are there by the spec's messages.
    there: BTreeSet<String>,
    counted: u64,
}

impl Watched {
    fn take(&mut self, step: &Step) {
        let name = |id: u8| format!("p{id}");
        match *step {
            Step::Join { id, kind, here, shows } => self.join(&name(id), kind, here, shows),
            Step::Connect { id } => self.connect(&name(id)),
            Step::Drop { which } => self.drop(which),
            Step::Heard { id } => {
                let now = self.now;
                self.state.member_mut(&name(id)).into_iter().for_each(|member| member.heard(now));
            }
            Step::Models { which, models } => self.models(which, models),
            Step::Leave { id } => {
                let announcements = self.state.remove(&name(id), ConnectionEnd::Removed);
                self.hear(announcements);
            }
            Step::Pass { ms } => {
                self.now += ms;
                let announcements = self.state.sweep(self.now, self.now).announcements;
                self.hear(announcements);
            }
        }
        self.check();
    }

    fn join(&mut self, id: &str, kind: u8, here: bool, shows: bool) {
        let kind = [Kind::Tunnel, Kind::Worker, Kind::Endpoint((HERE, 1).into())][kind as usize];
        let session = self.sessions.get(id).filter(|_| shows).cloned();
        let from = if here { HERE } else { THERE };
        let request = JoinRequest { session, ..join_request(id, kind) };
        if let Ok((_, session, announcements)) = join(&mut self.state, request, from, self.now) {
            self.sessions.insert(id.to_owned(), session);
            self.hear(announcements);
        }
    }

    fn connect(&mut self, id: &str) {
        self.counted += 1;
        if let Some((linked, announcement)) = self.state.link(id, provider(self.counted), self.now)
        {
            self.linked.push((id.to_owned(), self.counted, linked));
            self.hear([announcement]);
        }
    }

    fn drop(&mut self, which: usize) {
        if !self.linked.is_empty() {
            let (id, _, linked) = self.linked.swap_remove(which % self.linked.len());
            let announcement = self.state.disconnect(&id, linked.serial, self.now);
            assert!(announcement.is_none() || ended(&linked).is_none(), "an ended one is nobody's");
            self.hear(announcement);
        }
    }

    fn models(&mut self, which: usize, models: u8) {
        if !self.linked.is_empty() {
            let (id, _, linked) = &self.linked[which % self.linked.len()];
            let models = (0..models).map(|number| format!("m{number}")).collect();
            let announcement = self.state.set_models(id, linked.serial, models, self.now);
            self.hear(announcement);
        }
    }

    /// Nobody comes who is there, and nobody goes who is not.
    fn hear(&mut self, announcements: impl IntoIterator<Item = Announcement>) {
        for announcement in announcements {
            match announcement.message {
                Some(ServerMessage::ParticipantJoined(joined)) => {
                    assert!(self.there.insert(joined.participant.id));
                }
                Some(ServerMessage::ParticipantLeft(left)) => {
                    assert!(self.there.remove(&left.participant_id));
                }
                _ => {}
            }
        }
    }

    fn check(&self) {
        let state = &self.state;
        let alive = self.linked.iter().filter(|(_, _, linked)| ended(linked).is_none());
        let alive: Vec<_> = alive.map(|(id, number, _)| (provider(*number), id.clone())).collect();
        let up: HashMap<_, _> = alive.iter().cloned().collect();
        assert_eq!(state.providers, up, "who holds a connection that goes on is connected");
        let ids: BTreeSet<_> = alive.iter().map(|(_, id)| id).collect();
        assert_eq!(ids.len(), alive.len(), "one connection each");
        let mut models = HashMap::<String, usize>::new();
        let connected = state.members.values().filter(|member| member.is_up());
        for member in connected.clone() {
            let own: BTreeSet<_> = member.stored.about.models.iter().cloned().collect();
            own.into_iter().for_each(|model| *models.entry(model).or_default() += 1);
        }
        assert_eq!(state.models, models);
        assert_eq!(state.answering, connected.clone().filter(|member| member.answers()).count());
        assert_eq!(connected.count(), alive.len());
        let shown = state.members.values().filter(|member| !member.is_shown_offline);
        assert_eq!(shown.map(|member| member.id.clone()).collect::<BTreeSet<_>>(), self.there);
    }
}

proptest! {
    #[test]
    fn a_room_agrees_with_itself_and_its_watchers_in_every_history(
        steps in proptest::collection::vec(step(), 0..60)
    ) {
        let mut watched = Watched {
            state: state(),
            now: 0,
            sessions: HashMap::new(),
            linked: Vec::new(),
            there: BTreeSet::new(),
            counted: 0,
        };
        steps.iter().for_each(|step| watched.take(step));
    }
}
