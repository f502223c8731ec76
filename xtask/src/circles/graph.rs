//! Circles in a graph of files.

use std::collections::{BTreeMap, BTreeSet};

pub(super) type Uses = BTreeMap<String, BTreeSet<String>>;

/// The sets of two or more files that reach each other, each sorted by name.
pub(super) fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reach: BTreeMap<_, _> = uses.keys().map(|file| (file, reached(file, uses))).collect();
    let mut circles = BTreeSet::new();
    for file in uses.keys() {
        let circle: Vec<_> =
            reach[file].iter().filter(|other| reach[*other].contains(file)).cloned().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached(from: &str, uses: &Uses) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for used in &uses[file] {
            if seen.insert(used.clone()) {
                open.push(used);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_reach_each_other_are_one_circle() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
        let mut uses = Uses::new();
        for (from, to) in edges {
            uses.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
        assert_eq!(circles(&uses), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
