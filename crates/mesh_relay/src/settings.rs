//! Admission, and the limits of each node.

use std::{collections::HashSet, time::Duration};

use base::NodeId;

/// The nodes that may register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Every node.
    Open,
    /// Only these nodes.
    Members(HashSet<NodeId>),
}

impl Admission {
    /// Whether a node may register; `None` stands for a node whose id is not a key.
    pub(crate) fn admits(&self, key: Option<NodeId>) -> bool {
        match self {
            Self::Open => true,
            Self::Members(members) => key.is_some_and(|key| members.contains(&key)),
        }
    }
}

/// A rate limit: a rate per second, and a burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many tokens come each second.
    pub per_second: f64,
    /// How many may be used at once, after a pause.
    pub burst: f64,
}

/// The settings of a mesh relay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The nodes that may register.
    pub admission: Admission,
    /// Whether a registration without a signature is accepted. A wrong signature never is.
    pub accept_unsigned: bool,
    /// The names by which the relay is dialled, in the form of
    /// [`relay_host`](protocol::mesh::relay::relay_host). An answer to a challenge must be for one
    /// of them. If there are none, the name by which the connection was dialled counts. Then
    /// another relay in between could pass this relay's challenge on to its own nodes, and register
    /// here as one of them.
    pub hosts: Vec<String>,
    /// The most nodes.
    pub max_nodes: usize,
    /// The most connections that have not registered.
    pub max_strangers: usize,
    /// The most relay sessions of one node.
    pub max_sessions: usize,
    /// The most relay sessions of one node with the same other node, so that a node cannot take all
    /// sessions that another may have. Stock gateways open one for each request, and have eight at
    /// once.
    pub max_sessions_of_pair: usize,
    /// The rate of a node's messages other than `relayData`. Messages above it are refused.
    pub control: Rate,
    /// The rate of a node's requests for the list of nodes. Requests above it are refused.
    pub discover: Rate,
    /// The rate of a node's `relayData`, in messages. A node that sends more is read more slowly.
    pub data: Rate,
    /// The rate of a node's `relayData`, in bytes. A node that sends more is read more slowly.
    pub bytes: Rate,
    /// The bound on announcements of a node's changed offers. Other nodes see changes above it when
    /// they next ask for nodes.
    pub changes: Rate,
    /// The bound on joins that are announced to a node. It sees the others when it next asks for
    /// nodes.
    pub joins: Rate,
    /// The bound on leaves that are announced to a node, not counting those of the other ends of
    /// its relay sessions.
    pub leaves: Rate,
    /// A node that is silent for this long is gone.
    pub ttl: Duration,
    /// How long a connection may be open without registering.
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
