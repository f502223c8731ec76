//! The choice between two links of the same two nodes, so that both ends keep the same one.
//!
//! The link that the node with the lower id opened stays; of two that the same end opened, the
//! newer one. A link that is silent, or whose other end has restarted since, does not count: it is
//! dead, though this end does not know that yet.

use base::NodeId;

use crate::{
    facts::device_id,
    link::{Link, Order},
    peer::PeerId,
};

/// Why the other link was closed.
pub(crate) const LOST: &str = "another link between the same two nodes took its place";

/// Whether `new` stays and `old` is closed. Both lead from `own` to the same peer.
pub(crate) fn newer_stays(own: &NodeId, old: &Link, new: &Link) -> bool {
    let claim = |link: &Link| Claim { opened_here: link.opened_here, order: link.order };
    !old.is_usable() || newer_wins(is_lower(own, &new.peer), claim(old), claim(new))
}

/// Whether this node's id is the lower one. If the peer has no node id, the UUIDs are compared.
pub(crate) fn is_lower(own: &NodeId, peer: &PeerId) -> bool {
    match peer {
        PeerId::Node(node) => own < node,
        PeerId::Device(uuid) => *device_id(own).as_str() < *uuid.to_ascii_lowercase(),
    }
}

/// A link's claim to stay.
#[derive(Debug, Clone, Copy)]
struct Claim {
    opened_here: bool,
    order: Order,
}

fn newer_wins(own_is_lower: bool, old: Claim, new: Claim) -> bool {
    let restarted = matches!(
        (old.order.instance, new.order.instance),
        (Some(old), Some(new)) if old != new
    );
    if restarted {
        return true;
    }
    if old.opened_here != new.opened_here {
        return new.opened_here == own_is_lower;
    }
    new.order.dial >= old.order.dial
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOW: NodeId = NodeId::new([1; 32]);
    const HIGH: NodeId = NodeId::new([2; 32]);

    fn claim(opened_here: bool, dial: u64) -> Claim {
        Claim { opened_here, order: Order { instance: Some(7), dial } }
    }

    /// A connection: whether the lower id opened it, and its number among those of that end.
    type Connection = (bool, u64);

    /// The connection that stays at an end that sees them in this order.
    fn stays(is_low: bool, seen: &[Connection]) -> Connection {
        let here = |(by_low, dial): Connection| claim(by_low == is_low, dial);
        let keep = |old: Connection, new: &Connection| {
            if newer_wins(is_low, here(old), here(*new)) { *new } else { old }
        };
        seen[1..].iter().fold(seen[0], keep)
    }

    proptest! {
        #[test]
        fn both_ends_keep_the_same_link_in_whatever_order_they_see_them(
            by_low in prop::collection::btree_set((any::<bool>(), 0..9u64), 1..6),
            mix in any::<prop::sample::Index>(),
        ) {
            let mut seen: Vec<_> = by_low.into_iter().collect();
            let at_low = stays(true, &seen);
            let first = mix.index(seen.len());
            seen.rotate_left(first);
            seen.reverse();
            prop_assert_eq!(stays(false, &seen), at_low);
            prop_assert_eq!(stays(true, &seen), at_low);
        }
    }

    #[test]
    fn the_link_that_the_lower_id_opened_stays_whichever_came_first() {
        assert!(newer_wins(true, claim(false, 1), claim(true, 1)));
        assert!(!newer_wins(true, claim(true, 1), claim(false, 9)));
        assert!(newer_wins(false, claim(true, 1), claim(false, 1)));
        assert!(!newer_wins(false, claim(false, 1), claim(true, 9)));
    }

    #[test]
    fn a_link_to_a_program_that_was_started_anew_replaces_the_old_ones() {
        let old = Claim { opened_here: true, order: Order { instance: Some(1), dial: 5 } };
        let new = Claim { opened_here: false, order: Order { instance: Some(2), dial: 1 } };
        assert!(newer_wins(true, old, new));
        let stock = Claim { opened_here: false, order: Order::default() };
        assert!(!newer_wins(true, Claim { order: Order::default(), ..old }, stock));
    }

    #[test]
    fn ids_are_compared_as_nodes_or_as_the_uuids_that_stock_peers_know() {
        assert!(is_lower(&LOW, &PeerId::Node(HIGH)) && !is_lower(&HIGH, &PeerId::Node(LOW)));
        let device = |text: &str| PeerId::Device(text.to_owned());
        assert!(is_lower(&LOW, &device("FFFFFFFF-0000-4000-8000-000000000000")));
        assert!(!is_lower(&HIGH, &device("00000000-0000-4000-8000-000000000000")));
    }
}
