//! Old incarnations leave the contexts, and nothing is lost with them.

use super::fixture::{Cluster, DAY, SECOND, project};
use crate::{Key, Kind};

/// Three members, all linked, each of which started three times and wrote each time.
fn restarted() -> Cluster {
    let mut cluster = Cluster::new(3);
    for round in 0..3 {
        for member in 0..3 {
            let disk = cluster.members[member].disk.clone();
            cluster.restart(member, disk);
            let key = Key::new(Kind::MEMBER, format!("node-{member}"));
            cluster.write(member, &key, "{}").unwrap();
            cluster.write(member, &project(&format!("{member}-{round}")), "{}").unwrap();
        }
    }
    connect_all(&mut cluster);
    cluster.pass(SECOND * 10);
    cluster.assert_equal();
    cluster
}

fn connect_all(cluster: &mut Cluster) {
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        cluster.connect(one, other);
    }
}

fn apart(cluster: &mut Cluster, days: u32) {
    for member in 0..3 {
        cluster.disconnect(member);
    }
    cluster.pass(DAY * days);
    connect_all(cluster);
    cluster.pass(SECOND * 200);
}

#[test]
fn an_incarnation_is_retired_a_week_after_its_end() {
    let mut cluster = restarted();
    assert_eq!(cluster.members[0].replica.figures().incarnations, 9);
    apart(&mut cluster, 8);
    for member in &cluster.members {
        let figures = member.replica.figures();
        assert_eq!((figures.incarnations, figures.retired), (3, 6));
    }
    cluster.assert_equal();
    assert_eq!(cluster.members[2].replica.entries().count(), 12);
}

#[test]
fn it_waits_for_every_member_and_is_taken_back_by_another_write() {
    let mut cluster = restarted();
    let old = cluster.members[0].disk.clone();
    cluster.disconnect(0);
    cluster.disconnect(1);
    cluster.pass(DAY * 8);
    cluster.connect(1, 2);
    cluster.pass(SECOND * 200);
    assert_eq!(cluster.members[1].replica.figures().retired, 0, "one has not shown it since");
    apart(&mut cluster, 8);
    assert_eq!(cluster.members[1].replica.figures().retired, 6);
    // The first member's old disk never heard of it: nothing is missing in the end.
    cluster.restart(0, old);
    cluster.write(0, &project("late"), "{}").unwrap();
    connect_all(&mut cluster);
    cluster.pass(SECOND * 60);
    cluster.assert_equal();
    assert_eq!(cluster.values(&project("late")), [Some("{}"); 3]);
    assert_eq!(cluster.members[0].replica.entries().count(), 13);
}
