//! Accepts links that plain peers open, and drives the links to them.
//!
//! - [`run`]: the loop, and what is sent
//! - `messages`: what is received
//! - `end`: why it ended

mod end;
mod messages;

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use base::ClientAddress;
use protocol::workspace::{
    limits::SNAPSHOT_MAX,
    peer::{NodeName, PeerMessage},
};
use replica::{Key, Kind};
use tokio::{
    sync::OwnedSemaphorePermit,
    task,
    time::{Instant, Interval, MissedTickBehavior, interval},
};
use wire::{Frame, Limits, Link, Outbox, Upgrade, until};

use super::{
    complaints::Complaints,
    greeting::{self, Greeted},
    inbound::Inbound,
    merge::Merge,
    news::News,
    outbound::router::Router,
    peers::Linked,
    rights::Parties,
    saying,
};
use crate::{
    changes::{Changed, Changes, TooMany},
    shared::Shared,
};
use end::PlainEnd;

/// The number of missed signs of life after which a link counts as silent, and then as gone. It is
/// higher than for a Warren: a plain peer may be busy for longer, and no rule says how soon it must
/// answer.
const SILENT: u32 = 3;
const GONE: u32 = 60;

/// The most links that have not greeted yet.
pub(crate) const MOST_STRANGERS: usize = 64;

/// Runs a link that a plain peer opens, in a task of its own.
pub(crate) fn accept(
    shared: &Arc<Shared>,
    upgrade: Upgrade,
    permit: OwnedSemaphorePermit,
    from: ClientAddress,
) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        // An error means that the peer left before the link stood.
        let Ok((link, outbox)) = upgrade.link_within(Limits::default()).await else { return };
        let greeted = greeting::answer(&shared, link, outbox).await;
        drop(permit);
        match greeted {
            Ok(greeted) => drop(run(&shared, greeted).await),
            Err(error) => {
                shared.strangers.failed(from);
                let error = base::error::chain(&error);
                tracing::warn!(%from, error, "a plain peer's link was refused");
            }
        }
    });
}

/// Runs a link until it ends.
pub(crate) async fn run(shared: &Arc<Shared>, greeted: Greeted) -> PlainEnd {
    let Greeted { link, outbox, node, name, token } = greeted;
    let linked = match shared.plain.link(&node, name, &outbox) {
        Ok(linked) => linked,
        Err(words) => {
            link.close(1008, &words).await;
            return PlainEnd::TooMany(words);
        }
    };
    // The cluster may have got a new token since the greeting.
    let tokens = shared.config().tokens;
    let is_present = tokens.present().is_some_and(|present| present.secret == token);
    if shared.is_closed.load(Ordering::Relaxed) || !is_present {
        linked.closing().cancel();
    }
    tracing::info!(node, "linked to a plain peer");
    let now = Instant::now();
    // The peer is known as long as its link is registered.
    let router = shared.plain.router(&node).unwrap_or_default();
    let mut running = PlainLink {
        // Followed before the snapshot, so that no change is missed between the two.
        changes: shared.directory.follow(),
        merge: Merge::new(shared.driver.clone(), Arc::clone(&shared.directory)),
        news: News::new(now.into_std()),
        inbound: Inbound::new(shared, &node, &outbox),
        router,
        complaints: Complaints::default(),
        refusals: Complaints::default(),
        snapshot: VecDeque::new(),
        heard_at: now,
        name_said: shared.this.member().name,
        shared: Arc::clone(shared),
        link,
        outbox,
        node,
        linked,
    };
    let end = running.until_end().await;
    let PlainLink { link, linked, node, .. } = running;
    drop(linked);
    shared.plain_changed();
    let Err(end) = end;
    tracing::info!(node, %end, "a plain peer's link ended");
    link.close(end.code(), &end.to_string()).await;
    end
}

struct PlainLink {
    shared: Arc<Shared>,
    link: Link,
    outbox: Outbox,
    node: String,
    linked: Linked,
    changes: Arc<Changes>,
    merge: Merge,
    news: News,
    inbound: Inbound,
    router: Arc<Router>,
    /// Counts of the messages that could not be read, and of objects that were refused.
    complaints: Complaints,
    refusals: Complaints,
    /// The parts of a snapshot that wait for room.
    snapshot: VecDeque<Frame>,
    /// When there was last room in the outbox.
    heard_at: Instant,
    /// The name of this member that was last sent to the peer.
    name_said: String,
}

