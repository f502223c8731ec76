//! Narrows providers down to those that can begin soonest, by what they have in memory.

use std::time::Duration;

use crate::route::Candidate;

/// How soon a provider could begin with a job's model. Sooner is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// It has the model in memory, or does not say otherwise.
    AtOnce,
    /// It is loading the model, and needs about this much longer.
    Loading(Duration),
    /// It would have to load the model first, which takes about this long.
    Unloaded(Duration),
}

/// Keeps the candidates that can begin soonest. O(candidates).
pub(crate) fn keep_soonest(candidates: &mut Vec<Candidate>) {
    if let Some(soonest) = candidates.iter().map(|candidate| candidate.start).min()
        && candidates.len() > 1
    {
        candidates.retain(|candidate| candidate.start == soonest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{SECOND, candidate};

    fn left_of(starts: &[Start]) -> Vec<Start> {
        let numbered = starts.iter().zip(1..);
        let mut all: Vec<_> = numbered
            .map(|(start, number)| Candidate { start: *start, ..candidate(number) })
            .collect();
        keep_soonest(&mut all);
        all.iter().map(|candidate| candidate.start).collect()
    }

    #[test]
    fn loaded_comes_before_loading_and_that_before_what_loads_fastest() {
        use Start::{AtOnce, Loading, Unloaded};
        let (long, short) = (SECOND * 60, SECOND);
        let all = [Unloaded(short), Loading(long), AtOnce, Unloaded(long), AtOnce];
        assert_eq!(left_of(&all), [AtOnce, AtOnce]);
        assert_eq!(left_of(&all[..2]), [Loading(long)], "however long that takes");
        assert_eq!(left_of(&[Loading(long), Loading(short)]), [Loading(short)]);
        assert_eq!(left_of(&[Unloaded(long), Unloaded(short)]), [Unloaded(short)]);
        assert_eq!(left_of(&[]), []);
    }
}
