//! Links between two members that others carry, because no direct link leads from one to the other.
//! The usual handshake seals them between their two ends, so members that carry one cannot read it.
//!
//! - [`Carrying`]: the carried links of this member: those that end here, and those that it carries
//! - `frame`: the frames of carried links
//! - `state`: where the frames of each go on
//! - `ways`: through which members a member is reached
//! - `waiting`: the frames that wait at one link for one carried link
//! - `end`: one that ends here, as the transport under a sealed link
//! - `dial`: when a member is linked through others
//! - `mesh`: the mesh in the place of a member that carries

pub(crate) mod dial;
pub(crate) mod end;
pub(crate) mod frame;
mod mesh;
mod state;
#[cfg(test)]
mod tests;
mod waiting;
pub(crate) mod ways;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::time::sleep;
use wire::Outbox;

use crate::circuit::TooMuch;
use end::CarriedEnd;
use frame::{Body, CarriedFrame, Closed, Open};
pub use mesh::{MeshWay, Sending};
use state::{Hop, Place, Port, State, flip};
use waiting::Waiting;
use ways::{MOST_CARRIERS, Reach, Ways};

/// The most links that this member carries for others.
pub(crate) const MOST_PAIRS: usize = 64;
/// The most carried links that end here.
const MOST_ENDS: usize = 512;
/// Changes of the ways are gathered for this time before they are reported to other members.
const TELL_AFTER: Duration = Duration::from_millis(50);

/// Answers a link that another member opens through others. It gets the id of that member and this
/// end.
pub(crate) type Answer = Box<dyn Fn(String, CarriedEnd) + Send + Sync>;

/// The first carrier of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// The member with this id.
    Member(String),
    /// The mesh.
    Mesh,
}

/// For logs.
impl std::fmt::Display for Through {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Member(node) => write!(f, "member {node}"),
            Self::Mesh => f.write_str("the mesh"),
        }
    }
}

/// The carried links of this member.
pub(crate) struct Carrying {
    node: String,
    state: Mutex<State>,
    answer: OnceLock<Answer>,
    mesh: OnceLock<Arc<dyn MeshWay>>,
    is_telling: AtomicBool,
}

impl Carrying {
    pub(crate) fn new(node: String) -> Self {
        let (hops, ports) = Default::default();
        let state = Mutex::new(State { hops, ways: Ways::new(node.clone()), mesh_links: 0, ports });
        let (answer, mesh, is_telling) = Default::default();
        Self { node, state, answer, mesh, is_telling }
    }

    /// Sets the function that answers members who link to this one through others. Called once.
    pub(crate) fn set_answer(&self, answer: Answer) {
        let _set_before = self.answer.set(answer);
    }

    /// A direct link to a member is open.
    pub(crate) fn linked(self: &Arc<Self>, link: u64, node: &str, outbox: Outbox) {
        let mut state = self.lock();
        state.ways.linked(node);
        let (node, announced) = (node.to_owned(), Reach::default());
        state.hops.insert(link, Hop { node, by_mesh: None, outbox, next: 0, announced });
        drop(state);
        self.tell_soon();
    }

    /// A link has ended. A carried link is not known here, and is ignored.
    pub(crate) fn unlinked(self: &Arc<Self>, link: u64) {
        let mut state = self.lock();
        let Some(Hop { node, .. }) = state.hops.remove(&link) else { return };
        if state.hops.values().all(|hop| hop.by_mesh.is_some() || hop.node != node) {
            state.ways.unlinked(&node);
        }
        let gone = state.take_all_at(link);
        drop(state);
        gone.iter().for_each(|port| port.close(&Closed::ended("a link that carried it ended")));
        self.tell_soon();
    }

    /// The linked members through which another one is reached, the shortest way first.
    pub(crate) fn ways_to(&self, node: &str) -> Vec<String> {
        self.lock().ways.through(node, &[])
    }

    /// Opens a link to a member through a linked one. `None` if that one is no longer linked, or
    /// too many carried links end here.
    pub(crate) fn open(self: &Arc<Self>, through: &str, to: &str) -> Option<CarriedEnd> {
        let mut state = self.lock();
        if state.ends() >= MOST_ENDS {
            return None;
        }
        let link = state.link_to(through)?;
        self.open_at(&mut state, link, Through::Member(through.to_owned()), to)
    }

    fn open_at(
        self: &Arc<Self>,
        state: &mut State,
        link: u64,
        through: Through,
        to: &str,
    ) -> Option<CarriedEnd> {
        let (place, waiting) = state.out(link)?;
        let (from, carriers) = (self.node.clone(), Vec::new());
        waiting.put_last(Body::Open(Open { to: to.to_owned(), from, carriers }));
        Some(self.end(state, place, through, waiting))
    }

