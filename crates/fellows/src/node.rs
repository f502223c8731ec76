//! The parts of a server that its fellows' messages reach.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use base::ProviderId;
use bytes::Bytes;
use fleet::{Frame, Message, ServerId, ServerName};
use scheduler::Scheduler;

use crate::{
    counts::Counts,
    facts::is_lendable,
    jobs::seat::Seats,
    membership::Fleet,
    sealing::{NotOpened, Opener},
    slots::Slots,
    streams::Streams,
    transport::{Kind, Transport},
};

/// The state that the tasks of a server share.
pub(crate) struct Node {
    pub(crate) id: ServerId,
    pub(crate) name: ServerName,
    pub(crate) scheduler: Scheduler,
    pub(crate) transport: Arc<Transport>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) seats: Seats,
    pub(crate) counts: Arc<Counts>,
    pub(crate) trouble: Trouble,
}

/// The problems, for `/health`.
#[derive(Default)]
pub(crate) struct Trouble {
    /// With NATS.
    nats: Mutex<Option<String>>,
    same_name: AtomicBool,
    /// Messages and records that could not be opened.
    strange: AtomicU64,
    /// The last thing that was wrong with one.
    strangers: Mutex<Option<NotOpened>>,
}

impl Node {
    /// A message of a fellow, sealed.
    pub(crate) fn arrived(&self, opener: &mut Opener, own_subject: &str, sealed: &Bytes) {
        let (from, message) = match opener.open(own_subject, sealed) {
            Ok(opened) => opened,
            Err(why) => return self.trouble.stranger(why),
        };
        // Those of servers that have gone, or are not known yet, are like lost ones.
        if !self.fleet.has(from) {
            return;
        }
        let kind = message.first().copied().and_then(Kind::of);
        let rest = message.slice(1.min(message.len())..);
        match kind {
            Some(Kind::Stream) => match Frame::decode(rest) {
                Ok(frame) => self.streams.arrived(from, frame),
                Err(error) => tracing::warn!(%error, "a frame of another server makes no sense"),
            },
            Some(Kind::Slots) => match Message::decode(&rest) {
                Ok(message) => self.slots.message(from, message),
                Err(error) => tracing::warn!(%error, "a message of another server makes no sense"),
            },
            None => tracing::debug!("a message of another server of an unknown kind"),
        }
    }

    /// Looks at the own workers, and says which may be lent. Returns the scheduler's state.
    pub(crate) fn look(&self) -> scheduler::Status {
        let status = self.scheduler.status();
        let own: BTreeSet<ProviderId> =
            status.workers.iter().filter(|it| is_lendable(it)).map(|worker| worker.id).collect();
        self.slots.own(own);
        status
    }

    pub(crate) fn set_same_name(&self, so: bool) {
        self.trouble.same_name.store(so, Ordering::Relaxed);
    }
}

impl Trouble {
    /// NATS is not usable for this reason, or is again. Returns whether that is news.
    pub(crate) fn set_nats(&self, why: Option<String>) -> bool {
        let mut nats = self.nats.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *nats != why;
        *nats = why;
        is_news
    }

    /// Something came that no server of the group has sent.
    pub(crate) fn stranger(&self, why: NotOpened) {
        let number = self.strange.fetch_add(1, Ordering::Relaxed) + 1;
        if why != NotOpened::Again {
            *self.strangers.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        }
        if number.is_power_of_two() {
            tracing::warn!(%why, number, "something that came over NATS is ignored");
        }
    }

    /// Forgets the strangers of the last while. Called when none was seen for some seconds.
    pub(crate) fn forget_strangers(&self) {
        *self.strangers.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn strange(&self) -> u64 {
        self.strange.load(Ordering::Relaxed)
    }

    /// The problem, and what to do about it.
    pub(crate) fn problem(&self, name: &ServerName) -> Option<String> {
        let nats = self.nats.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let same = || {
            let is_same = self.same_name.load(Ordering::Relaxed);
            is_same.then(|| {
                format!("another server has this server's name, {name}: give each its own with --server-name")
            })
        };
        let strangers = || {
            let why = *self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            match why? {
                NotOpened::Version(_) => Some(
                    "a server of the group speaks another version of the protocol between servers, and is not \
                     used: upgrade all servers"
                        .to_owned(),
                ),
                _ => Some(
                    "a server of the group has another administrator's token, and is not used: give all servers the \
                     same --admin-token"
                        .to_owned(),
                ),
            }
        };
        nats.or_else(same).or_else(strangers)
    }
}
