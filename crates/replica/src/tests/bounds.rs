//! Every bound is reached, and nothing beyond it is noted.

use super::fixture::{Cluster, HOUR, SECOND, node, project};
use crate::{
    BadMessage, Batch, Change, Config, Digest, Dot, Entry, Incarnation, Input, Key, Kind,
    LargestDots, Last, LinkId, Message, NodeId, Notice, Rank, Refused, Stamp, Version,
    context::{Context, Seen},
    message::Retired,
};

fn small(change: impl Fn(&mut Config)) -> impl Fn(NodeId) -> Config {
    move |node| {
        let is_small = node.as_str() == "node-1";
        let mut config = Config::new(node);
        if is_small {
            change(&mut config);
        }
        config
    }
}

fn has_notice(cluster: &Cluster, member: usize, bound: &str) -> bool {
    let notices = &cluster.members[member].notices;
    notices.iter().any(|notice| matches!(notice, Notice::Full { bound: b } if *b == bound))
}

#[test]
fn the_most_objects_of_a_cluster() {
    let mut cluster = Cluster::new(1);
    let most = cluster.members[0].replica.config.limits.objects;
    assert_eq!(most, 65_536);
    for number in 0..most {
        cluster.write(0, &project(&number.to_string()), "{}").unwrap();
    }
    assert_eq!(cluster.write(0, &project("one more"), "{}"), Err(Refused::Full));
    assert!(has_notice(&cluster, 0, "objects"));
    // A change and a delete are possible, and make room.
    cluster.write(0, &project("7"), "[]").unwrap();
    cluster.delete(0, &project("7")).unwrap();
    cluster.write(0, &project("one more"), "{}").unwrap();
}

#[test]
fn what_does_not_fit_is_not_noted_and_comes_when_there_is_room() {
    let mut cluster = Cluster::with(2, small(|config| config.limits.objects = 5));
    for number in 0..8 {
        cluster.write(0, &project(&number.to_string()), "{}").unwrap();
    }
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    let replica = &cluster.members[1].replica;
    assert_eq!(replica.figures().objects, 5);
    assert_ne!(replica.context(), cluster.members[0].replica.context());
    assert!(has_notice(&cluster, 1, "objects"));
    cluster.traffic();
    cluster.pass(SECOND * 50);
    let pulls = cluster.traffic().into_iter().filter(|message| matches!(message, Message::Pull(_)));
    assert_eq!(pulls.count(), 0, "it is tried again after a minute only");
    for number in 0..3 {
        cluster.delete(0, &project(&number.to_string())).unwrap();
    }
    cluster.pass(SECOND * 150);
    cluster.assert_equal();
}

#[test]
fn the_size_of_an_object_and_of_all() {
    let mut cluster = Cluster::with(2, small(|config| config.limits.total_bytes = 600 * 1024));
    let limit = 192 * 1024;
    let large = "x".repeat(limit);
    let too_large = Err(Refused::TooLarge { limit });
    assert_eq!(cluster.write(0, &project("p"), &format!("{large}x")), too_large);
    assert_eq!(
        cluster.write(0, &project(&"x".repeat(257)), ""),
        Err(Refused::TooLarge { limit: 256 })
    );
    for number in 0..4 {
        cluster.write(0, &project(&number.to_string()), &large).unwrap();
    }
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    assert_eq!(cluster.members[1].replica.figures().objects, 3);
    assert!(has_notice(&cluster, 1, "bytes"));
    assert!(cluster.traffic().iter().all(|message| message.encode().len() < 512 * 1024));
}

#[test]
fn an_object_above_a_members_own_bound_is_named() {
    let mut cluster = Cluster::with(2, small(|config| config.limits.value_bytes = 100));
    cluster.connect(0, 1);
    cluster.write(0, &project("p"), &"x".repeat(101)).unwrap();
    assert_eq!(cluster.value(1, &project("p")), None);
    assert_eq!(cluster.members[1].notices, [Notice::TooLarge { key: project("p") }]);
}

