//! Admission, and each node's limits.

use std::{collections::HashSet, time::Duration};

use base::NodeId;

/// Which nodes may register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// All.
    Open,
    /// These.
    Members(HashSet<NodeId>),
}

impl Admission {
    /// Whether a node may register; `None` is one whose id is no key.
    pub(crate) fn admits(&self, key: Option<NodeId>) -> bool {
        match self {
            Self::Open => true,
            Self::Members(members) => key.is_some_and(|key| members.contains(&key)),
        }
    }
}

/// A rate limit: a rate per second, after a burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Each second.
    pub per_second: f64,
    /// At once.
    pub burst: f64,
}

/// How a relay treats its nodes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which nodes may register.
    pub admission: Admission,
    /// Whether a registration without a signature is accepted. A wrong signature never is.
    pub accept_unsigned: bool,
    /// The names by which the relay is dialled, in the form of
    /// [`relay_host`](protocol::mesh::relay::relay_host). A challenge is answered for one of them
    /// only. When there are none, whatever name a connection was dialled by is taken, and then a
    /// relay in between could pass a challenge of this one on to its own nodes.
    pub hosts: Vec<String>,
    /// Nodes at once.
    pub max_nodes: usize,
    /// Connections at once that have not registered.
    pub max_strangers: usize,
    /// Relay sessions of one node at once.
    pub max_sessions: usize,
    /// Of them, those with one and the same other node, so that none takes all that another may
    /// have. Stock gateways open one for each request, and have eight on their way.
    pub max_sessions_of_pair: usize,
    /// Messages of a node that are not `relayData`. More are refused.
    pub control: Rate,
    /// Lists of nodes that a node may ask for. More are refused.
    pub discover: Rate,
    /// `relayData` of a node, in messages. A node that sends more is read more slowly.
    pub data: Rate,
    /// `relayData` of a node, in bytes. A node that sends more is read more slowly.
    pub bytes: Rate,
    /// The bound on announcements of a node's changed offers. The other nodes find the rest when they
    /// ask for nodes again.
    pub changes: Rate,
    /// The bound on joins that a node is told. It finds the others when it asks for nodes again.
    pub joins: Rate,
    /// The bound on leaves that a node is told, beside those of the other ends of its relay sessions.
    pub leaves: Rate,
    /// After this much silence a node is gone.
    pub ttl: Duration,
    /// How long a connection may stand without registering.
    pub register_within: Duration,
    /// How long a sender waits for its receiver to read.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            admission: Admission::Open,
            accept_unsigned: false,
            hosts: Vec::new(),
            max_nodes: 10_000,
            max_strangers: 1_000,
            max_sessions: 256,
            max_sessions_of_pair: 16,
            control: Rate { per_second: 200.0, burst: 1_000.0 },
            discover: Rate { per_second: 1.0, burst: 20.0 },
            data: Rate { per_second: 200_000.0, burst: 200_000.0 },
            bytes: Rate { per_second: 4e9, burst: 4e9 },
            changes: Rate { per_second: 0.5, burst: 8.0 },
            joins: Rate { per_second: 1.0, burst: 16.0 },
            leaves: Rate { per_second: 2.0, burst: 64.0 },
            ttl: Duration::from_secs(protocol::mesh::relay::TTL_SECONDS),
            register_within: Duration::from_secs(30),
            patience: Duration::from_secs(30),
        }
    }
}
