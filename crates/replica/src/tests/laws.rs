//! Merging is a union of sets: in any order, as often as one likes, with deltas doubled, late or lost.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*, sample::Index};

use super::fixture::{Cluster, SECOND, node};
use crate::{
    Config, Dot, Entry, Incarnation, Input, Key, Kind, LinkId, Message, NodeId, Rank, Replica,
    Stamp, Stored, Version,
};

/// Writes of three members on three projects, as if they had seen nothing of each other: the first
/// of a key is its birth.
fn writes() -> impl Strategy<Value = Vec<(Key, Arc<Entry>)>> {
    let write = (0..3_u64, 0..3_u8, 0..5_u64, prop::bool::weighted(0.2));
    vec(write, 1..25).prop_map(|drafts| {
        let mut counters = [0; 3];
        let mut births: Vec<(Key, Dot)> = Vec::new();
        let entry = |(writer, key, wall_ms, dead): (u64, u8, u64, bool)| {
            let counter = &mut counters[usize::try_from(writer).unwrap()];
            *counter += 1;
            let dot = Dot::new(Incarnation(writer + 1), *counter);
            let key = Key::new(Kind::PROJECT, format!("p{key}"));
            let known = births.iter().find(|(other, _)| *other == key).map(|(_, birth)| *birth);
            let birth = known.unwrap_or(dot);
            births.push((key.clone(), birth));
            let stamp =
                Stamp { wall_ms: birth_ms(birth, dot) + wall_ms, counter: 0, node: node(0) };
            let entry = Entry {
                rank: Rank { moves: 0, life: 0, version: Version::Stamp(stamp) },
                dead: dead && known.is_some(),
                dot,
                birth,
                earlier: Vec::new(),
                adopted: false,
                owner: node(0),
                value: format!("{dot:?}").into(),
            };
            (key, Arc::new(entry))
        };
        drafts.into_iter().map(entry).collect()
    })
}

/// A birth is below all later versions.
fn birth_ms(birth: Dot, dot: Dot) -> u64 {
    if birth == dot { 0 } else { 10 }
}

fn replica() -> (Replica, LinkId) {
    let (now, wall) = (Instant::now(), Duration::from_secs(1_750_000_000));
    let config = Config::new(NodeId::from("reader"));
    let mut replica = Replica::new(config, 1, Incarnation(99), Stored::default(), now, wall);
    let (link, node, incarnation) = (LinkId(1), NodeId::from("writer"), Incarnation(1));
    replica.handle(now, wall, Input::LinkUp { link, node, incarnation }).unwrap();
    (replica, link)
}

fn taken(writes: &[(Key, Arc<Entry>)]) -> Replica {
    let (mut replica, link) = replica();
    let (now, wall) = (Instant::now(), Duration::from_secs(1_750_000_000));
    for (key, entry) in writes {
        let message = Message::Delta { key: key.clone(), entry: entry.clone() };
        replica.handle(now, wall, Input::Message { link, message }).unwrap();
    }
    replica
}

/// The live objects by the plain rule: of each key the greatest, nothing if that is a delete.
fn plain(writes: &[(Key, Arc<Entry>)]) -> Vec<(Key, Dot)> {
    let mut greatest: Vec<(Key, Arc<Entry>)> = Vec::new();
    for (key, entry) in writes {
        match greatest.iter_mut().find(|(other, _)| other == key) {
            Some((_, best)) if entry.beats(best) => *best = entry.clone(),
            Some(_) => {}
            None => greatest.push((key.clone(), entry.clone())),
        }
    }
    greatest.sort_by(|one, other| one.0.cmp(&other.0));
    let live = greatest.into_iter().filter(|(_, entry)| !entry.dead);
    live.map(|(key, entry)| (key, entry.dot)).collect()
}

fn shown(replica: &Replica) -> Vec<(Key, Dot)> {
    replica.entries().map(|(key, entry)| (key.clone(), entry.dot)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_order_and_any_repetition_give_the_same(
        writes in writes(),
        order in vec(any::<Index>(), 60),
        collected in any::<Index>(),
    ) {
        let expected = plain(&writes);
        prop_assert_eq!(&shown(&taken(&writes)), &expected);
        // Late, doubled, in another order, with tombstones dropped in between; then the rest.
        let mut mixed: Vec<_> = order.iter().map(|index| index.get(&writes).clone()).collect();
        let at = collected.index(mixed.len());
        let rest = mixed.split_off(at);
        let mut replica = taken(&mixed);
        replica.collect_now();
        let (now, wall) = (Instant::now(), Duration::from_secs(1_750_000_000));
        for (key, entry) in rest.iter().chain(&writes) {
            let message = Message::Delta { key: key.clone(), entry: entry.clone() };
            replica.handle(now, wall, Input::Message { link: LinkId(1), message }).unwrap();
        }
        prop_assert_eq!(shown(&replica), expected);
        prop_assert_eq!(replica.print(), taken(&writes).print());
    }

    #[test]
    fn of_two_versions_exactly_one_wins(writes in writes()) {
        for (_, one) in &writes {
            for (_, other) in &writes {
                let wins = [one.beats(other), other.beats(one)];
                prop_assert_eq!(wins.iter().filter(|wins| **wins).count(), usize::from(one.dot != other.dot));
            }
        }
    }

    #[test]
    fn halves_that_meet_in_any_order_become_equal(
        drafts in vec((0..3_usize, 0..4_u8, prop::bool::weighted(0.3)), 1..20),
        order in Just([(0, 1), (1, 2), (0, 2)]).prop_shuffle(),
    ) {
        let mut cluster = Cluster::new(3);
        for (member, id, dead) in drafts {
            let key = Key::new(Kind::PROJECT, format!("{member}-{id}"));
            let _ = if dead { cluster.delete(member, &key) } else { cluster.write(member, &key, "{}") };
        }
        let union: usize = cluster.members.iter().map(|member| member.replica.entries().count()).sum();
        for (one, other) in order {
            cluster.connect(one, other);
            cluster.pass(SECOND * 6);
        }
        cluster.assert_equal();
        prop_assert_eq!(cluster.members[1].replica.entries().count(), union);
    }
}
