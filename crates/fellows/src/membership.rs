//! Which fellows there are: drives [`fleet::Members`].

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use fleet::{Members, Record, ServerId, ServerName, State, members};
use tokio::sync::{mpsc, watch};

use crate::{
    clock::{now, until},
    facts::{EncodedFacts, Facts},
    node::Node,
};

/// A fellow, as this server sees it.
#[derive(Debug, Clone)]
pub struct Fellow {
    /// The id of its start.
    pub id: ServerId,
    /// Its name.
    pub name: ServerName,
    /// Whether it stops soon, and takes no new jobs.
    pub is_draining: bool,
    facts: Arc<EncodedFacts>,
}

impl Fellow {
    /// Its facts about itself.
    pub fn facts(&self) -> &Facts {
        &self.facts.facts
    }
}

/// The fellows that are there now.
#[derive(Default)]
pub(crate) struct Fleet {
    fellows: RwLock<BTreeMap<ServerId, Fellow>>,
    /// Counts the changes, for those who wait for one.
    changes: watch::Sender<u64>,
}

impl Fleet {
    /// All fellows, by id.
    pub(crate) fn all(&self) -> Vec<Fellow> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn has(&self, id: ServerId) -> bool {
        self.read().contains_key(&id)
    }

    /// The name of a fellow, or its id when it is gone.
    pub(crate) fn name_of(&self, id: ServerId) -> Arc<str> {
        let name = self.read().get(&id).map(|fellow| fellow.name.as_str().into());
        name.unwrap_or_else(|| id.to_string().into())
    }

    /// Marked as changed whenever a fellow comes, changes or goes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<ServerId, Fellow>> {
        self.fellows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<ServerId, Fellow>)) {
        change(&mut self.fellows.write().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// An event for the task of the membership.
pub(crate) type Heard = members::Input<Arc<EncodedFacts>>;

/// The machine of the membership, and the ways out of it.
pub(crate) struct Membership {
    members: Members<Arc<EncodedFacts>>,
    heard: mpsc::Receiver<Heard>,
    /// Whether this server takes jobs.
    state: watch::Receiver<State>,
    /// The newest own record, for the bucket.
    publish: watch::Sender<Option<Record<Arc<EncodedFacts>>>>,
    node: Arc<Node>,
}

impl Membership {
    pub(crate) fn new(
        members: Members<Arc<EncodedFacts>>,
        (heard, state): (mpsc::Receiver<Heard>, watch::Receiver<State>),
        publish: watch::Sender<Option<Record<Arc<EncodedFacts>>>>,
        node: Arc<Node>,
    ) -> Self {
        Self { members, heard, state, publish, node }
    }

    /// Follows who is there, until nobody tells it anything any more.
    pub(crate) async fn run(mut self) {
        loop {
            let next = self.members.poll_timeout();
            tokio::select! {
                () = until(next) => self.members.handle_timeout(now()),
                heard = self.heard.recv() => match heard {
                    Some(heard) => self.members.handle(now(), heard),
                    None => return,
                },
                Ok(()) = self.state.changed() => {
                    let state = *self.state.borrow_and_update();
                    self.members.handle(now(), members::Input::State(state));
                }
            }
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.members.poll_output() {
            match output {
                members::Output::Publish(record) => _ = self.publish.send(Some(record)),
                members::Output::Joined(record) => self.joined(&record),
                members::Output::Changed(record) => self.changed(&record),
                members::Output::Left(id) => self.left(id),
                members::Output::SameName { other } => {
                    let name = self.node.name.as_str();
                    tracing::error!(name, %other, "another server has this server's name: give each its own with --server-name");
                }
                members::Output::Refused(id) => {
                    tracing::error!(%id, most = members::MOST_FELLOWS, "a server is not joined: there are too many");
                }
            }
        }
        self.node.set_same_name(self.members.same_name().is_some());
    }

    fn joined(&self, record: &Record<Arc<EncodedFacts>>) {
        let Record { id, name, .. } = record;
        tracing::info!(server = %name, %id, "a server has joined");
        let node = &self.node;
        node.fleet.change(|all| _ = all.insert(*id, fellow(record)));
        node.streams.joined(*id);
        node.slots.joined(*id);
        self.seat(record);
    }

    fn changed(&self, record: &Record<Arc<EncodedFacts>>) {
        self.node.fleet.change(|all| _ = all.insert(record.id, fellow(record)));
        self.seat(record);
    }

    /// Its workers are providers here; those of a server that stops get no new jobs.
    fn seat(&self, record: &Record<Arc<EncodedFacts>>) {
        let Record { id, name, state, facts, .. } = record;
        let is_draining = *state == State::Draining;
        let change = self.node.seats.update(*id, name.as_str(), &facts.facts, is_draining);
        self.node.slots.offered(*id, &change.came, &change.went);
    }

    fn left(&self, id: ServerId) {
        let name = self.node.fleet.name_of(id);
        tracing::warn!(server = %name, %id, "a server is gone");
        self.node.fleet.change(|all| _ = all.remove(&id));
        // First its workers: their jobs go to others before their streams are seen to be over.
        self.node.seats.left(id);
        self.node.slots.left(id);
        self.node.streams.left(id);
    }
}

fn fellow(record: &Record<Arc<EncodedFacts>>) -> Fellow {
    Fellow {
        id: record.id,
        name: record.name.clone(),
        is_draining: record.state == State::Draining,
        facts: Arc::clone(&record.facts),
    }
}
