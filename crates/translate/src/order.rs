//! The order of calls and their results: the results follow directly after their calls. Chat
//! Completions and Messages refuse any other order, but Responses and lenient servers allow it.
//!
//! | In the conversation | Becomes |
//! | --- | --- |
//! | something between a call and its result | follows the results |
//! | a result whose call is not there, or has a result | the user's words |
//! | a call without a result, unless it is the last of all | gets [`NO_RESULT`] |

use std::collections::HashMap;

/// The result that is made up for a call without one. The agent was interrupted, or a part of the
/// conversation is gone.
pub(crate) const NO_RESULT: &str = "No result was recorded.";

/// A message, with what its order depends on.
pub(crate) trait OrderedMessage: Sized {
    /// The ids of its calls.
    fn calls(&self) -> Vec<&str>;

    /// The id of the call whose result it is.
    fn answers(&self) -> Option<&str>;

    /// The same text as the user's words.
    fn into_words(self) -> Self;

    /// The result [`NO_RESULT`] for one of its calls.
    fn without_result(&self, call: usize) -> Self;
}

/// A message, and the results of its calls.
struct Round<T> {
    message: T,
    results: Vec<Option<T>>,
}

/// The messages in the order that providers demand.
pub(crate) fn in_order<T: OrderedMessage>(messages: Vec<T>) -> Vec<T> {
    let mut rounds: Vec<Round<T>> = Vec::with_capacity(messages.len());
    // Some backends count ids from the start in each answer, so of several calls with one id, the
    // latest counts.
    let mut latest: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for message in messages {
        let place = message.answers().map(|id| free(latest.get(id), &rounds));
        match place {
            Some(Some((round, call))) => rounds[round].results[call] = Some(message),
            Some(None) => rounds.push(Round { message: message.into_words(), results: Vec::new() }),
            None => rounds.push(opened(message, rounds.len(), &mut latest)),
        }
    }
    let last = rounds.len().saturating_sub(1);
    let each = rounds.into_iter().enumerate();
    each.flat_map(|(at, round)| round.into_messages(at == last)).collect()
}

/// The first of these calls that has no result.
fn free<T>(calls: Option<&Vec<(usize, usize)>>, rounds: &[Round<T>]) -> Option<(usize, usize)> {
    calls?.iter().copied().find(|&(round, call)| rounds[round].results[call].is_none())
}

fn opened<T: OrderedMessage>(
    message: T,
    round: usize,
    latest: &mut HashMap<String, Vec<(usize, usize)>>,
) -> Round<T> {
    let calls = message.calls();
    for (call, id) in calls.iter().enumerate() {
        let places = latest.entry((*id).to_owned()).or_default();
        places.retain(|&(earlier, _)| earlier == round);
        places.push((round, call));
    }
    let results = calls.iter().map(|_| None).collect();
    Round { message, results }
}

impl<T: OrderedMessage> Round<T> {
    /// The messages of a round. If the conversation ends with calls of which none has a result,
    /// they stay without: the provider may refuse them.
    fn into_messages(self, is_last: bool) -> Vec<T> {
        let Self { message, results } = self;
        let open = is_last && results.iter().all(Option::is_none);
        let mut results: Vec<T> = if open {
            Vec::new()
        } else {
            let each = results.into_iter().enumerate();
            each.map(|(call, result)| result.unwrap_or_else(|| message.without_result(call)))
                .collect()
        };
        results.insert(0, message);
        results
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Said {
        Calls(Vec<&'static str>),
        Result(&'static str),
        Words,
    }

    impl OrderedMessage for Said {
        fn calls(&self) -> Vec<&str> {
            match self {
                Self::Calls(ids) => ids.clone(),
                _ => Vec::new(),
            }
        }

        fn answers(&self) -> Option<&str> {
            match self {
                Self::Result(id) => Some(id),
                _ => None,
            }
        }

        fn into_words(self) -> Self {
            Self::Words
        }

        fn without_result(&self, call: usize) -> Self {
            match self {
                Self::Calls(ids) => Self::Result(ids[call]),
                _ => Self::Words,
            }
        }
    }

    #[test]
    fn what_stood_between_follows() {
        use Said::{Calls, Result, Words};
        let given = vec![Calls(vec!["a", "b"]), Words, Result("b"), Words, Result("a")];
        let expected = [Calls(vec!["a", "b"]), Result("a"), Result("b"), Words, Words];
        assert_eq!(in_order(given), expected);
        let two_rounds = vec![Calls(vec!["a"]), Calls(vec!["b"]), Result("a"), Result("b")];
        let expected = [Calls(vec!["a"]), Result("a"), Calls(vec!["b"]), Result("b")];
        assert_eq!(in_order(two_rounds), expected);
    }

    #[test]
    fn ids_may_come_again() {
        use Said::{Calls, Result};
        let given =
            vec![Calls(vec!["a"]), Result("a"), Calls(vec!["a", "a"]), Result("a"), Result("a")];
        assert_eq!(in_order(given.clone()), given);
    }

    #[test]
    fn results_and_calls_alone_are_completed() {
        use Said::{Calls, Result, Words};
        assert_eq!(in_order(vec![Result("a")]), [Words]);
        let interrupted = in_order(vec![Calls(vec!["a"]), Words]);
        assert_eq!(interrupted, [Calls(vec!["a"]), Result("a"), Words]);
        assert_eq!(in_order(vec![Words, Calls(vec!["a"])]), [Words, Calls(vec!["a"])]);
        let half = in_order(vec![Calls(vec!["a", "b"]), Result("a")]);
        assert_eq!(half, [Calls(vec!["a", "b"]), Result("a"), Result("b")]);
    }

    proptest! {
        #[test]
        fn results_follow_their_calls_and_nothing_is_lost(
            given in vec(prop_oneof![
                vec(proptest::sample::select(vec!["a", "b", "c"]), 1..4).prop_map(Said::Calls),
                proptest::sample::select(vec!["a", "b", "c"]).prop_map(Said::Result),
                Just(Said::Words),
            ], 0..16)
        ) {
            let ordered = in_order(given.clone());
            let mut rest = ordered.as_slice();
            while let [first, after @ ..] = rest {
                rest = after;
                let Said::Calls(ids) = first else {
                    prop_assert_eq!(first, &Said::Words);
                    continue;
                };
                if rest.is_empty() {
                    break;
                }
                for id in ids {
                    prop_assert_eq!(rest.first(), Some(&Said::Result(id)));
                    rest = &rest[1..];
                }
            }
            prop_assert!(ordered.len() >= given.len());
            prop_assert_eq!(in_order(ordered.clone()), ordered);
        }
    }
}
