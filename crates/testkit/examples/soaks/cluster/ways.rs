//! The ways between the members: proxies that cut and hold the links that lead through them.

use std::{collections::BTreeMap, net::SocketAddr};

use testkit::{Fault, Way};

/// One way from each member to each other one.
pub(crate) struct Ways(BTreeMap<(usize, usize), Way>);

impl Ways {
    pub(crate) async fn between(members: usize) -> Self {
        let mut ways = BTreeMap::new();
        for from in 0..members {
            for to in (0..members).filter(|to| *to != from) {
                ways.insert((from, to), Way::new().await);
            }
        }
        Self(ways)
    }

    /// The peer addresses that a member dials.
    pub(crate) fn peers_of(&self, member: usize) -> impl Iterator<Item = String> {
        let own = self.0.iter().filter(move |((from, _), _)| *from == member);
        own.map(|(_, way)| way.address().to_string())
    }

    /// The member has this peer port from now on.
    pub(crate) fn lead_to(&self, member: usize, target: SocketAddr) {
        for (_, way) in self.0.iter().filter(|((_, to), _)| *to == member) {
            way.lead_to(target);
        }
    }

    /// Sets the fault of the two ways between two members. `holds[0]` is of the bytes to `one`.
    pub(crate) fn set(&self, one: usize, other: usize, fault: Fault) {
        // What the dialler sends arrives at the other member.
        self.0[&(other, one)].set(fault);
        self.0[&(one, other)].set(fault.mirrored());
    }

    pub(crate) fn heal_all(&self) {
        self.0.values().for_each(|way| way.set(Fault::default()));
    }
}