#[test]
fn the_most_held_versions() {
    let mut cluster = Cluster::new(2);
    cluster.members[0].ahead = HOUR;
    for number in 0..1_025 {
        cluster.write(0, &project(&number.to_string()), "{}").unwrap();
    }
    cluster.connect(0, 1);
    cluster.pass(SECOND * 5);
    assert_eq!(cluster.members[1].replica.figures().held, 1_024);
    assert!(has_notice(&cluster, 1, "held versions"));
    cluster.pass(HOUR + SECOND * 100);
    assert_eq!(cluster.members[1].replica.entries().count(), 1_025);
}

#[test]
fn the_most_tombstones() {
    let mut cluster = Cluster::new(1);
    for number in 0..16_390 {
        let key = project(&number.to_string());
        cluster.write(0, &key, "{}").unwrap();
        cluster.delete(0, &key).unwrap();
    }
    assert_eq!(cluster.members[0].replica.figures().tombstones, 16_384);
    assert!(!cluster.members[0].replica.is_deleted(&project("0")), "the oldest goes first");
    assert!(cluster.members[0].replica.is_deleted(&project("6")));
}

fn delta(dot: Dot) -> Message {
    let stamp = Stamp { wall_ms: 5, counter: 0, node: node(0) };
    let entry = Entry {
        rank: Rank { moves: 0, life: 0, version: Version::Stamp(stamp) },
        dead: false,
        dot,
        birth: dot,
        earlier: Vec::new(),
        adopted: false,
        owner: node(0),
        value: "{}".into(),
    };
    let key = Key::new(Kind(77), format!("{dot:?}"));
    Message::Delta { key, entry: entry.into() }
}

fn link(cluster: &mut Cluster, incarnation: Incarnation) -> LinkId {
    let link = LinkId(1_000);
    let up = Input::LinkUp { link, node: NodeId::from("other"), incarnation };
    cluster.input(0, up).unwrap();
    link
}

#[test]
fn the_most_holes_and_the_most_incarnations() {
    let mut cluster = Cluster::new(1);
    let writer = Incarnation(9);
    let link = link(&mut cluster, writer);
    for counter in 1..=300 {
        let message = delta(Dot::new(writer, counter * 2));
        cluster.input(0, Input::Message { link, message }).unwrap();
    }
    let context = cluster.members[0].replica.context();
    let seen = context.seen(writer).unwrap();
    assert_eq!((seen.holes().len(), seen.max()), (256, 512), "the rest is left for a pull");
    for number in 0..600 {
        let message = delta(Dot::new(Incarnation(100 + number), 1));
        cluster.input(0, Input::Message { link, message }).unwrap();
    }
    assert_eq!(cluster.members[0].replica.figures().incarnations, 512);
    assert!(has_notice(&cluster, 0, "incarnations"));
    cluster.write(0, &project("own"), "{}").unwrap();
}

#[test]
fn deltas_that_wait_for_the_disk() {
    let mut cluster = Cluster::new(1);
    link(&mut cluster, Incarnation(9));
    let wall = cluster.wall();
    let replica = &mut cluster.members[0].replica;
    for number in 0..100 {
        let (key, value) = (project(&number.to_string()), "x".repeat(190 * 1024).into());
        let write = Input::Write { key, owner: node(0), value, change: Change::Update };
        replica.handle(cluster.now, wall, write).unwrap();
    }
    let waiting = replica.figures().waiting_bytes;
    assert!((7 * 1024 * 1024..=8 * 1024 * 1024).contains(&waiting), "{waiting}");
    replica.handle(cluster.now, wall, Input::Kept { token: 100 }).unwrap();
    assert_eq!(replica.figures().waiting_bytes, 0);
}

#[test]
fn lengths_and_numbers_of_messages_are_checked() {
    let mut long = Message::Hint(LargestDots(Vec::new())).encode();
    // A list that announces more than it may have.
    *long.last_mut().unwrap() = 0xff;
    long.extend([0xff, 0xff, 0x7f]);
    assert_eq!(Message::decode(&long), Err(BadMessage));
    assert_eq!(Message::decode(&vec![0; 2 * 1024 * 1024]), Err(BadMessage));
    assert_eq!(Message::decode(&[99]), Err(BadMessage), "an unknown kind");
    for counter in [0, 1 << 53] {
        let message = delta(Dot::new(Incarnation(1), counter));
        assert_eq!(Message::decode(&message.encode()), Err(BadMessage));
    }
    let good = delta(Dot::new(Incarnation(1), 1));
    let mut bytes = good.encode();
    assert_eq!(Message::decode(&bytes), Ok(good));
    bytes.push(0);
    assert_eq!(Message::decode(&bytes), Err(BadMessage));
    let seen: Result<Seen, _> = postcard::from_bytes(&[0, 0]);
    assert!(seen.is_err());
}

