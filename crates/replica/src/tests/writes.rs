//! Writes, deletes, sessions and their owners, plain peers.

use super::fixture::{Cluster, DAY, HOUR, SECOND, node, project, session};
use crate::{Change, Input, Key, Kind, Notice, Refused, Stamp, Version};

#[test]
fn a_write_reaches_everybody_and_costs_one_transaction() {
    let mut cluster = Cluster::new(3);
    cluster.connect(0, 1);
    cluster.connect(0, 2);
    let before = cluster.members[0].keeps;
    cluster.write(0, &project("p"), "{}").unwrap();
    assert_eq!(cluster.members[0].keeps, before + 1);
    assert_eq!(cluster.values(&project("p")), [Some("{}"); 3]);
    cluster.write(1, &project("p"), "[]").unwrap();
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&project("p")), [Some("[]"); 3]);
    cluster.assert_equal();
}

#[test]
fn without_links_nothing_is_due() {
    let mut cluster = Cluster::new(1);
    for number in 0..10 {
        cluster.write(0, &project(&number.to_string()), "{}").unwrap();
    }
    let member = &cluster.members[0];
    assert_eq!((member.replica.poll_timeout(), member.keeps), (None, 10));
    cluster.delete(0, &project("3")).unwrap();
    let (at, _) = cluster.members[0].replica.poll_timeout().unwrap();
    assert_eq!(at, cluster.now + DAY);
    cluster.pass(DAY * 2);
    let member = &cluster.members[0];
    assert_eq!((member.replica.poll_timeout(), member.replica.figures().tombstones), (None, 0));
}

#[test]
fn messages_wait_for_the_disk() {
    let mut cluster = Cluster::new(2);
    cluster.connect(0, 1);
    let wall = cluster.wall();
    let key = project("p");
    let write = Input::Write { key, owner: node(0), value: "1".into(), change: Change::Update };
    let replica = &mut cluster.members[0].replica;
    replica.handle(cluster.now, wall, write).unwrap();
    let outputs: Vec<_> = std::iter::from_fn(|| replica.poll_output()).collect();
    let is_sent = |output: &crate::Output| matches!(output, crate::Output::Send { .. });
    let token = outputs.iter().find_map(|output| match output {
        crate::Output::Keep { token, .. } => Some(*token),
        _ => None,
    });
    assert!(!outputs.iter().any(is_sent), "{outputs:?}");
    replica.handle(cluster.now, wall, Input::Kept { token: token.unwrap() }).unwrap();
    assert!(replica.poll_output().is_some_and(|output| is_sent(&output)));
}

#[test]
fn a_delete_is_final() {
    let mut cluster = Cluster::new(2);
    let key = project("p");
    cluster.write(0, &key, "1").unwrap();
    cluster.connect(0, 1);
    cluster.disconnect(0);
    cluster.delete(0, &key).unwrap();
    // Later than the delete, and without knowing of it.
    cluster.pass(SECOND);
    cluster.write(1, &key, "2").unwrap();
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&key), [None, None]);
    assert_eq!(cluster.write(1, &key, "3"), Err(Refused::Deleted));
    assert_eq!(cluster.delete(1, &key), Err(Refused::Unknown));
    assert_eq!(cluster.delete(1, &project("other")), Err(Refused::Unknown));
}

#[test]
fn a_member_begins_again_when_it_is_invited_again() {
    let mut cluster = Cluster::new(2);
    cluster.connect(0, 1);
    let key = Key::new(Kind::MEMBER, "node-1");
    cluster.write(1, &key, "1").unwrap();
    cluster.delete(0, &key).unwrap();
    assert_eq!(cluster.write(1, &key, "2"), Err(Refused::Deleted));
    cluster.write_as(0, &key, "3", Change::Begin).unwrap();
    assert_eq!(cluster.values(&key), [Some("3"), Some("3")]);
    assert!(cluster.entry(1, &key).rank.life > 0);
}

#[test]
fn a_session_is_its_owners() {
    let mut cluster = Cluster::new(2);
    cluster.connect(0, 1);
    let key = session("s");
    cluster.write(0, &key, "1").unwrap();
    assert_eq!(cluster.write(1, &key, "2"), Err(Refused::Foreign(node(0))));
    let first = cluster.entry(1, &key);
    assert_eq!(first.rank.life, first.generation());
    assert_eq!(u128::from(first.generation()), cluster.wall().as_micros());
    // Somebody takes the owner for lost; it lives.
    cluster.delete(1, &key).unwrap();
    assert_eq!(cluster.values(&key), [Some("1"), Some("1")]);
    let second = cluster.entry(1, &key);
    assert_eq!((second.rank.life, second.birth), (second.generation(), second.dot));
    assert!(second.rank.life > first.rank.life);
    assert_eq!(second.earlier, [first.birth]);
    cluster.delete(0, &key).unwrap();
    assert_eq!(cluster.values(&key), [None, None]);
}

#[test]
fn a_restored_disk_is_the_truth_for_its_own_sessions() {
    let mut cluster = Cluster::new(2);
    cluster.connect(0, 1);
    cluster.write(0, &session("killed"), "1").unwrap();
    let old = cluster.members[0].disk.clone();
    cluster.write(0, &session("new"), "1").unwrap();
    cluster.delete(0, &session("killed")).unwrap();
    cluster.restart(0, old);
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&session("killed")), [Some("1"), Some("1")]);
    assert_eq!(cluster.values(&session("new")), [None, None]);
    let notice = Notice::Forgotten { key: session("new") };
    assert_eq!(cluster.members[0].notices, [notice]);
}

