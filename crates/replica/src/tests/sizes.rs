//! How many bytes members send each other when nothing has changed.

use super::fixture::{Cluster, SECOND};
use crate::{Key, Kind, Message};

/// A full mesh of members that wrote their entries, for some time.
fn mesh(count: usize) -> Cluster {
    let mut cluster = Cluster::new(count);
    for one in 0..count {
        let key = Key::new(Kind::MEMBER, format!("node-{one}"));
        cluster.write(one, &key, "{}").unwrap();
        for other in 0..one {
            cluster.connect(one, other);
        }
    }
    cluster.pass(SECOND * 10);
    cluster.assert_equal();
    cluster.traffic();
    cluster
}

fn digest_bytes(cluster: &mut Cluster) -> (usize, usize) {
    cluster.pass(SECOND * 130);
    let digests = cluster.traffic().into_iter().map(|message| match &message {
        Message::Digest(digest) => (message.encode().len(), digest.claims.len()),
        _ => panic!("nothing changed: {message:?}"),
    });
    let (full, short): (Vec<_>, Vec<_>) = digests.partition(|(_, claims)| *claims > 0);
    let most = |list: &[(usize, usize)]| list.iter().map(|(bytes, _)| *bytes).max().unwrap();
    (most(&short), most(&full))
}

#[test]
fn digests_of_five_and_of_many_members() {
    let (short, full) = digest_bytes(&mut mesh(5));
    assert!(short <= 205 && full <= 300, "{short} and {full} bytes");
    let (short, full) = digest_bytes(&mut mesh(12));
    assert!(short <= 350 && full <= 600, "{short} and {full} bytes");
}

#[test]
fn a_reconnect_with_equal_state_is_two_digests() {
    let mut cluster = mesh(5);
    cluster.disconnect(4);
    cluster.traffic();
    cluster.connect(4, 0);
    let traffic = cluster.traffic();
    let bytes: usize = traffic.iter().map(|message| message.encode().len()).sum();
    assert!(traffic.len() == 2 && bytes < 700, "{} messages of {bytes} bytes", traffic.len());
}