fn seen(max: u64) -> Seen {
    let mut seen = Seen::default();
    (1..=max).for_each(|counter| seen.note(counter));
    seen
}

fn retired(number: u64, floor: u64) -> Retired {
    Retired { incarnation: Incarnation(number), seen: seen(3), floor }
}

fn end_of_a_pull(floors: Vec<Dot>, retired: Vec<Retired>) -> Message {
    let (context, floors) = (Context::default(), LargestDots(floors));
    let last = Last { context, floors, retired, unlike: Vec::new(), listed: None };
    let (entries, keys) = (Vec::new(), Vec::new());
    Message::Batch(Box::new(Batch { id: 1, number: 0, entries, keys, last: Some(last) }))
}

/// The member gets such a message at the end of a pull from incarnation 9.
fn pulled(cluster: &mut Cluster, link: LinkId, end: Message) {
    let digest = Digest {
        incarnation: Incarnation(9),
        wall_us: 0,
        context: [(Incarnation(9), seen(4))].into_iter().collect(),
        retired: 0,
        print: 0,
        count: 0,
        links: Vec::new(),
        claims: Vec::new(),
    };
    let digest = Message::Digest(Box::new(digest));
    cluster.input(0, Input::Message { link, message: digest }).unwrap();
    cluster.pass(SECOND * 2);
    assert_eq!(cluster.members[0].replica.figures().pulls, 1);
    cluster.input(0, Input::Message { link, message: end }).unwrap();
    assert_eq!(cluster.members[0].replica.figures().pulls, 0);
}

#[test]
fn a_floor_of_an_incarnation_without_writes_is_refused_and_never_stored() {
    let message = end_of_a_pull(vec![Dot::new(Incarnation(77), 5)], Vec::new());
    assert_eq!(Message::decode(&message.encode()), Err(BadMessage));
    let mut cluster = Cluster::new(1);
    let link = link(&mut cluster, Incarnation(9));
    pulled(&mut cluster, link, message);
    assert_eq!(cluster.members[0].replica.figures().incarnations, 0);
    assert!(cluster.members[0].disk.records.is_empty());
}

#[test]
fn a_floor_that_comes_with_a_retired_incarnation_is_stored() {
    let mut cluster = Cluster::new(1);
    let writer = Incarnation(9);
    let link = link(&mut cluster, writer);
    for counter in 1..=3 {
        let message = delta(Dot::new(writer, counter));
        cluster.input(0, Input::Message { link, message }).unwrap();
    }
    pulled(&mut cluster, link, end_of_a_pull(Vec::new(), vec![retired(9, 2)]));
    let record = &cluster.members[0].disk.records[&writer];
    assert_eq!((record.floor, record.retired), (2, false), "it is in use");
}

/// How many incarnations are retired once these come at the end of a pull. Incarnation 70 is known
/// here, and one may be retired.
fn retired_of(list: Vec<Retired>) -> (usize, Cluster) {
    let mut cluster = Cluster::with(1, |node| {
        let mut config = Config::new(node);
        config.limits.retired = 1;
        config
    });
    let link = link(&mut cluster, Incarnation(9));
    for counter in 1..=3 {
        let message = delta(Dot::new(Incarnation(70), counter));
        cluster.input(0, Input::Message { link, message }).unwrap();
    }
    pulled(&mut cluster, link, end_of_a_pull(Vec::new(), list));
    (cluster.members[0].replica.figures().retired, cluster)
}

#[test]
fn the_most_retired_incarnations() {
    let (count, cluster) = retired_of(vec![retired(71, 0), retired(72, 0)]);
    assert_eq!(count, 0, "nothing is taken in");
    assert!(has_notice(&cluster, 0, "retired incarnations"));
    let (count, cluster) = retired_of(vec![retired(70, 0), retired(71, 0)]);
    let figures = cluster.members[0].replica.figures();
    assert_eq!((count, figures.incarnations), (1, 1), "the known one stays as it is");
}
