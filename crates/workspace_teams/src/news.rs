//! Results that no caller waited for.
//!
//! A leader that gives out work and ends its turn would never learn that the work is done. So the
//! results of workers to whom the leader's agent itself gave work become the leader's next prompt
//! when it is idle, unless a wait has returned them. Results that the leader has not heard of are
//! stored with its team. A result counts as heard when the turn in which the leader got it is over.
//! So nothing is lost when the daemon dies during that turn: the leader gets the result again.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use ::session::team::Finished;
use uuid::Uuid;

use crate::delivery::called;

/// The interval of checks whether a leader with unheard results is idle.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest excerpt of one result, in bytes.
const EXCERPT: usize = 16 << 10;

/// Numbers of results, by worker.
pub(crate) type Results = BTreeMap<Uuid, u64>;

/// The results that leaders get as prompts, by leader.
#[derive(Clone, Default)]
pub(crate) struct News {
    prompts: BTreeMap<Uuid, PromptState>,
    /// The results that each leader got in its present turn.
    in_turn: BTreeMap<Uuid, Results>,
}

/// How far a leader is with the prompt that has results for it.
#[derive(Clone)]
enum PromptState {
    /// The leader has a prompt with these results, and the prompt's turn has not begun.
    Given(Results),
    /// The leader had no room. It may be given a prompt again from this time on.
    Rests(Instant),
}

impl News {
    /// Whether a leader may be given a prompt now.
    pub(crate) fn may_tell(&self, leader: Uuid, now: Instant) -> bool {
        match self.prompts.get(&leader) {
            None => true,
            Some(PromptState::Given(_)) => false,
            Some(PromptState::Rests(until)) => *until <= now,
        }
    }

    /// Whether a leader has a prompt with results whose turn has not begun.
    pub(crate) fn is_given(&self, leader: Uuid) -> bool {
        matches!(self.prompts.get(&leader), Some(PromptState::Given(_)))
    }

    /// Notes that a leader is given a prompt with these results.
    pub(crate) fn tells(&mut self, leader: Uuid, results: &[Finished]) {
        let results = results.iter().map(|one| (one.worker, one.number)).collect();
        self.prompts.insert(leader, PromptState::Given(results));
    }

    /// Notes that the turn with the prompt begins.
    pub(crate) fn begins(&mut self, leader: Uuid) {
        if let Some(PromptState::Given(results)) = self.prompts.remove(&leader) {
            self.in_turn.entry(leader).or_default().extend(results);
        }
    }

    /// Notes that the leader had no room for the prompt.
    pub(crate) fn not_taken(&mut self, leader: Uuid, now: Instant) {
        self.prompts.insert(leader, PromptState::Rests(now + LOOK_AGAIN));
    }

    /// Notes that a leader got a result in its present turn, by a wait.
    pub(crate) fn note_result(&mut self, leader: Uuid, worker: Uuid, number: u64) {
        self.in_turn.entry(leader).or_default().insert(worker, number);
    }

    /// Notes that a turn of a leader is over. Returns the results that the leader got in that turn.
    pub(crate) fn heard(&mut self, leader: Uuid) -> Results {
        self.in_turn.remove(&leader).unwrap_or_default()
    }

    /// Notes that a session has ended.
    pub(crate) fn gone(&mut self, session: Uuid) {
        self.prompts.remove(&session);
        self.in_turn.remove(&session);
    }
}

/// The prompt that gives results to a leader.
pub(crate) fn prompt(results: &[Finished], name: impl Fn(Uuid) -> Option<String>) -> String {
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
    fn a_long_result_is_cut() {
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
        news.note_result(LEADER, BOB, 3);
        assert_eq!(news.heard(LEADER), [(ANN, 1), (BOB, 3)].into());
        assert!(news.heard(LEADER).is_empty() && news.may_tell(LEADER, now));
    }
}
