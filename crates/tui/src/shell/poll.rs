//! Polls a server each second for its state.

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
    event::{Event, PollAnswers},
    reading::is_private,
};

/// How often a server is polled.
const EVERY: Duration = Duration::from_secs(1);

/// How long an administrator's lists are not polled, after the server refused them.
const PRIVATE: Duration = Duration::from_secs(30);

/// How often the names of keys and peers are polled.
const NAMES: Duration = Duration::from_secs(30);

/// Polls until the interface has ended.
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
    /// The time of the last poll for names.
    names_at: Option<Instant>,
}

impl Poll {
    async fn ask(&mut self) -> PollAnswers {
        let (warren, url) = (&self.server, &self.server.url());
        let health = soon(url, warren.health()).await;
        if health.as_ref().is_err_and(ClientError::is_unreachable) {
            // The other questions would only wait for their own deadlines.
            return PollAnswers {
                health,
                stats: None,
                requests: None,
                rooms: None,
                names: BTreeMap::new(),
            };
        }
        let is_admin = self.private_until.is_none_or(|until| Instant::now() >= until);
        let requests = async { soon(url, warren.requests(self.after, KEPT)).await };
        let (stats, requests, rooms) = tokio::join!(
            ask_if(is_admin, soon(url, warren.stats())),
            ask_if(is_admin, requests),
            soon(url, warren.rooms()),
        );
        self.note(requests.as_ref());
        let names = if is_admin { self.names().await } else { BTreeMap::new() };
        PollAnswers { health, stats, requests, rooms: Some(rooms), names }
    }

    /// The names of keys and peers, or nothing until they are due again. A server without a mesh has no peers.
    async fn names(&mut self) -> BTreeMap<String, String> {
        let now = Instant::now();
        if self.names_at.is_some_and(|at| now < at + NAMES) {
            return BTreeMap::new();
        }
        self.names_at = Some(now);
        let (warren, url) = (&self.server, &self.server.url());
        let (keys, peers) = tokio::join!(soon(url, warren.keys()), soon(url, warren.mesh_peers()));
        // Without a name, the id is shown, so after a failure the next poll for names is soon enough.
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

async fn ask_if<T>(is_admin: bool, question: impl Future<Output = T>) -> Option<T> {
    if is_admin { Some(question.await) } else { None }
}
