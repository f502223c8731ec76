//! The inputs that were applied, so that each is applied only once.

use std::collections::VecDeque;

use session::terminal::input::Applied;

use crate::refusal::Refusal;

/// The most refused inputs that are remembered, so that they are accepted when they are repeated.
const REFUSED: usize = 64;
/// The most prompts whose turns are remembered, to answer a repeated prompt.
const TURNS: usize = 256;

/// The inputs of one session that have ids.
#[derive(Default)]
pub(super) struct Inputs {
    applied: Applied,
    /// Ids that are in `applied` although their inputs were refused, the oldest first.
    refused: VecDeque<String>,
    /// Prompts of an agent with their turns, the oldest first.
    turns: VecDeque<(String, u64)>,
}

impl Inputs {
    /// Whether the input with this id is to be applied now. An id that is empty or too long is an
    /// error.
    pub(super) fn first_time(&mut self, id: &str) -> Result<bool, Refusal> {
        if let Some(at) = self.refused.iter().position(|refused| refused == id) {
            self.refused.remove(at);
            return Ok(true);
        }
        self.applied.first_time(id).map_err(|error| Refusal::failed(&error))
    }

    /// Notes that the input could not be applied after all, so that it may be repeated.
    pub(super) fn take_back(&mut self, id: &str) {
        if self.refused.len() >= REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(id.to_owned());
    }

    pub(super) fn is_turn(&mut self, id: &str, turn: u64) {
        if self.turns.len() >= TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back((id.to_owned(), turn));
    }

    /// The turn of a prompt, if it is still remembered.
    pub(super) fn turn_of(&self, id: &str) -> Option<u64> {
        self.turns.iter().find(|(known, _)| known == id).map(|(_, turn)| *turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_input_may_be_repeated_and_is_applied_once() {
        let mut inputs = Inputs::default();
        assert!(inputs.first_time("a").unwrap());
        inputs.take_back("a");
        assert!(inputs.first_time("a").unwrap());
        assert!(!inputs.first_time("a").unwrap());
        assert!(inputs.first_time("").is_err());
    }

    #[test]
    fn the_turns_of_the_newest_prompts_are_known() {
        let mut inputs = Inputs::default();
        (0..=TURNS as u64).for_each(|turn| inputs.is_turn(&turn.to_string(), turn));
        assert_eq!(inputs.turns.len(), TURNS);
        assert_eq!((inputs.turn_of("0"), inputs.turn_of("1")), (None, Some(1)));
    }

    #[test]
    fn no_more_refused_ones_are_remembered_than_the_bound() {
        let mut inputs = Inputs::default();
        for number in 0..=REFUSED {
            assert!(inputs.first_time(&number.to_string()).unwrap());
            inputs.take_back(&number.to_string());
        }
        assert_eq!(inputs.refused.len(), REFUSED);
        assert!(!inputs.first_time("0").unwrap());
        assert!(inputs.first_time("1").unwrap());
    }
}
