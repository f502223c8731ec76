//! Which writes a member has taken in.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::{
    bound,
    config::MOST_INCARNATIONS,
    dot::{Dot, Incarnation},
};

/// The most holes of one incarnation that are accepted from a message or a disk.
const MOST_HOLES: usize = 65_537;

/// A range of counters, both ends included.
pub(crate) type Range = (u64, u64);

/// The noted writes of one incarnation: all up to `max`, except for the holes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSeen")]
pub struct Seen {
    max: u64,
    /// In ascending order, not touching each other, all below `max`.
    holes: Vec<Range>,
}

impl Seen {
    /// The highest noted counter.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The ranges of counters below the highest that are not noted.
    pub fn holes(&self) -> &[(u64, u64)] {
        &self.holes
    }

    /// Whether the write is noted.
    pub fn has(&self, counter: u64) -> bool {
        (1..=self.max).contains(&counter) && self.hole_at(counter).is_err()
    }

    /// The counters of `1..=to` that are not noted: the holes, and everything above `max`.
    pub(crate) fn gaps(&self, to: u64) -> Vec<Range> {
        let below = self.holes.iter().filter(|(from, _)| *from <= to);
        let mut gaps: Vec<_> = below.map(|(from, end)| (*from, (*end).min(to))).collect();
        if to > self.max {
            gaps.push((self.max + 1, to));
        }
        gaps
    }

    /// Whether `other` has noted a write up to `limit` that is not noted here.
    pub(crate) fn lacks(&self, other: &Self, limit: u64) -> bool {
        self.gaps(other.max.min(limit)).iter().any(|gap| !is_within(*gap, &other.holes))
    }

    /// How many holes there would be after the write is noted.
    pub(crate) fn holes_after(&self, counter: u64) -> usize {
        match self.hole_at(counter) {
            Ok(at) if self.holes[at].0 < counter && counter < self.holes[at].1 => {
                self.holes.len() + 1
            }
            _ => self.holes.len() + usize::from(counter > self.max + 1),
        }
    }

    /// Notes a write. Counters that it skips become a hole.
    pub(crate) fn note(&mut self, counter: u64) {
        if counter > self.max {
            if counter > self.max + 1 {
                self.holes.push((self.max + 1, counter - 1));
            }
            self.max = counter;
        } else if let Ok(at) = self.hole_at(counter) {
            let (from, to) = self.holes[at];
            let left = [(from, counter - 1), (counter + 1, to)];
            self.holes.splice(at..=at, left.into_iter().filter(|(from, to)| from <= to));
        }
    }

    /// Notes all that `other` has noted.
    pub(crate) fn join(&mut self, other: &Self) {
        let max = self.max.max(other.max);
        self.holes = common(&self.gaps(max), &other.gaps(max));
        self.max = max;
    }

    /// The index of the hole with this counter, or the index at which one would be inserted.
    fn hole_at(&self, counter: u64) -> Result<usize, usize> {
        let at = self.holes.partition_point(|(_, to)| *to < counter);
        match self.holes.get(at) {
            Some((from, _)) if *from <= counter => Ok(at),
            _ => Err(at),
        }
    }
}

/// Whether one of the ranges contains `gap`. The ranges do not touch, so several together cannot
/// contain it.
fn is_within(gap: Range, ranges: &[Range]) -> bool {
    let at = ranges.partition_point(|(_, to)| *to < gap.0);
    ranges.get(at).is_some_and(|(from, to)| *from <= gap.0 && gap.1 <= *to)
}

/// The counters in both lists of ranges.
fn common(one: &[Range], other: &[Range]) -> Vec<Range> {
    let (mut a, mut b, mut both) = (0, 0, Vec::new());
    while let (Some(left), Some(right)) = (one.get(a), other.get(b)) {
        let range = (left.0.max(right.0), left.1.min(right.1));
        if range.0 <= range.1 {
            both.push(range);
        }
        if left.1 < right.1 {
            a += 1;
        } else {
            b += 1;
        }
    }
    both
}

#[derive(Deserialize)]
struct UncheckedSeen {
    max: u64,
    #[serde(deserialize_with = "bound::list::<_, _, MOST_HOLES>")]
    holes: Vec<Range>,
}

impl TryFrom<UncheckedSeen> for Seen {
    type Error = &'static str;

