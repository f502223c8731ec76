//! How members become equal.

use super::fixture::{Cluster, DAY, SECOND, project};
use crate::{Key, Kind, Message};

fn line(count: usize) -> Cluster {
    let mut cluster = Cluster::new(count);
    for member in 1..count {
        cluster.connect(member - 1, member);
    }
    cluster
}

fn fill(cluster: &mut Cluster, member: usize, count: usize) {
    for number in 0..count {
        cluster.write(member, &project(&format!("{number:05}")), "{\"name\":\"x\"}").unwrap();
    }
}

#[test]
fn two_halves_become_one() {
    let mut cluster = Cluster::new(2);
    for member in [0, 1] {
        for number in 0..50 {
            cluster.write(member, &project(&format!("{member}-{number}")), "{}").unwrap();
        }
    }
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    cluster.assert_equal();
    assert_eq!(cluster.members[1].replica.entries().count(), 100);
    assert!(cluster.members[1].replica.is_level());
}

#[test]
fn a_write_crosses_a_line_by_hints_and_a_full_mesh_sends_none() {
    let mut cluster = line(5);
    cluster.pass(SECOND * 10);
    cluster.traffic();
    cluster.write(0, &project("p"), "1").unwrap();
    cluster.pass(SECOND / 5);
    assert_eq!(cluster.values(&project("p")), [Some("1"); 5]);
    for (one, other) in [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)] {
        cluster.connect(one, other);
    }
    cluster.pass(SECOND * 10);
    cluster.traffic();
    cluster.write(0, &project("p"), "2").unwrap();
    cluster.pass(SECOND * 5);
    assert!(
        !cluster
            .traffic()
            .iter()
            .any(|message| matches!(message, Message::Hint(_) | Message::Pull(_)))
    );
    cluster.assert_equal();
}

#[test]
fn the_cost_of_a_pull_follows_the_difference() {
    let mut cluster = Cluster::new(2);
    fill(&mut cluster, 0, 10_000);
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    cluster.assert_equal();
    cluster.disconnect(0);
    for number in [17, 5_000, 9_999] {
        cluster.write(0, &project(&format!("{number:05}")), "{}").unwrap();
    }
    cluster.traffic();
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    cluster.assert_equal();
    let traffic = cluster.traffic();
    let entries: usize = traffic
        .iter()
        .map(|message| match message {
            Message::Batch(batch) => batch.entries.len() + batch.keys.len(),
            _ => 0,
        })
        .sum();
    let bytes: usize = traffic.iter().map(|message| message.encode().len()).sum();
    assert!(entries == 3 && bytes < 2_000, "{entries} entries in {bytes} bytes");
}

#[test]
fn a_delete_is_heard_of_long_after_its_tombstone() {
    let mut cluster = line(3);
    fill(&mut cluster, 0, 20);
    cluster.pass(SECOND * 5);
    cluster.disconnect(2);
    cluster.delete(0, &project("00003")).unwrap();
    // Written by one that is away: for the deleted object, and for another.
    cluster.write(2, &project("00003"), "late").unwrap();
    cluster.write(2, &project("00004"), "late").unwrap();
    cluster.members[0].replica.collect_now();
    cluster.disconnect(0);
    cluster.pass(DAY * 100);
    cluster.members[1].replica.collect_now();
    assert_eq!(cluster.members[1].replica.figures().tombstones, 0);
    cluster.connect(0, 1);
    cluster.connect(1, 2);
    cluster.pass(SECOND * 10);
    cluster.assert_equal();
    assert_eq!(cluster.values(&project("00003")), [None; 3]);
    assert_eq!(cluster.values(&project("00004")), [Some("late"); 3]);
}

#[test]
fn a_tombstone_goes_when_every_member_has_noted_it() {
    let mut cluster = line(3);
    for member in 0..3 {
        let key = Key::new(Kind::MEMBER, format!("node-{member}"));
        cluster.write(member, &key, "{}").unwrap();
    }
    cluster.write(0, &project("p"), "{}").unwrap();
    cluster.pass(SECOND * 10);
    cluster.disconnect(2);
    cluster.delete(0, &project("p")).unwrap();
    cluster.disconnect(0);
    cluster.pass(DAY * 3);
    cluster.connect(0, 1);
    cluster.pass(SECOND * 300);
    assert!(cluster.members[0].replica.is_deleted(&project("p")), "one has not heard of it");
    cluster.connect(1, 2);
    cluster.pass(SECOND * 300);
    assert!(cluster.members[2].replica.is_deleted(&project("p")), "it is not a day old there");
    cluster.disconnect(2);
    cluster.pass(DAY);
    cluster.connect(1, 2);
    cluster.pass(SECOND * 300);
    for member in &cluster.members {
        assert_eq!(member.replica.figures().tombstones, 0);
    }
    cluster.assert_equal();
}
