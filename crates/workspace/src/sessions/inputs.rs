//! Which inputs were applied: each is, once.

use std::collections::VecDeque;

use session::input::Applied;

use crate::refusal::Refusal;

/// Inputs that were refused are remembered, so many, to be taken when they come again.
const REFUSED: usize = 64;

/// The inputs of one session that clients gave ids.
#[derive(Default)]
pub(super) struct Inputs {
    applied: Applied,
    /// Those that are among the applied, and were not.
    refused: VecDeque<String>,
}

impl Inputs {
    /// Whether this one is to be applied now.
    pub(super) fn first_time(&mut self, id: &str) -> Result<bool, Refusal> {
        if let Some(at) = self.refused.iter().position(|refused| refused == id) {
            self.refused.remove(at);
            return Ok(true);
        }
        self.applied.first_time(id).map_err(|error| Refusal::failed(&error))
    }

    /// It could not be applied after all.
    pub(super) fn take_back(&mut self, id: &str) {
        if self.refused.len() >= REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_may_come_again_and_is_then_applied_once() {
        let mut inputs = Inputs::default();
        assert!(inputs.first_time("a").unwrap());
        inputs.take_back("a");
        assert!(inputs.first_time("a").unwrap());
        assert!(!inputs.first_time("a").unwrap());
        assert!(inputs.first_time("").is_err());
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