    fn try_from(seen: UncheckedSeen) -> Result<Self, &'static str> {
        let mut last = 0_u64;
        for (from, to) in &seen.holes {
            // At least one noted counter lies between two holes, so they never touch.
            let apart = last == 0 && *from == 1 || *from > last.saturating_add(1);
            if !apart || from > to || *to >= seen.max {
                return Err("holes are out of order");
            }
            last = *to;
        }
        // Counters are increased by one in many places, so the highest must leave room for that.
        if seen.max == 0 || seen.max >= 1 << 53 {
            return Err("a counter is out of range");
        }
        Ok(Self { max: seen.max, holes: seen.holes })
    }
}

/// The noted writes of all incarnations.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub struct Context(BTreeMap<Incarnation, Seen>);

impl Context {
    /// Whether the write is noted.
    pub fn has(&self, dot: Dot) -> bool {
        self.0.get(&dot.incarnation).is_some_and(|seen| seen.has(dot.counter))
    }

    /// The noted writes of one incarnation, if there are any.
    pub fn seen(&self, incarnation: Incarnation) -> Option<&Seen> {
        self.0.get(&incarnation)
    }

    /// All incarnations with their noted writes.
    pub fn iter(&self) -> impl Iterator<Item = (Incarnation, &Seen)> {
        self.0.iter().map(|(incarnation, seen)| (*incarnation, seen))
    }

    /// How many incarnations it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes all that `other` has noted.
    pub(crate) fn join(&mut self, other: &Self) {
        for (incarnation, seen) in other.iter() {
            self.0.entry(incarnation).or_default().join(seen);
        }
    }

    /// The counters of `1..=to` of an incarnation that are not noted.
    pub(crate) fn gaps(&self, incarnation: Incarnation, to: u64) -> Vec<Range> {
        self.0.get(&incarnation).map_or_else(|| vec![(1, to)], |seen| seen.gaps(to))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.iter().map(|(i, seen)| (Dot::new(i, seen.max), seen.holes()));
        f.debug_list().entries(short).finish()
    }
}

impl FromIterator<(Incarnation, Seen)> for Context {
    fn from_iter<I: IntoIterator<Item = (Incarnation, Seen)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pairs = bound::list::<D, (Incarnation, Seen), MOST_INCARNATIONS>(from)?;
        let count = pairs.len();
        let context: Self = pairs.into_iter().collect();
        if context.len() < count {
            return Err(D::Error::custom("an incarnation is named twice"));
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn seen(counters: &BTreeSet<u64>) -> Seen {
        // Descending, so that holes are split as well as appended.
        let mut seen = Seen::default();
        counters.iter().rev().for_each(|counter| seen.note(*counter));
        seen
    }

    fn noted(seen: &Seen) -> BTreeSet<u64> {
        (0..40).filter(|counter| seen.has(*counter)).collect()
    }

    fn counters() -> impl Strategy<Value = BTreeSet<u64>> {
        proptest::collection::btree_set(1..40_u64, 1..30)
    }

    proptest! {
        #[test]
        fn it_is_a_set(one in counters(), other in counters(), limit in 0..45_u64) {
            let (mut a, b) = (seen(&one), seen(&other));
            prop_assert_eq!(&noted(&a), &one);
            let gaps: BTreeSet<u64> = a.gaps(limit).iter().flat_map(|(from, to)| *from..=*to).collect();
            prop_assert_eq!(gaps, (1..=limit).filter(|c| !one.contains(c)).collect());
            let missing = other.iter().any(|c| *c <= limit && !one.contains(c));
            prop_assert_eq!(a.lacks(&b, limit), missing);
            let mut ascending = Seen::default();
            for counter in &one {
                let expected = ascending.holes_after(*counter);
                ascending.note(*counter);
                prop_assert_eq!(ascending.holes.len(), expected);
            }
            prop_assert_eq!(&ascending, &a);
            a.join(&b);
            prop_assert_eq!(&a, &seen(&(&one | &other)));
            let bytes = postcard::to_stdvec(&a).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Seen>(&bytes).unwrap(), a);
        }
    }

    #[test]
    fn holes_out_of_order_are_not_read() {
        for (max, holes) in [
            (0, vec![]),
            (1 << 53, vec![]),
            (5, vec![(5, 5)]),
            (5, vec![(3, 2)]),
            (9, vec![(3, 4), (5, 6)]),
            (9, vec![(0, 4)]),
            (9, vec![(4, 5), (1, 2)]),
        ] {
            assert!(Seen::try_from(UncheckedSeen { max, holes }).is_err());
        }
    }
}