impl PlainLink {
    async fn until_end(&mut self) -> Result<std::convert::Infallible, PlainEnd> {
        self.link.set_max_message(SNAPSHOT_MAX);
        self.make_snapshot().await?;
        self.say()?;
        self.linked.open();
        self.shared.plain_changed();
        let mut beats = beats(self.shared.settings.heartbeat);
        let (closing, changes) = (self.linked.closing().clone(), Arc::clone(&self.changes));
        loop {
            let has_room = self.outbox.has_room();
            let has_words = !self.snapshot.is_empty() || !self.news.is_empty();
            let (outbox, snapshot_due) = (self.outbox.clone(), self.news.snapshot_due());
            tokio::select! {
                () = closing.cancelled() => return Err(PlainEnd::ClosedHere),
                frame = self.link.next() => match frame? {
                    Some(frame) => self.frame(frame).await?,
                    None => return Err(PlainEnd::Closed),
                },
                changed = changes.next() => self.changed(changed)?,
                room = outbox.room(), if has_words => {
                    room?;
                    self.say()?;
                }
                () = until(snapshot_due), if self.snapshot.is_empty() => self.make_snapshot().await?,
                _ = beats.tick() => self.beat(has_room)?,
            }
        }
    }

    fn changed(
        &mut self,
        changed: Result<BTreeMap<Key, Changed>, TooMany>,
    ) -> Result<(), PlainEnd> {
        let changed = changed.map_err(|TooMany| PlainEnd::Behind)?;
        let shared = Arc::clone(&self.shared);
        let me = shared.this.node_id.as_str();
        for (key, changed) in changed {
            match key.kind {
                Kind::MEMBER if *key.id == *self.node && !changed.is_gone => {
                    return Err(PlainEnd::Sealed);
                }
                Kind::MEMBER if *key.id == *me => self.say_name()?,
                _ => self.news.changed(Parties { me, peer: &self.node }, key, &changed),
            }
        }
        Ok(())
    }

    /// Sends this member's name to the peer, if it has changed.
    fn say_name(&mut self) -> Result<(), PlainEnd> {
        let name = self.shared.this.member().name;
        if name != self.name_said && !name.is_empty() {
            let message = PeerMessage::DisplayNameUpdate(NodeName { name: name.clone() });
            self.outbox.push(message.encode())?;
            self.name_said = name;
        }
        Ok(())
    }

    /// Makes a snapshot. Its parts are sent when there is room.
    async fn make_snapshot(&mut self) -> Result<(), PlainEnd> {
        self.news.snapshot_sent(Instant::now().into_std());
        let (directory, node) = (Arc::clone(&self.shared.directory), self.node.clone());
        let making = task::spawn_blocking(move || saying::snapshot(&directory, &node));
        let parts = meanwhile(&mut self.link, making).await;
        self.snapshot.extend(parts.map_err(|_| PlainEnd::ClosedHere)?);
        Ok(())
    }

    /// Sends as much as there is room for.
    fn say(&mut self) -> Result<(), PlainEnd> {
        while self.outbox.has_room() {
            if let Some(part) = self.snapshot.pop_front() {
                self.outbox.push(part)?;
                continue;
            }
            let Some(key) = self.news.pop() else { return Ok(()) };
            let entry = self.shared.directory.get(key.kind, &key.id);
            for message in saying::messages(&key, entry.as_ref()) {
                self.outbox.push(message)?;
            }
        }
        Ok(())
    }

    fn beat(&mut self, has_room: bool) -> Result<(), PlainEnd> {
        let heartbeat = self.shared.settings.heartbeat;
        let silence = self.link.heard().elapsed();
        self.linked.set_silent(silence >= heartbeat * SILENT);
        if silence >= heartbeat * GONE {
            return Err(PlainEnd::Silent(silence));
        }
        if has_room {
            self.heard_at = Instant::now();
        }
        let deaf = self.heard_at.elapsed();
        if deaf >= heartbeat * GONE {
            return Err(PlainEnd::Deaf(deaf));
        }
        // The same error appears when the link is read next.
        let _broken = self.link.ping();
        Ok(())
    }
}

/// Waits for a future. Meanwhile the link is written, but not read.
async fn meanwhile<T>(link: &mut Link, wait: impl Future<Output = T>) -> T {
    let mut wait = pin!(wait);
    tokio::select! {
        biased;
        waited = &mut wait => return waited,
        // The same error appears when the link is read next.
        _broken = link.write_only() => {}
    }
    wait.await
}

fn beats(heartbeat: Duration) -> Interval {
    let mut beats = interval(heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}
