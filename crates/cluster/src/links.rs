//! The links of this member, one to each other member.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use base::NodeId;
use replica::{Incarnation, LinkId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::Outbox;

use crate::{
    barred::Barred,
    carried::{Carrying, Through},
    circuit::{Circuits, Way},
    control::Control,
    driver::Driver,
    link::{
        frame::LinkFrame,
        handshake::Proven,
        sealed::{COPIED, LinkEnd, SealedLink},
        tie::{self, Claim},
    },
    tokens::Heard,
};

/// The most replaced incarnations that are remembered for each member.
const REPLACED: usize = 16;

/// The links of this member.
pub(crate) struct Links {
    node: String,
    heartbeat: Duration,
    driver: Driver,
    circuits: Arc<Circuits>,
    carrying: Arc<Carrying>,
    barred: Arc<Barred>,
    /// Receives new tokens that members tell.
    tokens: mpsc::Sender<Heard>,
    next: AtomicU64,
    present: Mutex<BTreeMap<String, Present>>,
    /// For each member, the incarnations whose links gave way to a link of another incarnation.
    replaced: Mutex<BTreeMap<String, VecDeque<u64>>>,
    /// Held while a link comes or goes, so that the replica gets both in order.
    changing: tokio::sync::Mutex<()>,
}

/// The link to a member.
#[derive(Clone)]
pub(crate) struct Present {
    number: u64,
    opened_here: bool,
    incarnation: u64,
    dial: u64,
    /// Its first carrier.
    through: Option<Through>,
    is_silent: Arc<AtomicBool>,
    closing: CancellationToken,
    /// The other end's key.
    key: NodeId,
    outbox: Outbox,
}

impl Present {
    fn claim(&self) -> Claim {
        Claim {
            opened_here: self.opened_here,
            incarnation: self.incarnation,
            dial: self.dial,
            is_carried: self.through.is_some(),
            is_silent: self.is_silent.load(Ordering::Relaxed),
        }
    }

    /// Whether it has given signs of life lately.
    pub(crate) fn is_alive(&self) -> bool {
        !self.is_silent.load(Ordering::Relaxed)
    }

    /// Its first carrier; `None` for a direct link.
    pub(crate) fn through(&self) -> Option<&Through> {
        self.through.as_ref()
    }
}

impl Links {
    pub(crate) fn new(
        node: String,
        heartbeat: Duration,
        driver: Driver,
        circuits: Arc<Circuits>,
        carrying: Arc<Carrying>,
        barred: Arc<Barred>,
        tokens: mpsc::Sender<Heard>,
    ) -> Self {
        let (next, present, replaced, changing) = Default::default();
        Self {
            node,
            heartbeat,
            driver,
            circuits,
            carrying,
            barred,
            tokens,
            next,
            present,
            replaced,
            changing,
        }
    }

    /// The link to a member, if there is one.
    pub(crate) fn get(&self, node: &str) -> Option<Present> {
        self.lock().get(node).cloned()
    }

    /// Whether a direct link leads to a member.
    pub(crate) fn has_direct(&self, node: &str) -> bool {
        self.get(node).is_some_and(|present| present.through.is_none())
    }

    /// Ends the link to a member, if there is one.
    pub(crate) fn hang_up(&self, node: &str) {
        if let Some(present) = self.get(node) {
            present.closing.cancel();
        }
    }

    /// The members that are linked, and their keys.
    pub(crate) fn keys(&self) -> Vec<(String, NodeId)> {
        self.lock().iter().map(|(node, present)| (node.clone(), present.key)).collect()
    }

    /// Sends a frame to the linked members whose keys pass `is_wished`.
    pub(crate) fn tell(&self, frame: &LinkFrame, is_wished: impl Fn(&NodeId) -> bool) {
        for present in self.lock().values().filter(|present| is_wished(&present.key)) {
            let _link_ended = present.outbox.push(frame.encode());
        }
    }

    /// Whether there are no links.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Ends all links.
    pub(crate) fn close(&self) {
        self.lock().values().for_each(|present| present.closing.cancel());
    }

    /// Runs a proven link until it ends. It is closed at once if another link to the member stays.
    /// `dialled` is the count of the dial, if this member opened the link. `greet` may send what
    /// must come before all else.
    pub(crate) async fn run(
        self: &Arc<Self>,
        proven: Proven,
        dialled: Option<u64>,
        greet: impl FnOnce(&Outbox),
    ) -> LinkEnd {
        let Proven { carrier, sealer, opener, hello, key, .. } = proven;
        if self.is_replaced(&hello.node_id, hello.incarnation) {
            carrier.close(1008, COPIED).await;
            return LinkEnd::Copied;
        }
        let (outbox, frames) = Outbox::detached();
        let (is_silent, closing) = (Arc::<AtomicBool>::default(), CancellationToken::new());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let through = carrier.through().cloned();
        let is_direct = through.is_none();
        let present = Present {
            number,
            opened_here: dialled.is_some(),
            incarnation: hello.incarnation,
            dial: dialled.unwrap_or(hello.dial),
            through,
            is_silent: Arc::clone(&is_silent),
            closing: closing.clone(),
            key,
            outbox: outbox.clone(),
        };
        let node = hello.node_id.clone();
        let link = SealedLink {
            carrier,
            sealer,
            opener,
            frames,
            closing: closing.clone(),
            is_silent,
            heartbeat: self.heartbeat,
        };
        let turn = self.changing.lock().await;
        match self.take(&node, present) {
            Stays::Old => closing.cancel(),
            Stays::New(replaced) => {
                if let Some(replaced) = replaced {
                    self.carrying.unlinked(replaced);
                    self.driver.unlinked(LinkId(replaced)).await;
                }
                if is_direct {
                    self.carrying.linked(number, &node, outbox.clone());
                }
                greet(&outbox);
                self.linked(&node, number, hello.incarnation, &outbox).await;
            }
        }
        drop(turn);
        // If the caller is dropped, the link is closed, and the task still reports its end.
        let _hang_up = closing.drop_guard();
        let links = Arc::clone(self);
        let running = tokio::spawn(async move {
            let end = link.run(|frame| links.received(&node, number, &key, frame)).await;
            links.unlinked(&node, number).await;
            end
        });
        running.await.unwrap_or(LinkEnd::ClosedHere)
    }

    /// Makes a link the present one, unless the present one stays.
    fn take(&self, node: &str, new: Present) -> Stays {
        let mut present = self.lock();
        let Some(old) = present.get(node) else {
            present.insert(node.to_owned(), new);
            return Stays::New(None);
        };
        if !tie::newer_stays(*self.node < *node, old.claim(), new.claim()) {
            return Stays::Old;
        }
        if old.incarnation != new.incarnation {
            self.replaced(node, old.incarnation);
        }
        old.closing.cancel();
        let replaced = old.number;
        present.insert(node.to_owned(), new);
        Stays::New(Some(replaced))
    }

    /// Whether a later incarnation has replaced this one. A machine that restarts never has an
    /// earlier incarnation again, so two machines have this id. When the other one is gone, this
    /// one may come back.
    fn is_replaced(&self, node: &str, incarnation: u64) -> bool {
        if self.get(node).is_none_or(|present| present.incarnation == incarnation) {
            return false;
        }
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.get(node).is_some_and(|earlier| earlier.contains(&incarnation))
    }

    fn replaced(&self, node: &str, incarnation: u64) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = replaced.entry(node.to_owned()).or_default();
        earlier.push_back(incarnation);
        if earlier.len() > REPLACED {
            earlier.pop_front();
        }
    }

    async fn linked(&self, node: &str, number: u64, incarnation: u64, outbox: &Outbox) {
        tracing::info!(node, "linked to a member");
        let way = Way { link: number, outbox: outbox.clone() };
        self.circuits.linked(node, incarnation, way);
        let incarnation = Incarnation(incarnation);
        self.driver.linked(LinkId(number), node.into(), incarnation, outbox.clone()).await;
    }

    async fn unlinked(&self, node: &str, number: u64) {
        let _turn = self.changing.lock().await;
        {
            let mut present = self.lock();
            if present.get(node).is_none_or(|present| present.number != number) {
                return;
            }
            present.remove(node);
        }
        self.carrying.unlinked(number);
        self.circuits.unlinked(node, number);
        self.driver.unlinked(LinkId(number)).await;
    }

    fn received(&self, node: &str, number: u64, key: &NodeId, frame: LinkFrame) {
        match frame {
            LinkFrame::Replica(bytes) => self.driver.message(LinkId(number), bytes),
            // A carried link is not known in `carrying`. So a link is never carried by a carried
            // one.
            LinkFrame::Carried(bytes) => self.carrying.received(number, bytes),
            LinkFrame::Control(text) => match Control::decode(&text) {
                Ok(Control::NewToken(token)) if !self.barred.has(key) => {
                    let heard = Heard::Told { from: node.to_owned(), token };
                    // A token that finds no room is announced again over the next link.
                    let _full_or_stopping = self.tokens.try_send(heard);
                }
                Ok(control) => self.circuits.control(node, control),
                Err(error) => tracing::warn!(node, %error, "a member's message cannot be read"),
            },
            frame => self.circuits.received(node, frame),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of two links stays.
enum Stays {
    /// The new one, with the number of the link that it replaces.
    New(Option<u64>),
    /// The earlier one; the new one ends.
    Old,
}