    /// A frame from the other end of a direct link. Never waits.
    pub(crate) fn received(self: &Arc<Self>, link: u64, bytes: Bytes) {
        match CarriedFrame::decode(bytes) {
            Ok(CarriedFrame::Ways(reach)) => self.told(link, reach),
            Ok(CarriedFrame::On(channel, Body::Open(open))) => self.opened((link, channel), open),
            Ok(CarriedFrame::On(channel, body)) => self.pass((link, channel), body),
            Err(error) => tracing::warn!(%error, "a frame of a carried link cannot be read"),
        }
    }

    fn told(self: &Arc<Self>, link: u64, reach: Reach) {
        let mut state = self.lock();
        let told = state.hops.get(&link).filter(|hop| hop.by_mesh.is_none());
        let Some(node) = told.map(|hop| hop.node.clone()) else { return };
        state.ways.told(&node, reach);
        drop(state);
        self.tell_soon();
    }

    fn opened(self: &Arc<Self>, place: Place, open: Open) {
        let mut state = self.lock();
        let Some(hop) = state.hops.get(&place.0) else { return };
        if place.1.to_opener || state.ports.contains_key(&place) {
            return;
        }
        let back = Waiting::new(hop.outbox.clone(), flip(place.1));
        let before = hop.through();
        match open.to == self.node {
            // The far end reaches other members over the mesh just as this member does.
            false if before == Through::Mesh => {
                back.put_last(Body::Closed(Closed::refused("nothing is carried from the mesh")));
            }
            false => {
                if let Err(words) = self.carry(&mut state, place, &back, open) {
                    back.put_last(Body::Closed(Closed::refused(words)));
                }
            }
            true if state.ends() >= MOST_ENDS => {
                back.put_last(Body::Closed(Closed::refused("it has too many carried links")));
            }
            true => {
                let end = self.end(&mut state, place, before, back);
                drop(state);
                if let Some(answer) = self.answer.get() {
                    answer(open.from, end);
                }
            }
        }
    }

    /// Carries a link on; the error says why that is not possible.
    fn carry(
        &self,
        state: &mut State,
        from: Place,
        back: &Arc<Waiting>,
        mut open: Open,
    ) -> Result<(), String> {
        if state.pairs() >= MOST_PAIRS {
            return Err(format!("it carries {MOST_PAIRS} links for others, which is the most"));
        }
        if open.carriers.len() >= usize::from(MOST_CARRIERS) || open.carriers.contains(&self.node) {
            return Err(format!("the way is longer than {MOST_CARRIERS} members, or a circle"));
        }
        open.carriers.push(self.node.clone());
        let before = state.hops.get(&from.0).map(|hop| hop.node.clone());
        let mut next = state.ways.through(&open.to, &open.carriers).into_iter();
        let next = next.find(|node| Some(node) != before.as_ref());
        let out = next.and_then(|next| state.out(state.link_to(&next)?));
        let (to, forth) = out.ok_or("no link leads on to that member")?;
        forth.put_last(Body::Open(open));
        state.ports.insert(from, Port::On(to, forth));
        state.ports.insert(to, Port::On(from, Arc::clone(back)));
        Ok(())
    }

    /// Passes on a frame of a carried link, or gives it to the end that is here.
    fn pass(&self, place: Place, body: Body) {
        let mut state = self.lock();
        let is_last = matches!(body, Body::Closed(_));
        let passed = match state.ports.get(&place) {
            None => return,
            Some(Port::End(line)) => line.received(body),
            Some(Port::On(_, on)) if is_last => {
                on.put_last(body);
                Ok(())
            }
            Some(Port::On(_, on)) => on.put(body),
        };
        match passed {
            Ok(()) if is_last => drop(state.take(place)),
            Ok(()) => {}
            Err(TooMuch) => {
                let ports = state.take(place);
                drop(state);
                let why = Closed::ended("more than the bound waits for one of its ends");
                ports.iter().for_each(|port| port.close(&why));
            }
        }
    }

    fn end(
        self: &Arc<Self>,
        state: &mut State,
        place: Place,
        through: Through,
        waiting: Arc<Waiting>,
    ) -> CarriedEnd {
        let carrying = Arc::downgrade(self);
        let gone = move || {
            if let Some(carrying) = Weak::upgrade(&carrying) {
                carrying.lock().ports.remove(&place);
            }
        };
        let (end, line) = CarriedEnd::new(through, waiting, gone);
        state.ports.insert(place, Port::End(line));
        end
    }

    fn tell_soon(self: &Arc<Self>) {
        if !self.is_telling.swap(true, Ordering::Relaxed) {
            let carrying = Arc::downgrade(self);
            tokio::spawn(async move {
                sleep(TELL_AFTER).await;
                if let Some(carrying) = Weak::upgrade(&carrying) {
                    carrying.is_telling.store(false, Ordering::Relaxed);
                    carrying.lock().tell();
                }
            });
        }
    }

    /// How many links this member carries for others.
    #[cfg(test)]
    pub(crate) fn pairs(&self) -> usize {
        self.lock().pairs()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
