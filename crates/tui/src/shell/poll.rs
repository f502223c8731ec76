//! Asks a server how it is, each second.

use std::{collections::BTreeMap, time::Duration};

use client::{
    ClientError, Warren,
    admin::requests::{KEPT, RequestJson},
};
use tokio::{
    sync::mpsc::Sender,
    time::{Instant, MissedTickBehavior, interval},
};

use super::soon;
use crate::app::{
    event::{Event, Polled},
    reading::is_private,
};

/// How often a server is asked.
const EVERY: Duration = Duration::from_secs(1);

/// How long an administrator's lists are not asked for, after the server refused them.
const PRIVATE: Duration = Duration::from_secs(30);

/// How often the names of keys and peers are asked for.
const NAMES: Duration = Duration::from_secs(30);

/// Asks until nobody listens any more.
pub(super) async fn run(server: Warren, epoch: u64, events: Sender<Event>) {
    let mut every = interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut poll = Poll { server, after: 0, private_until: None, names_at: None };
    loop {
        every.tick().await;
        let polled = Box::new(poll.ask().await);
        if events.send(Event::Polled { epoch, polled }).await.is_err() {
            return;
        }
    }
}

struct Poll {
    server: Warren,
    /// The number of the last request that is known.
    after: u64,
    private_until: Option<Instant>,
    /// When the names were asked for last.
    names_at: Option<Instant>,
}

impl Poll {
    async fn ask(&mut self) -> Polled {
        let (warren, url) = (&self.server, &self.server.url());
        let health = soon(url, warren.health()).await;
        if health.as_ref().is_err_and(ClientError::is_unreachable) {
            return Polled {
                health,
                stats: None,
                requests: None,
                rooms: None,
                names: BTreeMap::new(),
            };
        }
        let is_told = self.private_until.is_none_or(|until| Instant::now() >= until);
        let requests = async { soon(url, warren.requests(self.after, KEPT)).await };
        let (stats, requests, rooms) = tokio::join!(
            asked(is_told, soon(url, warren.stats())),
            asked(is_told, requests),
            soon(url, warren.rooms()),
        );
        self.note(requests.as_ref());
        let names = if is_told { self.names().await } else { BTreeMap::new() };
        Polled { health, stats, requests, rooms: Some(rooms), names }
    }

    /// The names of keys and peers, now and then. A server without a mesh has no peers.
    async fn names(&mut self) -> BTreeMap<String, String> {
        let now = Instant::now();
        if self.names_at.is_some_and(|at| now < at + NAMES) {
            return BTreeMap::new();
        }
        self.names_at = Some(now);
        let (warren, url) = (&self.server, &self.server.url());
        let (keys, peers) = tokio::join!(soon(url, warren.keys()), soon(url, warren.mesh_peers()));
        let keys = keys.unwrap_or_default().into_iter().map(|key| (key.id, key.name));
        let peers = peers.unwrap_or_default().peers.into_iter().map(|peer| (peer.id, peer.name));
        keys.chain(peers).filter(|(_, name)| !name.trim().is_empty()).collect()
    }

    fn note(&mut self, requests: Option<&Result<Vec<RequestJson>, ClientError>>) {
        match requests {
            Some(Ok(requests)) => {
                self.after = requests.first().map_or(self.after, |newest| newest.n);
            }
            Some(Err(error)) if is_private(error) => {
                self.private_until = Some(Instant::now() + PRIVATE);
            }
            Some(Err(_)) | None => {}
        }
    }
}

async fn asked<T>(is_told: bool, question: impl Future<Output = T>) -> Option<T> {
    if is_told { Some(question.await) } else { None }
}
