//! The inputs of clients: each is applied only once, and a question is answered only once.
//!
//! - [`ClientInputs`]: the inputs that were applied; [`questions`]: an agent's open questions

pub(crate) mod questions;

use std::collections::VecDeque;

use session::terminal::input::Applied;

use self::questions::Questions;
use crate::refusal::Refusal;

/// The most refused inputs whose ids are remembered. A repeated input is applied only while its id is remembered.
const REFUSED: usize = 64;
/// The most prompts whose turns are remembered, to answer a repeated prompt.
const TURNS: usize = 256;

/// The inputs of one session that have ids, and the questions that clients may answer.
#[derive(Default)]
pub(crate) struct ClientInputs {
    applied: Applied,
    /// Ids that are in `applied` although their inputs were refused, the oldest first.
    refused: VecDeque<String>,
    /// Prompts of an agent with their turns, the oldest first.
    turns: VecDeque<(String, u64)>,
    pub(crate) questions: Questions,
}

impl ClientInputs {
    /// Claims the input with this id for the caller. Returns whether the caller is the first, and
    /// has to apply the input. An id that is empty or too long is an error.
    pub(crate) fn claim(&mut self, id: &str) -> Result<bool, Refusal> {
        if let Some(at) = self.refused.iter().position(|refused| refused == id) {
            self.refused.remove(at);
            return Ok(true);
        }
        self.applied.first_time(id).map_err(|error| Refusal::failed(&error))
    }

    /// Gives up a claim: the input could not be applied, so it may be repeated.
    pub(crate) fn release(&mut self, id: &str) {
        if self.refused.len() >= REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(id.to_owned());
    }

    /// The ids of the inputs that were applied, the oldest first.
    pub(crate) fn applied(&self) -> Vec<String> {
        let is_refused = |id: &str| self.refused.iter().any(|refused| refused == id);
        self.applied.ids().filter(|id| !is_refused(id)).map(str::to_owned).collect()
    }

    /// Notes that these inputs were applied on another machine, or before a restart.
    pub(crate) fn were_applied<'a>(&mut self, ids: impl IntoIterator<Item = &'a String>) {
        for id in ids {
            // An id that this refuses was refused before, too, so its input was never applied.
            let _bad = self.applied.first_time(id);
        }
    }

    /// Notes which turn a prompt became.
    pub(crate) fn note_turn(&mut self, id: &str, turn: u64) {
        if self.turns.len() >= TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back((id.to_owned(), turn));
    }

    /// The turn of a prompt, if it is still remembered.
    pub(crate) fn turn_of(&self, id: &str) -> Option<u64> {
        self.turns.iter().find(|(known, _)| known == id).map(|(_, turn)| *turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_input_may_be_repeated_and_is_applied_once() {
        let mut inputs = ClientInputs::default();
        assert!(inputs.claim("a").unwrap());
        inputs.release("a");
        assert!(inputs.claim("a").unwrap());
        assert!(!inputs.claim("a").unwrap());
        assert!(inputs.claim("").is_err());
    }

    #[test]
    fn the_turns_of_the_newest_prompts_are_known() {
        let mut inputs = ClientInputs::default();
        (0..=TURNS as u64).for_each(|turn| inputs.note_turn(&turn.to_string(), turn));
        assert_eq!(inputs.turns.len(), TURNS);
        assert_eq!((inputs.turn_of("0"), inputs.turn_of("1")), (None, Some(1)));
    }

    #[test]
    fn no_more_refused_ones_are_remembered_than_the_bound() {
        let mut inputs = ClientInputs::default();
        for number in 0..=REFUSED {
            assert!(inputs.claim(&number.to_string()).unwrap());
            inputs.release(&number.to_string());
        }
        assert_eq!(inputs.refused.len(), REFUSED);
        assert!(!inputs.claim("0").unwrap());
        assert!(inputs.claim("1").unwrap());
    }
}
