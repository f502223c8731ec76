//! Where the frames of each carried link go on.

use std::{collections::BTreeMap, sync::Arc};

use base::NodeId;
use wire::Outbox;

use super::{
    Through,
    end::Line,
    frame::{Body, CarriedFrame, Closed},
    waiting::Waiting,
    ways::{Reach, Ways},
};
use crate::link::frame::{Channel, LinkFrame};

/// The direct links of this member, and the carried links at them.
pub(super) struct State {
    /// The direct links by their numbers, and the ways over the mesh.
    pub(super) hops: BTreeMap<u64, Hop>,
    pub(super) ways: Ways,
    /// How many ways over the mesh have been made so far.
    pub(super) mesh_links: u64,
    pub(super) ports: BTreeMap<Place, Port>,
}

/// The place of a carried link at a direct link: the number of the direct link, and the channel on
/// which frames come from there.
pub(super) type Place = (u64, Channel);

/// A direct link, or the way over the mesh to one machine.
pub(super) struct Hop {
    pub(super) node: String,
    /// The key of the machine, for a way over the mesh.
    pub(super) by_mesh: Option<NodeId>,
    pub(super) outbox: Outbox,
    pub(super) next: u32,
    /// The ways from here that its member was last told.
    pub(super) announced: Reach,
}

/// Where frames of a carried link go on.
pub(super) enum Port {
    /// It ends here.
    End(Arc<Line>),
    /// It goes on at this place.
    On(Place, Arc<Waiting>),
}

impl State {
    /// The newest direct link to a member.
    pub(super) fn link_to(&self, node: &str) -> Option<u64> {
        let mut hops = self.hops.iter().rev();
        hops.find(|(_, hop)| hop.by_mesh.is_none() && hop.node == node).map(|(link, _)| *link)
    }

    /// A new carried link at a direct one. Returns the place from which its frames come, and the
    /// queue for the frames that go there.
    pub(super) fn out(&mut self, link: u64) -> Option<(Place, Arc<Waiting>)> {
        let hop = self.hops.get_mut(&link)?;
        let number = hop.next;
        hop.next = hop.next.wrapping_add(1);
        let channel = Channel { number, to_opener: true };
        Some(((link, channel), Waiting::new(hop.outbox.clone(), flip(channel))))
    }

    pub(super) fn ends(&self) -> usize {
        self.ports.values().filter(|port| matches!(port, Port::End(_))).count()
    }

    pub(super) fn pairs(&self) -> usize {
        (self.ports.len() - self.ends()) / 2
    }

    /// Removes a port, and with it the port at the other side.
    pub(super) fn take(&mut self, place: Place) -> Vec<Port> {
        let Some(port) = self.ports.remove(&place) else { return Vec::new() };
        let other = match &port {
            Port::On(other, _) => self.ports.remove(other),
            Port::End(_) => None,
        };
        [port].into_iter().chain(other).collect()
    }

    /// As [`State::take`], for all ports at a link.
    pub(super) fn take_all_at(&mut self, link: u64) -> Vec<Port> {
        let places: Vec<Place> = self.ports.keys().filter(|(at, _)| *at == link).copied().collect();
        places.into_iter().flat_map(|place| self.take(place)).collect()
    }

    /// Tells each linked member which members this one reaches, if that has changed.
    pub(super) fn tell(&mut self) {
        for hop in self.hops.values_mut().filter(|hop| hop.by_mesh.is_none()) {
            let reach = self.ways.reach(&hop.node);
            if reach != hop.announced {
                hop.announced = reach.clone();
                let frame = LinkFrame::Carried(CarriedFrame::Ways(reach).encode());
                let _link_ended = hop.outbox.push(frame.encode());
            }
        }
    }
}

impl Hop {
    pub(super) fn through(&self) -> Through {
        match self.by_mesh {
            Some(_) => Through::Mesh,
            None => Through::Member(self.node.clone()),
        }
    }
}

impl Port {
    /// Ends the port, and tells the member to which its frames go.
    pub(super) fn close(&self, why: &Closed) {
        match self {
            Self::End(line) => line.give_up(why.clone()),
            Self::On(_, on) => on.give_up(Body::Closed(why.clone())),
        }
    }
}

/// The same channel for frames in the other direction.
pub(super) fn flip(channel: Channel) -> Channel {
    Channel { to_opener: !channel.to_opener, ..channel }
}
