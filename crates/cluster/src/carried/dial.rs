//! Opens links through other members. Of two members without a direct link, the one with the lower
//! id opens a carried one. A direct link is dialled all the while.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use base::NodeId;
use bytes::Bytes;
use replica::Kind;
use tokio::time::{Instant, sleep};

use super::{Through, end::CarriedEnd};
use crate::{
    link::{
        accept::{answer, refuse},
        carrier::Carrier,
        dial::{DialFailure, mismatches_after, over},
        dials::{Dials, STOOD, backoff},
        handshake::HandshakeError,
    },
    member::Member,
    shared::Shared,
};

/// How often the members are looked through: the shortest and the longest time between two looks.
const LOOK: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// The most members that are linked through others.
const MOST: usize = 256;

/// Links to members through others, as long as it is not dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut dials = Dials::default();
    let mut apart = Apart::default();
    let (after, look) = (shared.settings.carry_after, look(&shared));
    loop {
        let nodes = apart.look(Instant::now(), after, unlinked(&shared));
        dials.follow(nodes, MOST, |node| keep(Arc::clone(&shared), node));
        sleep(look).await;
    }
}

/// Accepts links that members open to this one through others.
pub(crate) fn answer_others(shared: &Arc<Shared>) {
    let to = Arc::downgrade(shared);
    shared.carrying.set_answer(Box::new(move |from, end| {
        let Some(shared) = to.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = answer_one(&shared, &from, end).await {
                let error = base::error::chain(&error);
                tracing::warn!(from, error, "a carried link of a member was refused");
            }
        });
    }));
}

/// Takes in what came over the mesh. A machine that is no member is ignored.
pub(crate) fn received_over_mesh(shared: &Shared, from: NodeId, bytes: Bytes) {
    let node = || {
        let member = shared.members().find(|member| member.key == Some(from));
        member.filter(|_| !shared.barred.has(&from)).map(|member| member.node_id)
    };
    shared.carrying.received_over_mesh(from, node, bytes);
}

async fn answer_one(
    shared: &Arc<Shared>,
    from: &str,
    end: CarriedEnd,
) -> Result<(), HandshakeError> {
    let carrier = Carrier::Carried(end);
    if shared.is_closed.load(Ordering::Relaxed) {
        return Err(refuse(carrier, "this machine is stopping").await);
    }
    match key_of(shared, from) {
        // A machine that does not have this key fails in the handshake.
        Some(key) => answer(shared, carrier, key).await,
        None => Err(refuse(carrier, "this member is not known here").await),
    }
}

fn look(shared: &Shared) -> Duration {
    (shared.settings.carry_after / 4).clamp(LOOK[0], LOOK[1])
}

fn key_of(shared: &Shared, node: &str) -> Option<NodeId> {
    Member::read(&shared.directory.get(Kind::MEMBER, node)?.value)?.key
}

/// The members with a greater id to which no direct link leads, or only one that is silent.
fn unlinked(shared: &Shared) -> BTreeSet<String> {
    let is_linked = |node: &str| {
        let link = shared.links.get(node);
        link.is_some_and(|link| link.through().is_none() && link.is_alive())
    };
    let later = shared.members().filter(|member| member.node_id > shared.this.node_id);
    later.map(|member| member.node_id).filter(|node| !is_linked(node)).collect()
}

/// Since when members have been without a direct link.
#[derive(Default)]
struct Apart(BTreeMap<String, Instant>);

impl Apart {
    /// The members that have been without a direct link for `after`. `unlinked` are those without
    /// one now.
    fn look(
        &mut self,
        now: Instant,
        after: Duration,
        unlinked: BTreeSet<String>,
    ) -> BTreeSet<String> {
        self.0.retain(|node, _| unlinked.contains(node));
        unlinked.into_iter().for_each(|node| _ = self.0.entry(node).or_insert(now));
        let is_due = |since: &Instant| now.duration_since(*since) >= after;
        self.0.iter().filter(|(_, since)| is_due(since)).map(|(node, _)| node.clone()).collect()
    }
}

/// Keeps a link to a member through others.
async fn keep(shared: Arc<Shared>, node: String) {
    let mut backoff = backoff();
    let mut last_words = String::new();
    let mut mismatches = 0;
    loop {
        if shared.links.get(&node).is_some_and(|link| link.is_alive()) {
            sleep(look(&shared)).await;
            continue;
        }
        let ways = ways(&shared, &node);
        // A way may appear at any time, and looking for it costs next to nothing.
        if ways.is_empty() {
            sleep(look(&shared)).await;
            continue;
        }
        for through in ways {
            let began = Instant::now();
            let linked = once(&shared, &through, &node, mismatches).await;
            mismatches = mismatches_after(&linked, mismatches);
            let Err(error) = linked else {
                if began.elapsed() > STOOD {
                    backoff.reset();
                }
                break;
            };
            let words = base::error::chain(&error);
            if words != last_words {
                tracing::warn!(node, %through, error = words, "no carried link to a member");
                last_words = words;
            }
        }
        sleep(backoff.next(rand::random())).await;
    }
}

/// The ways to a member: through other members, the shortest first, and at last the mesh.
fn ways(shared: &Shared, node: &str) -> Vec<Through> {
    let members = shared.carrying.ways_to(node).into_iter().map(Through::Member);
    let mesh = key_of(shared, node).filter(|key| shared.carrying.has_mesh_to(*key));
    members.chain(mesh.map(|_| Through::Mesh)).collect()
}

/// Links once, and runs the link until it ends.
async fn once(
    shared: &Arc<Shared>,
    through: &Through,
    node: &str,
    mismatches: usize,
) -> Result<(), DialFailure> {
    if shared.is_closed.load(Ordering::Relaxed) {
        return Err(DialFailure::Closed);
    }
    let key = key_of(shared, node).ok_or(DialFailure::NoMember)?;
    let end = match through {
        Through::Member(member) => shared.carrying.open(member, node),
        Through::Mesh => shared.carrying.open_over_mesh(key, node),
    };
    let carrier = Carrier::Carried(end.ok_or(DialFailure::NoCarrier)?);
    over(shared, carrier, key, node, &mut None, mismatches).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_member_is_linked_through_others_once_it_was_apart_for_long_enough() {
        let (mut apart, began) = (Apart::default(), Instant::now());
        let after = Duration::from_secs(10);
        let mut look = |seconds, unlinked: &[&str]| {
            let unlinked = unlinked.iter().map(ToString::to_string).collect();
            let due = apart.look(began + Duration::from_secs(seconds), after, unlinked);
            due.into_iter().collect::<Vec<_>>().concat()
        };
        assert_eq!(look(0, &["b", "c"]), "");
        assert_eq!(look(9, &["b", "c"]), "");
        assert_eq!(look(10, &["b", "c"]), "bc");
        assert_eq!(look(11, &["b"]), "b", "the other is linked");
        assert_eq!(look(12, &["b", "c"]), "b", "and was, a moment ago");
        assert_eq!(look(22, &["b", "c"]), "bc");
    }
}