#[test]
fn a_session_moves() {
    let mut cluster = Cluster::new(3);
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        cluster.connect(one, other);
    }
    let key = session("s");
    let to = |owner, change| Input::Write { key: key.clone(), owner, value: "1".into(), change };
    cluster.write(0, &key, "1").unwrap();
    let old = cluster.members[0].disk.clone();
    assert_eq!(cluster.input(0, to(node(1), Change::Update)), Err(Refused::Foreign(node(1))));
    cluster.input(1, Input::Expect { key: key.clone() }).unwrap();
    cluster.input(0, to(node(1), Change::Move)).unwrap();
    cluster.settle();
    cluster.write(1, &key, "2").unwrap();
    assert_eq!(cluster.values(&key), [Some("2"); 3]);
    assert_eq!(
        (cluster.entry(2, &key).owner.clone(), cluster.entry(2, &key).rank.moves),
        (node(1), 1)
    );
    // The first owner's old disk does not take it back.
    cluster.restart(0, old);
    cluster.connect(0, 2);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&key), [Some("2"); 3]);
}

#[test]
fn machines_with_one_id_do_not_write_against_each_other_without_end() {
    let mut cluster = Cluster::new(2);
    cluster.connect(0, 1);
    cluster.write(0, &session("s"), "1").unwrap();
    cluster.input(0, Input::Doubled).unwrap();
    cluster.delete(1, &session("s")).unwrap();
    assert_eq!(cluster.value(0, &session("s")), None);
    cluster.pass(SECOND * 11);
    assert_eq!(cluster.values(&session("s")), [Some("1"), Some("1")]);
}

fn adopt(key: &Key, version: Version, value: &str) -> Input {
    Input::Adopt { key: key.clone(), owner: "plain".into(), version, value: value.into() }
}

fn stamped(cluster: &Cluster, ahead: u64) -> Version {
    let wall_ms = u64::try_from(cluster.wall().as_millis()).unwrap() + ahead;
    Version::Stamp(Stamp { wall_ms, counter: 0, node: "plain".into() })
}

#[test]
fn a_plain_peers_objects_are_adopted_once_each() {
    let mut cluster = Cluster::new(2);
    let key = project("p");
    let version = stamped(&cluster, 0);
    for member in [0, 1] {
        cluster.input(member, adopt(&key, version.clone(), "1")).unwrap();
    }
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    cluster.assert_equal();
    assert_eq!(cluster.values(&key), [Some("1"), Some("1")]);
    let keeps = cluster.members[0].keeps;
    cluster.input(0, adopt(&key, version, "1")).unwrap();
    assert_eq!(cluster.members[0].keeps, keeps, "what is known is not written again");
    assert_eq!(
        cluster.input(0, adopt(&project("q"), stamped(&cluster, 70_000), "1")),
        Err(Refused::Time)
    );
    cluster.delete(1, &key).unwrap();
    assert_eq!(cluster.input(0, adopt(&key, stamped(&cluster, 9), "2")), Err(Refused::Deleted));
    cluster.disconnect(0);
    cluster.pass(DAY * 80);
    assert!(cluster.members[0].replica.is_deleted(&key), "its tombstone stays 90 days");
    cluster.pass(DAY * 11);
    assert!(!cluster.members[0].replica.is_deleted(&key));
}

#[test]
fn a_plain_peers_higher_generation_wins_over_a_delete() {
    let mut cluster = Cluster::new(2);
    let key = session("s");
    cluster.input(0, adopt(&key, Version::Generation(5), "5")).unwrap();
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    cluster.disconnect(0);
    cluster.delete(0, &key).unwrap();
    // The other one has not heard of the delete.
    cluster.input(1, adopt(&key, Version::Generation(6), "6")).unwrap();
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&key), [Some("6"), Some("6")]);
    cluster.delete(0, &key).unwrap();
    assert_eq!(cluster.input(0, adopt(&key, Version::Generation(6), "6")), Err(Refused::Deleted));
    cluster.write(1, &session("own"), "1").unwrap();
    assert_eq!(
        cluster.input(1, adopt(&session("own"), Version::Generation(1), "6")),
        Err(Refused::Foreign(node(1)))
    );
}

#[test]
fn a_member_whose_clock_is_ahead_is_known_at_once() {
    let mut cluster = Cluster::new(2);
    let key = Key::new(Kind::MEMBER, "0");
    cluster.members[0].ahead = HOUR;
    cluster.write(0, &key, "1").unwrap();
    cluster.connect(0, 1);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&key), [Some("1"); 2]);
}

#[test]
fn a_version_that_is_ahead_waits_for_its_time() {
    let mut cluster = Cluster::new(3);
    let key = project("p");
    cluster.write(0, &key, "1").unwrap();
    cluster.connect(0, 1);
    cluster.disconnect(0);
    cluster.members[0].ahead = HOUR;
    cluster.write(0, &key, "2").unwrap();
    cluster.connect(0, 1);
    cluster.connect(1, 2);
    cluster.pass(SECOND);
    assert_eq!(cluster.values(&key), [Some("2"), Some("1"), Some("1")]);
    assert!(cluster.members[2].replica.held(&key).is_some());
    assert!(
        matches!(&cluster.members[1].notices[0], Notice::Held { node: n, .. } if *n == node(0))
    );
    // Held versions count: nobody takes the object for deleted.
    cluster.assert_equal();
    // By the majority's clock the writer itself no longer writes an hour ahead.
    cluster.connect(0, 2);
    cluster.pass(SECOND * 6);
    cluster.write(0, &project("q"), "1").unwrap();
    assert_eq!(cluster.values(&project("q")), [Some("1"); 3]);
    assert!(cluster.members[0].notices.iter().any(|n| matches!(n, Notice::Clock { .. })));
    cluster.pass(HOUR);
    assert_eq!(cluster.values(&key), [Some("2"); 3]);
    assert_eq!(cluster.members[1].replica.figures().held, 0);
}
