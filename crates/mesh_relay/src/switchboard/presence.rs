//! Announcements of joins and leaves, and the list of nodes.

use std::collections::BTreeSet;

use protocol::mesh::{
    date::AppleTime,
    relay::{Code, DiscoverResponse, Filter, Presence, RelayError},
};
use wire::Utf8Bytes;

use super::{Connection, Line, Node, Now, Switchboard};
use crate::bucket::Bucket;

/// The longest model name, in bytes, that is kept from a `discover` sent before registration.
const MAX_EARLY: usize = 256;

impl Switchboard {
    /// Answers a request for the list of nodes. A request that comes before the registration is
    /// answered after it: stock gateways ask this early, and ask again only 10 s later.
    pub(super) fn discover(
        &mut self,
        now: Now,
        connection: Connection,
        filter: &Filter,
        has_room: bool,
    ) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        if line.node.is_none() {
            if filter.model_id.as_ref().is_some_and(|model| model.len() > MAX_EARLY) {
                return self.refuse_stranger(connection);
            }
            line.early = Some(filter.clone());
            return;
        }
        let full = if has_room { Ok(()) } else { Err(std::time::Duration::from_secs(1)) };
        if let Err(wait) = full.and_then(|()| line.discover.take(now.instant)) {
            return self.limit(connection, wait);
        }
        // From now on joins and leaves follow the list.
        self.watchers.insert(connection);
        let most = filter.max_peers.map_or(usize::MAX, |most| most as usize);
        let others = self.nodes.values().filter(|other| **other != connection);
        let nodes = others.filter_map(|other| self.node(*other));
        let wanted = nodes.filter(|node| node.facts.pass(filter)).take(most);
        let listed = wanted.map(|node| (&node.record, AppleTime::from_unix_ms(node.heard_ms)));
        let list = DiscoverResponse::encode(listed);
        self.send(connection, list);
    }

    pub(super) fn refuse_stranger(&mut self, connection: Connection) {
        let error = RelayError::new(Code::NotRegistered, "Register before anything else");
        self.refuse(connection, Code::NotRegistered, &error);
    }

    /// Announces a node that has joined, or whose offer has changed.
    pub(super) fn tell_joined(&mut self, now: Now, connection: Connection) {
        let Some(node) = self.node(connection) else { return };
        let text = Utf8Bytes::from(node.presence().joined());
        let mut watchers = self.watchers.clone();
        watchers.remove(&connection);
        self.tell(now, &watchers, &text, |line| &mut line.joins);
    }

    /// Announces that a node leaves; its connection may stay open. The other ends of its relay
    /// sessions always get the announcement, even if they have not asked for announcements.
    pub(super) fn leave(&mut self, now: Now, connection: Connection) {
        let node = self.lines.get_mut(&connection).and_then(|line| line.node.take());
        let Some(node) = node else { return };
        self.nodes.remove(&node.id);
        self.watchers.remove(&connection);
        let mut ends = self.sessions.leave(connection);
        ends.remove(&connection);
        let text = Utf8Bytes::from(node.presence().left());
        ends.iter().for_each(|to| self.send(*to, text.clone()));
        let watchers = self.watchers.difference(&ends).copied().collect();
        self.tell(now, &watchers, &text, |line| &mut line.leaves);
    }

    /// Sends an announcement to all watchers within their bounds. Without the bounds, if all nodes
    /// of a large mesh came or went at once, each would get a message about each other one.
    fn tell(
        &mut self,
        now: Now,
        watchers: &BTreeSet<Connection>,
        text: &Utf8Bytes,
        rate: fn(&mut Line) -> &mut Bucket,
    ) {
        for watcher in watchers {
            let Some(line) = self.lines.get_mut(watcher) else { continue };
            match rate(line).take(now.instant) {
                Ok(()) => self.send(*watcher, text.clone()),
                Err(_) => self.counts.untold += 1,
            }
        }
    }
}

impl Node {
    fn presence(&self) -> Presence {
        Presence { node: self.id.clone(), display_name: self.name.clone() }
    }
}
