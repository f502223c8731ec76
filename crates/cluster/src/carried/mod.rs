//! Links between two members that others carry, where no link leads from one to the other. They are
//! sealed between their two ends by the same handshake: who carries one reads nothing.
//!
//! - [`Carrying`]: the carried links of this member, those that end here and those that it carries
//! - `frame`: what is said on them
//! - `ways`: through whom a member is reached
//! - `waiting`: what waits at one link for one of them
//! - `end`: one that ends here, as the transport under a sealed link
//! - `dial`: when a member is linked through others

pub(crate) mod dial;
pub(crate) mod end;
pub(crate) mod frame;
#[cfg(test)]
mod tests;
mod waiting;
pub(crate) mod ways;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::time::sleep;
use wire::Outbox;

use crate::{
    circuit::TooMuch,
    link::frame::{Channel, LinkFrame},
};
use end::{CarriedEnd, Line};
use frame::{Body, CarriedFrame, Closed, Open};
use waiting::Waiting;
use ways::{MOST_CARRIERS, Reach, Ways};

/// The most links that this member carries for others.
pub(crate) const MOST_PAIRS: usize = 64;
/// The most carried links that end here.
const MOST_ENDS: usize = 512;
/// Changes of the ways are gathered before the others hear of them.
const TELL_AFTER: Duration = Duration::from_millis(50);

/// Answers a link that another member opens through others: its id, and this end.
pub(crate) type Answer = Box<dyn Fn(String, CarriedEnd) + Send + Sync>;

/// The carried links of this member.
pub(crate) struct Carrying {
    node: String,
    state: Mutex<State>,
    answer: OnceLock<Answer>,
    is_telling: AtomicBool,
}

struct State {
    /// The direct links, by number.
    hops: BTreeMap<u64, Hop>,
    ways: Ways,
    ports: BTreeMap<Place, Port>,
}

/// A carried link at a direct one: the number of the direct one, and the channel on which its frames
/// come from there.
type Place = (u64, Channel);

/// A direct link.
struct Hop {
    node: String,
    outbox: Outbox,
    next: u32,
    /// What its member was told last of the ways from here.
    told: Reach,
}

/// Where frames of a carried link go on.
enum Port {
    /// It ends here.
    End(Arc<Line>),
    /// It goes on at this place.
    On(Place, Arc<Waiting>),
}

impl Carrying {
    pub(crate) fn new(node: String) -> Self {
        let (hops, ports) = Default::default();
        let state = Mutex::new(State { hops, ways: Ways::new(node.clone()), ports });
        Self { node, state, answer: OnceLock::new(), is_telling: AtomicBool::new(false) }
    }

    /// Sets what answers those who link to this member through others. Called once.
    pub(crate) fn set_answer(&self, answer: Answer) {
        let _set_before = self.answer.set(answer);
    }

    /// A direct link to a member is there.
    pub(crate) fn linked(self: &Arc<Self>, link: u64, node: &str, outbox: Outbox) {
        let mut state = self.lock();
        state.ways.linked(node);
        let (node, told) = (node.to_owned(), Reach::default());
        state.hops.insert(link, Hop { node, outbox, next: 0, told });
        drop(state);
        self.tell_soon();
    }

    /// A link has ended. Nothing is known of one that is carried itself.
    pub(crate) fn unlinked(self: &Arc<Self>, link: u64) {
        let mut state = self.lock();
        let Some(Hop { node, .. }) = state.hops.remove(&link) else { return };
        if state.hops.values().all(|hop| hop.node != node) {
            state.ways.unlinked(&node);
        }
        let gone = state.take_all_at(link);
        drop(state);
        gone.iter().for_each(|port| port.close(&Closed::ended("a link that carried it ended")));
        self.tell_soon();
    }

    /// The members through which another one is reached, the shortest way first.
    pub(crate) fn ways_to(&self, node: &str) -> Vec<String> {
        self.lock().ways.through(node, &[])
    }

    /// Opens a link to a member through a linked one; `None` if that is linked no more, or too many
    /// end here.
    pub(crate) fn open(self: &Arc<Self>, through: &str, to: &str) -> Option<CarriedEnd> {
        let mut state = self.lock();
        if state.ends() >= MOST_ENDS {
            return None;
        }
        let (place, waiting) = state.out(through)?;
        let (from, carriers) = (self.node.clone(), Vec::new());
        waiting.put_last(Body::Open(Open { to: to.to_owned(), from, carriers }));
        Some(self.end(&mut state, place, through.to_owned(), waiting))
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
        let Some(node) = state.hops.get(&link).map(|hop| hop.node.clone()) else { return };
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
        let (before, back) = (hop.node.clone(), Waiting::new(hop.outbox.clone(), flip(place.1)));
        match open.to == self.node {
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

    /// Carries a link on, or says why not.
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
        let out = next.and_then(|next| state.out(&next));
        let (to, forth) = out.ok_or("no link leads on to that member")?;
        forth.put_last(Body::Open(open));
        state.ports.insert(from, Port::On(to, forth));
        state.ports.insert(to, Port::On(from, Arc::clone(back)));
        Ok(())
    }

    /// What is said on a carried link.
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
        through: String,
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

    /// How many links it carries for others.
    #[cfg(test)]
    pub(crate) fn pairs(&self) -> usize {
        self.lock().pairs()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A new carried link at the newest direct one to a member: where its frames come from, and where
    /// they wait to go there.
    fn out(&mut self, node: &str) -> Option<(Place, Arc<Waiting>)> {
        let mut hops = self.hops.iter_mut().rev();
        let (link, hop) = hops.find(|(_, hop)| hop.node == node)?;
        let number = hop.next;
        hop.next = hop.next.wrapping_add(1);
        let channel = Channel { number, to_opener: true };
        Some(((*link, channel), Waiting::new(hop.outbox.clone(), flip(channel))))
    }

    fn ends(&self) -> usize {
        self.ports.values().filter(|port| matches!(port, Port::End(_))).count()
    }

    fn pairs(&self) -> usize {
        (self.ports.len() - self.ends()) / 2
    }

    /// Takes a port, and with it that at the other side.
    fn take(&mut self, place: Place) -> Vec<Port> {
        let Some(port) = self.ports.remove(&place) else { return Vec::new() };
        let other = match &port {
            Port::On(other, _) => self.ports.remove(other),
            Port::End(_) => None,
        };
        [port].into_iter().chain(other).collect()
    }

    /// The same for all ports at a link.
    fn take_all_at(&mut self, link: u64) -> Vec<Port> {
        let places: Vec<Place> = self.ports.keys().filter(|(at, _)| *at == link).copied().collect();
        places.into_iter().flat_map(|place| self.take(place)).collect()
    }

    /// Tells each linked member whom this one reaches, if it was told otherwise.
    fn tell(&mut self) {
        for hop in self.hops.values_mut() {
            let reach = self.ways.reach(&hop.node);
            if reach != hop.told {
                hop.told = reach.clone();
                let frame = LinkFrame::Carried(CarriedFrame::Ways(reach).encode());
                let _link_ended = hop.outbox.push(frame.encode());
            }
        }
    }
}

impl Port {
    /// Ends it, and tells the member that its frames go to.
    fn close(&self, why: &Closed) {
        match self {
            Self::End(line) => line.give_up(why.clone()),
            Self::On(_, on) => on.give_up(Body::Closed(why.clone())),
        }
    }
}

/// The same channel for frames in the other direction.
fn flip(channel: Channel) -> Channel {
    Channel { to_opener: !channel.to_opener, ..channel }
}
