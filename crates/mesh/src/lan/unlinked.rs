//! Peers that were met and could not be linked to, and why, for people.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use protocol::admin::mesh::MeshUnlinked;
use tokio::time::Instant;

/// The most peers that are remembered. The one that was met longest ago makes room for a new one.
const MAX_UNLINKED: usize = 64;

/// How long a peer is listed after it was last met: long enough for two tries to link to a wanted
/// peer.
const RECENT: Duration = Duration::from_secs(120);

/// By the peer's name or address: why there is no link, and when it was last met.
#[derive(Debug, Default)]
pub(crate) struct UnlinkedPeers(Mutex<BTreeMap<String, (String, Instant)>>);

impl UnlinkedPeers {
    /// Notes that a peer was met, and why there is no link to it.
    pub(super) fn failed(&self, whom: &str, why: &str) {
        let mut unlinked = self.lock();
        if unlinked.len() >= MAX_UNLINKED && !unlinked.contains_key(whom) {
            let oldest =
                unlinked.iter().min_by_key(|(_, (_, at))| *at).map(|(whom, _)| whom.clone());
            oldest.and_then(|oldest| unlinked.remove(&oldest));
        }
        unlinked.insert(whom.to_owned(), (why.to_owned(), Instant::now()));
    }

    /// Notes that there is a link to the peer now.
    pub(super) fn linked(&self, whom: &str) {
        self.lock().remove(whom);
    }

    /// The peers that were met lately, by their names or addresses.
    pub(crate) fn list(&self) -> Vec<MeshUnlinked> {
        let mut unlinked = self.lock();
        unlinked.retain(|_, (_, at)| at.elapsed() < RECENT);
        let listed = |(whom, (why, at)): (&String, &(String, Instant))| MeshUnlinked {
            place: whom.clone(),
            why: why.clone(),
            met_secs: at.elapsed().as_secs(),
        };
        // At most MAX_UNLINKED.
        unlinked.iter().map(listed).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn listed(unlinked: &UnlinkedPeers) -> Vec<(String, String, u64)> {
        let all = unlinked.list().into_iter();
        all.map(|one| (one.place, one.why, one.met_secs)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_reason_is_listed_until_there_is_a_link_or_it_is_old() {
        let unlinked = UnlinkedPeers::default();
        unlinked.failed("a", "nobody answered");
        advance(Duration::from_secs(7)).await;
        unlinked.failed("a", "another passcode");
        unlinked.failed("b", "another passcode");
        advance(Duration::from_secs(3)).await;
        unlinked.linked("b");
        assert_eq!(listed(&unlinked), [("a".to_owned(), "another passcode".to_owned(), 3)]);
        advance(RECENT).await;
        assert_eq!(listed(&unlinked), []);
    }

    #[tokio::test(start_paused = true)]
    async fn remembered_peers_are_bounded_and_the_oldest_makes_room() {
        let unlinked = UnlinkedPeers::default();
        for number in 0..=MAX_UNLINKED {
            unlinked.failed(&format!("{number:03}"), "x");
            advance(Duration::from_millis(1)).await;
        }
        let listed = listed(&unlinked);
        assert_eq!((listed.len(), listed[0].0.as_str()), (MAX_UNLINKED, "001"));
    }
}
