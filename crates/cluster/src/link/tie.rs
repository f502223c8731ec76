//! Which of two links between the same two members stays, so that both ends keep the same one.
//!
//! A direct link stays before a carried one; then the one that the member with the lower id opened;
//! of two that the same end opened, the newer one. A link whose other end has restarted meanwhile
//! does not count: it is dead, though this end does not know that yet.

/// A link's claim to stay, as one end sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) opened_here: bool,
    /// The incarnation of the other end.
    pub(crate) incarnation: u64,
    /// The opener's count of its dials.
    pub(crate) dial: u64,
    /// Whether other members carry it.
    pub(crate) is_carried: bool,
    /// Whether the other end has been silent for too long.
    pub(crate) is_silent: bool,
}

/// Whether `new` replaces `old`. `is_lower` says that this member's id is the lower of the two.
pub(crate) fn newer_stays(is_lower: bool, old: Claim, new: Claim) -> bool {
    if old.is_silent || old.incarnation != new.incarnation {
        return true;
    }
    if old.is_carried != new.is_carried {
        return old.is_carried;
    }
    match old.opened_here == new.opened_here {
        true => new.dial >= old.dial,
        false => new.opened_here == is_lower,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A connection as its two ends see it: whether the lower id opened it, its count, and whether it
    /// is carried.
    type Connection = (bool, u64, bool);

    fn kept(is_lower: bool, seen: &[Connection]) -> Connection {
        let claim = |(by_lower, dial, is_carried): Connection| Claim {
            opened_here: by_lower == is_lower,
            incarnation: 7,
            dial,
            is_carried,
            is_silent: false,
        };
        let keep = |old: Connection, new: &Connection| {
            if newer_stays(is_lower, claim(old), claim(*new)) { *new } else { old }
        };
        seen[1..].iter().fold(seen[0], keep)
    }

    proptest! {
        #[test]
        fn both_ends_keep_the_same_link_in_whatever_order_they_see_them(
            seen in prop::collection::hash_map((any::<bool>(), 0..9u64), any::<bool>(), 1..6),
            order in any::<prop::sample::Index>(),
        ) {
            let seen = seen.into_iter();
            let one: Vec<_> = seen.map(|((by_lower, dial), carried)| (by_lower, dial, carried)).collect();
            let mut other = one.clone();
            other.rotate_left(order.index(one.len()));
            prop_assert_eq!(kept(true, &one), kept(false, &other));
        }
    }

    #[test]
    fn a_restarted_or_silent_end_gives_way() {
        let old = Claim {
            opened_here: true,
            incarnation: 1,
            dial: 9,
            is_carried: false,
            is_silent: false,
        };
        let new = Claim { opened_here: false, incarnation: 2, dial: 1, ..old };
        assert!(newer_stays(true, old, new));
        let silent = Claim { is_silent: true, ..old };
        assert!(newer_stays(true, silent, Claim { incarnation: 1, ..new }));
    }

    #[test]
    fn a_direct_link_takes_the_place_of_a_carried_one_whoever_opened_it() {
        let direct = Claim {
            opened_here: false,
            incarnation: 1,
            dial: 1,
            is_carried: false,
            is_silent: false,
        };
        let carried = Claim { opened_here: true, dial: 9, is_carried: true, ..direct };
        for is_lower in [true, false] {
            assert!(newer_stays(is_lower, carried, direct));
            assert!(!newer_stays(is_lower, direct, carried));
        }
    }
}
