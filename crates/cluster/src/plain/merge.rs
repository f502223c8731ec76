//! Takes over what a plain peer offers, within its rights.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use protocol::workspace::SessionId;
use replica::{Change, Input, Key, Kind, Refused};

use super::{
    offer::{Offer, session_key},
    rights::{self, Adoption, Parties, Verdict},
};
use crate::{
    directory::Directory,
    driver::{Driver, WriteError},
};

/// The most objects that are taken over in one turn.
pub(crate) const TOGETHER: usize = 256;
/// The shortest time between two answers about one object, however often a peer contradicts this
/// member's state of it. An answer writes that state again.
const BETWEEN_ANSWERS: Duration = Duration::from_secs(5);
/// The most objects for which the time of the last answer is remembered.
const REMEMBERED: usize = 4096;

/// The word of a peer about an object.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    /// The object, as it is now.
    Is(Offer),
    /// The object is gone.
    Gone(Key),
}

/// The work that remains after a peer's words were taken in.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Objects whose present state must be sent to the peer.
    pub(crate) tell: Vec<Key>,
    /// Sessions of this member that the peer renames.
    pub(crate) renames: Vec<(SessionId, String)>,
    /// Objects that were not taken over, with the reason.
    pub(crate) refused: Vec<(Key, Refused)>,
}

/// Takes in what one plain peer says.
pub(crate) struct Merge {
    driver: Driver,
    directory: Arc<Directory>,
    answered: BTreeMap<Key, Instant>,
}

/// Inputs for the replica, each with its object.
type Inputs = Vec<(Key, Input)>;

impl Merge {
    pub(crate) fn new(driver: Driver, directory: Arc<Directory>) -> Self {
        Self { driver, directory, answered: BTreeMap::new() }
    }

    /// Takes in words, at most [`TOGETHER`]. `in_snapshot` says that this member's own snapshot has
    /// just been sent, so nothing need be repeated.
    ///
    /// # Errors
    /// [`WriteError::Stopping`].
    pub(crate) async fn take(
        &mut self,
        now: Instant,
        parties: Parties<'_>,
        words: Vec<Word>,
        in_snapshot: bool,
    ) -> Result<Merged, WriteError> {
        let (mut merged, mut inputs, mut unknown) = (Merged::default(), Vec::new(), Vec::new());
        for word in words {
            let (key, verdict) = self.verdict(parties, word);
            match verdict {
                Verdict::Ignore => {}
                Verdict::Repeat if in_snapshot => {}
                Verdict::Repeat | Verdict::Remove => merged.tell.push(key),
                Verdict::RemoveIfDeleted => unknown.push(key),
                Verdict::Delete => inputs.push((key.clone(), Input::Delete { key })),
                Verdict::Rename(name) => merged.renames.extend(renaming(&key, name)),
                Verdict::Adopt(adoption) => {
                    let answer = adoption.answer;
                    let again = answer.then(|| self.again(parties, &key, &adoption.value));
                    inputs.push((key.clone(), adopt(key, adoption)));
                    inputs.extend(again);
                }
                Verdict::Answer => self.answer(now, parties, key, &mut inputs, &mut merged),
            }
        }
        merged.tell.extend(self.driver.which_deleted(unknown).await?);
        self.carry_out(inputs, &mut merged).await?;
        Ok(merged)
    }

    fn verdict(&self, parties: Parties<'_>, word: Word) -> (Key, Verdict) {
        let get = |key: &Key| self.directory.get(key.kind, &key.id);
        match word {
            Word::Is(offer) => {
                let leader = offer.leader.and_then(|leader| get(&session_key(leader)));
                let leads = leader.as_ref().map(|leader| leader.owner.as_str());
                let known = get(&offer.key);
                let verdict = rights::offered(parties, known.as_deref(), &offer, leads);
                (offer.key, verdict)
            }
            Word::Gone(key) => {
                let verdict = rights::removed(parties, key.kind, get(&key).as_deref());
                (key, verdict)
            }
        }
    }

    /// Writes this member's state of an object again, above what the peer offered. The change goes
    /// to all members and peers.
    fn answer(
        &mut self,
        now: Instant,
        parties: Parties<'_>,
        key: Key,
        inputs: &mut Inputs,
        merged: &mut Merged,
    ) {
        if self.answered.len() >= REMEMBERED {
            self.answered.retain(|_, at| now.duration_since(*at) < BETWEEN_ANSWERS);
        }
        let last = self.answered.get(&key);
        let is_too_soon = last.is_some_and(|at| now.duration_since(*at) < BETWEEN_ANSWERS);
        let known = self.directory.get(key.kind, &key.id);
        match known {
            Some(known) if !is_too_soon && self.answered.len() < REMEMBERED => {
                self.answered.insert(key.clone(), now);
                inputs.push(self.again(parties, &key, &known.value));
            }
            _ => merged.tell.push(key),
        }
    }

    fn again(&self, parties: Parties<'_>, key: &Key, value: &Arc<str>) -> (Key, Input) {
        let (owner, value) = (parties.me.into(), Arc::clone(value));
        (key.clone(), Input::Write { key: key.clone(), owner, value, change: Change::Update })
    }

    async fn carry_out(&self, inputs: Inputs, merged: &mut Merged) -> Result<(), WriteError> {
        let (keys, inputs): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let outcomes = self.driver.ask_all(inputs).await?;
        for (key, outcome) in keys.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) | Err(Refused::Unknown) => {}
                Err(Refused::Deleted | Refused::Foreign(_)) => merged.tell.push(key),
                Err(refused) => merged.refused.push((key, refused)),
            }
        }
        Ok(())
    }
}

fn adopt(key: Key, adoption: Adoption) -> Input {
    let Adoption { owner, version, value, .. } = adoption;
    Input::Adopt { key, owner: owner.as_str().into(), version, value }
}

fn renaming(key: &Key, name: String) -> Option<(SessionId, String)> {
    let is_session = key.kind == Kind::SESSION;
    let id = key.id.parse().ok().filter(|_| is_session)?;
    Some((id, name))
}
