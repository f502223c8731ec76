//! Results that nobody waited for.
//!
//! A leader that gives work away and ends its turn is not told by anybody when that is done. So the
//! results of workers that a leader's agent itself spawned, and of which no wait told it, are its next
//! prompt once it is idle. It is a convenience: nothing of it is kept over a restart, and all results
//! are there for `team_wait` anyway.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use uuid::Uuid;

use super::delivery::called;

/// So often it is looked whether a leader is idle.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The most that is said of one result, in bytes.
const EXCERPT: usize = 16 << 10;

/// Results that nobody waited for.
#[derive(Default)]
pub(super) struct News {
    /// Workers, and the leaders whose agents spawned them.
    own: BTreeMap<Uuid, Uuid>,
    /// By leader and worker: the newest result.
    untold: BTreeMap<Uuid, BTreeMap<Uuid, Found>>,
}

struct Found {
    success: bool,
    text: Arc<str>,
}

impl News {
    /// A leader's agent has spawned a worker.
    pub(super) fn spawned(&mut self, leader: Uuid, worker: Uuid) {
        self.own.insert(worker, leader);
    }

    /// A worker has a result.
    pub(super) fn result(&mut self, worker: Uuid, success: bool, text: &Arc<str>) {
        if let Some(leader) = self.own.get(&worker) {
            let found = Found { success, text: Arc::clone(text) };
            self.untold.entry(*leader).or_default().insert(worker, found);
        }
    }

    /// Somebody has been told a worker's result.
    pub(super) fn told(&mut self, worker: Uuid) {
        self.untold.retain(|_, of| {
            of.remove(&worker);
            !of.is_empty()
        });
    }

    /// A session has ended.
    pub(super) fn gone(&mut self, session: Uuid) {
        self.own.remove(&session);
        self.own.retain(|_, leader| *leader != session);
        self.untold.remove(&session);
    }

    /// Leaders that are to be told something.
    pub(super) fn leaders(&self) -> BTreeSet<Uuid> {
        self.untold.keys().copied().collect()
    }

    /// When it is to be looked again whether they are idle.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        (!self.untold.is_empty()).then(|| now + LOOK_AGAIN)
    }

    /// The prompt that a leader is told all by.
    pub(super) fn take(&mut self, leader: Uuid, name: impl Fn(Uuid) -> Option<String>) -> String {
        let mut prompt = String::new();
        for (worker, found) in self.untold.remove(&leader).unwrap_or_default() {
            let who = called(name(worker).as_deref(), false, worker);
            let how = if found.success { "is done" } else { "has failed" };
            let text = excerpt(&found.text);
            // Writing into a string does not fail.
            let _ = write!(prompt, "[team: {who}, {how}]\n\n{text}\n\n");
        }
        prompt.truncate(prompt.trim_end().len());
        prompt
    }
}

fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(EXCERPT);
    let head = text.get(..end).unwrap_or_default();
    format!("{head}\n[cut: wait for this worker to read all of it]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: Uuid = Uuid::from_u128(1);
    const ANN: Uuid = Uuid::from_u128(2);
    const BOB: Uuid = Uuid::from_u128(3);

    fn nameless(_: Uuid) -> Option<String> {
        None
    }

    #[test]
    fn a_leader_hears_of_the_workers_that_it_spawned_and_of_no_others() {
        let mut news = News::default();
        news.spawned(LEADER, ANN);
        news.result(ANN, true, &"fine".into());
        news.result(BOB, true, &"of somebody else".into());
        assert_eq!(news.leaders(), [LEADER].into());
        let prompt = news.take(LEADER, |_| Some("ann".to_owned()));
        assert_eq!(prompt, format!("[team: worker \"ann\", session {ANN}, is done]\n\nfine"));
        assert!(news.leaders().is_empty() && news.deadline(Instant::now()).is_none());
    }

    #[test]
    fn what_a_wait_has_told_is_no_news() {
        let mut news = News::default();
        news.spawned(LEADER, ANN);
        news.spawned(LEADER, BOB);
        news.result(ANN, true, &"fine".into());
        news.result(BOB, false, &"broken".into());
        news.told(ANN);
        assert!(news.take(LEADER, nameless).ends_with("has failed]\n\nbroken"));
        news.result(ANN, true, &"fine".into());
        news.gone(ANN);
        news.gone(LEADER);
        news.result(BOB, true, &"fine".into());
        assert!(news.leaders().is_empty());
    }

    #[test]
    fn a_long_result_is_told_in_short() {
        let mut news = News::default();
        news.spawned(LEADER, ANN);
        news.result(ANN, true, &"é".repeat(EXCERPT).into());
        let prompt = news.take(LEADER, nameless);
        assert!(prompt.len() < EXCERPT + 300 && prompt.ends_with("read all of it]"));
    }
}
