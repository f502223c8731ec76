//! The content that each other member has noted, as far as this member knows.

use std::collections::BTreeMap;

use crate::{
    context::Context,
    dot::{Dot, Incarnation},
    entry::NodeId,
    message::MOST_MEMBERS,
};

/// A member's claim, and when it was made.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) incarnation: Incarnation,
    /// In seconds since this replica began; negative for earlier ones that others reported.
    pub(crate) at_s: i64,
    pub(crate) context: Context,
}

/// The newest claim of each member. Claims only decide when something may be dropped. So an old or
/// wrong claim costs memory or a list of keys, and never an object.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<NodeId, Claim>);

impl Claims {
    /// Keeps a claim if it is newer than the known one of that member. Its age decides, not its
    /// context: after an old disk was restored, a smaller context is the true one.
    pub(crate) fn note(&mut self, node: &NodeId, claim: Claim) {
        let known = self.0.get(node);
        let is_newer = known.is_none_or(|known| claim.at_s >= known.at_s);
        if is_newer && (known.is_some() || self.0.len() < MOST_MEMBERS) {
            self.0.insert(node.clone(), claim);
        }
    }

    pub(crate) fn get(&self, node: &NodeId) -> Option<&Claim> {
        self.0.get(node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeId, &Claim)> {
        self.0.iter()
    }

    pub(crate) fn has(&self, node: &NodeId, dot: Dot) -> bool {
        self.0.get(node).is_some_and(|claim| claim.context.has(dot))
    }

    /// The member that ran this incarnation when it last showed its context, and what it showed.
    pub(crate) fn of(&self, incarnation: Incarnation) -> Option<(&NodeId, &Claim)> {
        self.iter().find(|(_, claim)| claim.incarnation == incarnation)
    }

    /// Drops the claims of members that were deleted.
    pub(crate) fn retain(&mut self, is_member: impl Fn(&NodeId) -> bool) {
        self.0.retain(|node, _| is_member(node));
    }
}
