//! Remembers the answers to a peer's requests, so that a repeated request is not carried out twice.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

/// The most requests that are remembered, and for how long.
const MOST: usize = 4096;
const KEPT: Duration = Duration::from_secs(10 * 60);
/// The most bytes of answers that are remembered. An answer longer than [`LONG`] is not remembered:
/// it answers a query, which may be served again.
const MOST_BYTES: usize = 4 * 1024 * 1024;
const LONG: usize = 64 * 1024;

/// The answers to one peer's requests.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    known: BTreeMap<String, Option<String>>,
    /// The ids, the oldest first.
    order: VecDeque<(Instant, String)>,
    bytes: usize,
}

/// The state of a request when it arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is new, and from now on waits for its answer.
    #[default]
    New,
    /// It already waits for its answer.
    Waiting,
    /// This is its answer.
    Answered(String),
}

impl Answers {
    pub(crate) fn begin(&mut self, now: Instant, id: &str) -> Begun {
        self.tidy(now);
        match self.known.get(id) {
            Some(Some(answer)) => return Begun::Answered(answer.clone()),
            Some(None) => return Begun::Waiting,
            None => {}
        }
        self.known.insert(id.to_owned(), None);
        self.order.push_back((now, id.to_owned()));
        Begun::New
    }

    /// Keeps the answer to a request.
    pub(crate) fn keep(&mut self, id: &str, answer: &str) {
        if answer.len() > LONG {
            return self.forget(id);
        }
        if let Some(kept @ None) = self.known.get_mut(id) {
            *kept = Some(answer.to_owned());
            self.bytes += answer.len();
        }
    }

    /// Forgets a request, as if it had never come.
    pub(crate) fn forget(&mut self, id: &str) {
        let forgotten = self.known.remove(id).flatten();
        self.bytes -= forgotten.map_or(0, |answer| answer.len());
        self.order.retain(|(_, known)| known != id);
    }

    fn tidy(&mut self, now: Instant) {
        while let Some((at, _)) = self.order.front()
            && (self.order.len() >= MOST
                || self.bytes > MOST_BYTES
                || now.duration_since(*at) >= KEPT)
        {
            let Some((_, id)) = self.order.pop_front() else { return };
            let forgotten = self.known.remove(&id).flatten();
            self.bytes -= forgotten.map_or(0, |answer| answer.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_served_once_and_answered_as_often_as_it_comes() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        assert_eq!(answers.begin(now, "a"), Begun::New);
        assert_eq!(answers.begin(now, "a"), Begun::Waiting);
        answers.keep("a", "done");
        answers.keep("a", "another answer");
        for _ in 0..3 {
            assert_eq!(answers.begin(now, "a"), Begun::Answered("done".to_owned()));
        }
        assert_eq!(answers.begin(now + KEPT, "a"), Begun::New, "ten minutes later it is forgotten");
    }

    #[test]
    fn a_request_that_was_not_begun_or_had_a_long_answer_may_come_again() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        answers.begin(now, "a");
        answers.forget("a");
        assert_eq!(answers.begin(now, "a"), Begun::New);
        answers.keep("a", &"x".repeat(LONG + 1));
        assert_eq!(answers.begin(now, "a"), Begun::New);
        assert_eq!(answers.bytes, 0);
    }

    #[test]
    fn requests_and_bytes_are_bounded() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        for id in 0..2 * MOST {
            answers.begin(now, &id.to_string());
        }
        assert_eq!((answers.known.len(), answers.order.len()), (MOST, MOST));
        for id in MOST..2 * MOST {
            answers.keep(&id.to_string(), &"x".repeat(LONG));
            answers.begin(now, &format!("then {id}"));
        }
        assert!(answers.bytes <= MOST_BYTES + LONG && answers.order.len() <= MOST);
    }
}
