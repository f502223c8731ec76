//! Results that nobody waited for.
//!
//! A leader that gives work away and ends its turn is not told by anybody when that is done. So the
//! results of workers that a leader's agent itself spawned, and of which no wait told it, are its next
//! prompt once it is idle. What it has not heard of is kept with its team; it has heard of what it was
//! told when the turn that it was told in is over. So nothing is lost when the daemon dies meanwhile: it
//! is told again.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use ::session::team::Finished;
use uuid::Uuid;

use super::delivery::called;

/// So often it is looked whether a leader is idle.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The most that is said of one result, in bytes.
const EXCERPT: usize = 16 << 10;

/// Numbers of results, by worker.
pub(super) type Results = BTreeMap<Uuid, u64>;

/// Results that leaders are being told, by leader.
#[derive(Default)]
pub(super) struct News {
    telling: BTreeMap<Uuid, Telling>,
    /// What they were told in the turn that goes on.
    told: BTreeMap<Uuid, Results>,
}

enum Telling {
    /// Its prompt is given, and has not begun.
    Given(Results),
    /// It had no room. It is asked again then.
    Rests(Instant),
}

impl News {
    /// Whether a leader may be given a prompt now.
    pub(super) fn may_tell(&self, leader: Uuid, now: Instant) -> bool {
        match self.telling.get(&leader) {
            None => true,
            Some(Telling::Given(_)) => false,
            Some(Telling::Rests(until)) => *until <= now,
        }
    }

    /// Whether a leader has a prompt in its hands.
    pub(super) fn is_given(&self, leader: Uuid) -> bool {
        matches!(self.telling.get(&leader), Some(Telling::Given(_)))
    }

    /// A leader is given a prompt with these results.
    pub(super) fn tells(&mut self, leader: Uuid, results: &[Finished]) {
        let results = results.iter().map(|one| (one.worker, one.number)).collect();
        self.telling.insert(leader, Telling::Given(results));
    }

    /// The turn with that prompt begins.
    pub(super) fn begins(&mut self, leader: Uuid) {
        if let Some(Telling::Given(results)) = self.telling.remove(&leader) {
            self.told.entry(leader).or_default().extend(results);
        }
    }

    /// It never will.
    pub(super) fn not_taken(&mut self, leader: Uuid, now: Instant) {
        self.telling.insert(leader, Telling::Rests(now + LOOK_AGAIN));
    }

    /// A leader is told of a result in its turn.
    pub(super) fn told(&mut self, leader: Uuid, worker: Uuid, number: u64) {
        self.told.entry(leader).or_default().insert(worker, number);
    }

    /// A turn of a leader is over: what it has heard of in it.
    pub(super) fn heard(&mut self, leader: Uuid) -> Results {
        self.told.remove(&leader).unwrap_or_default()
    }

    /// A session has ended.
    pub(super) fn gone(&mut self, session: Uuid) {
        self.telling.remove(&session);
        self.told.remove(&session);
    }
}

/// The prompt that a leader is told results by.
pub(super) fn prompt(results: &[Finished], name: impl Fn(Uuid) -> Option<String>) -> String {
    let mut prompt = String::new();
    for Finished { worker, success, result, .. } in results {
        let who = called(name(*worker).as_deref(), false, *worker);
        let how = if *success { "is done" } else { "has failed" };
        let text = excerpt(result);
        // Writing into a string does not fail.
        let _ = write!(prompt, "[team: {who}, {how}]\n\n{text}\n\n");
    }
    prompt.truncate(prompt.trim_end().len());
    prompt
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

    fn result(worker: Uuid, success: bool, text: &str) -> Finished {
        Finished { worker, number: 1, success, result: text.into() }
    }

    #[test]
    fn a_prompt_says_who_is_done_and_who_has_failed() {
        let results = [result(ANN, true, "fine"), result(BOB, false, "broken")];
        let prompt = prompt(&results, |who| (who == ANN).then(|| "ann".to_owned()));
        let ann = format!("[team: worker \"ann\", session {ANN}, is done]\n\nfine");
        assert_eq!(prompt, format!("{ann}\n\n[team: worker, session {BOB}, has failed]\n\nbroken"));
    }

    #[test]
    fn a_long_result_is_told_in_short() {
        let prompt = prompt(&[result(ANN, true, &"é".repeat(EXCERPT))], |_| None);
        assert!(prompt.len() < EXCERPT + 300 && prompt.ends_with("read all of it]"));
    }

    #[test]
    fn news_count_as_heard_after_the_turn_and_are_repeated_if_they_had_no_room() {
        let (mut news, now) = (News::default(), Instant::now());
        news.tells(LEADER, &[result(ANN, true, "fine")]);
        assert!(!news.may_tell(LEADER, now) && news.heard(LEADER).is_empty());
        news.not_taken(LEADER, now);
        assert!(!news.may_tell(LEADER, now) && news.may_tell(LEADER, now + LOOK_AGAIN));
        news.tells(LEADER, &[result(ANN, true, "fine")]);
        news.begins(LEADER);
        news.told(LEADER, BOB, 3);
        assert_eq!(news.heard(LEADER), [(ANN, 1), (BOB, 3)].into());
        assert!(news.heard(LEADER).is_empty() && news.may_tell(LEADER, now));
    }
}
