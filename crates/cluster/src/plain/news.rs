//! When objects are sent to a plain peer. This member's writes are sent at once. The peer may not
//! be linked to the other writers, so some time after their writes it gets all objects again.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use replica::{Key, Kind};

use super::rights::Parties;
use crate::changes::Changed;

/// The shortest time between two snapshots.
pub(crate) const BETWEEN_SNAPSHOTS: Duration = Duration::from_secs(60);

/// The objects to send to a plain peer.
#[derive(Debug)]
pub(crate) struct News {
    keys: BTreeSet<Key>,
    /// Objects that other members deleted. A snapshot does not show that.
    gone: BTreeSet<Key>,
    last_snapshot: Instant,
    is_snapshot_wanted: bool,
}

impl News {
    /// Nothing to tell yet. A snapshot is sent at this time.
    pub(crate) fn new(now: Instant) -> Self {
        let (keys, gone) = Default::default();
        Self { keys, gone, last_snapshot: now, is_snapshot_wanted: false }
    }

    /// Takes in that an object changed.
    pub(crate) fn changed(&mut self, parties: Parties<'_>, key: Key, changed: &Changed) {
        if !is_spoken_of(key.kind) || is_from(parties.peer, &key, changed) {
            return;
        }
        let is_own = match key.kind {
            Kind::SESSION => changed.owner.as_str() == parties.me,
            // Any member may delete such an object, and the delete is final.
            _ if changed.is_gone => true,
            _ => changed.writer.as_ref().is_some_and(|writer| writer.as_str() == parties.me),
        };
        if is_own {
            self.tell(key);
            return;
        }
        self.is_snapshot_wanted = true;
        match changed.is_gone {
            true => self.gone.insert(key),
            false => self.gone.remove(&key),
        };
    }

    /// Notes that this object must be sent to the peer, in the state that it then has.
    pub(crate) fn tell(&mut self, key: Key) {
        self.keys.insert(key);
    }

    /// The next object to send.
    pub(crate) fn pop(&mut self) -> Option<Key> {
        self.keys.pop_first()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// When the next snapshot is due.
    pub(crate) fn snapshot_due(&self) -> Option<Instant> {
        self.is_snapshot_wanted.then(|| self.last_snapshot + BETWEEN_SNAPSHOTS)
    }

    /// A snapshot is sent at this time. It does not show deleted objects, so these are sent as
    /// well.
    pub(crate) fn snapshot_sent(&mut self, now: Instant) {
        self.keys.append(&mut self.gone);
        (self.last_snapshot, self.is_snapshot_wanted) = (now, false);
    }
}

/// Whether objects of this kind are sent to plain peers.
pub(crate) fn is_spoken_of(kind: Kind) -> bool {
    matches!(kind, Kind::SESSION | Kind::PROJECT | Kind::TEAM)
}

/// Whether the peer itself made the change.
fn is_from(peer: &str, key: &Key, changed: &Changed) -> bool {
    match (key.kind, &changed.writer) {
        (Kind::SESSION, _) => changed.owner.as_str() == peer,
        (_, Some(writer)) => !changed.is_gone && writer.as_str() == peer,
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTIES: Parties<'_> = Parties { me: "me", peer: "peer" };

    fn changed(owner: &str, writer: Option<&str>, is_gone: bool) -> Changed {
        Changed { owner: owner.into(), writer: writer.map(Into::into), is_gone }
    }

    fn session() -> Key {
        Key::new(Kind::SESSION, "s")
    }

    fn project() -> Key {
        Key::new(Kind::PROJECT, "p")
    }

    /// Whether it is said at once, and when the next snapshot is due.
    fn after(key: &Key, changed: &Changed) -> (bool, Option<Duration>) {
        let now = Instant::now();
        let mut news = News::new(now);
        news.changed(PARTIES, key.clone(), changed);
        (news.pop().is_some(), news.snapshot_due().map(|due| due - now))
    }

    #[test]
    fn own_writes_are_said_at_once_and_those_of_others_a_minute_later() {
        let later = (false, Some(BETWEEN_SNAPSHOTS));
        assert_eq!(after(&session(), &changed("me", None, false)), (true, None));
        assert_eq!(after(&session(), &changed("me", None, true)), (true, None));
        assert_eq!(after(&session(), &changed("other", None, false)), later);
        assert_eq!(after(&session(), &changed("other", None, true)), later);
        assert_eq!(after(&project(), &changed("other", Some("me"), false)), (true, None));
        assert_eq!(after(&project(), &changed("me", Some("other"), false)), later);
        assert_eq!(after(&project(), &changed("other", Some("other"), true)), (true, None));
    }

    #[test]
    fn nothing_that_the_peer_said_is_said_back() {
        assert_eq!(after(&session(), &changed("peer", None, false)), (false, None));
        assert_eq!(after(&project(), &changed("me", Some("peer"), false)), (false, None));
        assert_eq!(after(&Key::new(Kind::MEMBER, "m"), &changed("m", None, false)), (false, None));
    }

    #[test]
    fn what_others_deleted_is_said_with_the_snapshot_unless_it_is_there_again() {
        let now = Instant::now();
        let mut news = News::new(now);
        news.changed(PARTIES, session(), &changed("other", None, true));
        assert!(news.is_empty());
        news.snapshot_sent(now + BETWEEN_SNAPSHOTS);
        assert_eq!((news.pop(), news.snapshot_due()), (Some(session()), None));
        news.changed(PARTIES, session(), &changed("other", None, true));
        news.changed(PARTIES, session(), &changed("other", None, false));
        news.snapshot_sent(now + BETWEEN_SNAPSHOTS);
        assert!(news.is_empty());
    }
}
