//! Through which members a member is reached; pure. Each member tells its linked members how far
//! away the others are. A way never gets longer than [`MOST_CARRIERS`] allows, so reports of a
//! member that is gone soon end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::link::hello::MAX_TEXT;

/// The most members that carry one link.
pub(crate) const MOST_CARRIERS: u8 = 4;
/// The most members in one report.
const MOST_MEMBERS: usize = 1024;

/// The members that a member reaches, and over how many links. The link between that member and the
/// reader is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach(pub(crate) BTreeMap<String, u8>);

impl Reach {
    /// Whether it keeps to its bounds.
    pub(crate) fn is_sound(&self) -> bool {
        let sound = |(node, links): (&String, &u8)| {
            node.len() <= MAX_TEXT && (1..=MOST_CARRIERS).contains(links)
        };
        self.0.len() <= MOST_MEMBERS && self.0.iter().all(sound)
    }
}

/// The ways from this member.
#[derive(Debug)]
pub(crate) struct Ways {
    own: String,
    /// The linked members, each with its last report.
    linked: BTreeMap<String, Reach>,
}

impl Ways {
    /// The ways from this member, which has no links yet.
    pub(crate) fn new(own: String) -> Self {
        Self { own, linked: BTreeMap::new() }
    }

    /// Adds a linked member. An earlier report of it stays until it sends another.
    pub(crate) fn linked(&mut self, node: &str) {
        self.linked.entry(node.to_owned()).or_default();
    }

    /// Removes a member to which no direct link leads any more.
    pub(crate) fn unlinked(&mut self, node: &str) {
        self.linked.remove(node);
    }

    /// Takes in the report of a linked member.
    pub(crate) fn told(&mut self, node: &str, reach: Reach) {
        if let Some(known) = self.linked.get_mut(node) {
            *known = reach;
        }
    }

    /// The linked members through which another one is reached, the shortest way first. `carriers`
    /// carry the link already, and none of them may carry it again.
    pub(crate) fn through(&self, to: &str, carriers: &[String]) -> Vec<String> {
        let left = usize::from(MOST_CARRIERS).saturating_sub(carriers.len());
        let others = self.linked.iter().filter(|(node, _)| !carriers.contains(node));
        let ways = others.filter_map(|(node, reach)| match *node == to {
            true => Some((0, node)),
            false => Some((reach.0.get(to).copied()?, node)),
        });
        let ways: BTreeSet<_> = ways.filter(|(links, _)| usize::from(*links) <= left).collect();
        ways.into_iter().map(|(_, node)| node.clone()).collect()
    }

    /// The report for a linked member: the members that this one reaches without it.
    pub(crate) fn reach(&self, node: &str) -> Reach {
        let mut reach = BTreeMap::new();
        let others = || self.linked.iter().filter(|(other, _)| *other != node);
        let further = others().flat_map(|(_, reach)| &reach.0).map(|(to, links)| (to, links + 1));
        for (to, links) in others().map(|(other, _)| (other, 1)).chain(further) {
            if *to != *node && *to != self.own && links <= MOST_CARRIERS {
                let known = reach.entry(to.clone()).or_insert(links);
                *known = links.min(*known);
            }
        }
        Reach(reach.into_iter().take(MOST_MEMBERS).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members in a line, each linked to the next, that have told each other all.
    struct Line(Vec<Ways>);

    impl Line {
        fn new(count: usize) -> Self {
            let mut all: Vec<_> = (0..count).map(|number| Ways::new(number.to_string())).collect();
            for number in 1..count {
                all[number].linked(&(number - 1).to_string());
                all[number - 1].linked(&number.to_string());
            }
            let mut line = Self(all);
            line.settle();
            line
        }

        /// Everybody tells until nothing changes; how often.
        fn settle(&mut self) -> usize {
            for round in 0.. {
                let mut has_changed = false;
                for from in 0..self.0.len() {
                    let linked: Vec<_> = self.0[from].linked.keys().cloned().collect();
                    for to in linked {
                        let reach = self.0[from].reach(&to);
                        let there = &mut self.0[to.parse::<usize>().unwrap()];
                        has_changed |= there.linked[&from.to_string()] != reach;
                        there.told(&from.to_string(), reach);
                    }
                }
                if !has_changed {
                    return round;
                }
            }
            unreachable!()
        }

        fn cut(&mut self, one: usize, other: usize) {
            self.0[one].unlinked(&other.to_string());
            self.0[other].unlinked(&one.to_string());
        }
    }

    #[test]
    fn four_members_may_carry_a_link_and_five_may_not() {
        let line = Line::new(7);
        assert_eq!(line.0[0].through("5", &[]), ["1"]);
        assert!(line.0[0].through("6", &[]).is_empty());
        let passed: Vec<_> = (1..4).map(|number| number.to_string()).collect();
        assert_eq!(line.0[4].through("5", &passed), ["5"], "the last one carries it, too");
    }

    #[test]
    fn the_shortest_way_is_the_first() {
        let mut ways = Ways::new("a".to_owned());
        ["b", "c"].iter().for_each(|node| ways.linked(node));
        ways.told("b", Reach([("z".to_owned(), 2)].into()));
        ways.told("c", Reach([("z".to_owned(), 1)].into()));
        assert_eq!(ways.through("z", &[]), ["c", "b"]);
        assert_eq!(ways.through("z", &["c".to_owned()]), ["b"], "no member carries it twice");
        ways.told("x", Reach([("z".to_owned(), 1)].into()));
        assert_eq!(ways.through("z", &[]), ["c", "b"], "only of linked members");
    }

    #[test]
    fn a_way_that_is_gone_is_soon_known_to_nobody() {
        let mut ring = Line::new(6);
        for (one, other) in [(0, 3), (1, 4)] {
            ring.0[one].linked(&other.to_string());
            ring.0[other].linked(&one.to_string());
        }
        ring.settle();
        ring.cut(4, 5);
        let rounds = ring.settle();
        assert!(rounds <= 2 * usize::from(MOST_CARRIERS), "{rounds}");
        assert!((0..5).all(|number| ring.0[number].through("5", &[]).is_empty()));
    }

    #[test]
    fn no_more_members_are_reported_than_are_read() {
        let mut ways = Ways::new("a".to_owned());
        (0..=MOST_MEMBERS).for_each(|number| ways.linked(&number.to_string()));
        let reach = ways.reach("b");
        assert_eq!(reach.0.len(), MOST_MEMBERS);
        assert!(reach.is_sound());
        assert!(!Reach((0..=MOST_MEMBERS).map(|it| (it.to_string(), 1)).collect()).is_sound());
    }
}
