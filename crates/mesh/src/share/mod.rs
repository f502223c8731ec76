//! The peers that may ask this machine, when, and how much.
//!
//! Pure: time and what is going on come in.
//!
//! - `gate`: the rules, and what peers have

mod gate;
#[cfg(test)]
mod tests;

use base::NodeId;

pub(crate) use gate::{Asker, Doing, Gate, Moment, Refusal};

/// The share of this machine for peers.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// The peers that may ask.
    pub with: Sharing,
    /// The only models that they may ask for; empty: all.
    pub models: Vec<String>,
    /// When, in local time; empty: always.
    pub hours: Vec<Hours>,
    /// No request is taken while this machine's own jobs use more of its capacity than this, from 0 to 1.
    pub max_load: Option<f64>,
    /// Requests at once, of each peer.
    pub jobs_per_peer: Option<u32>,
    /// Requests at once, of all peers.
    pub jobs: Option<u32>,
    /// Tokens a day, of each peer; the day begins at midnight UTC, as budgets of keys do.
    pub tokens_per_day: Option<u64>,
    /// Whether nothing is taken on battery.
    pub pause_on_battery: bool,
    /// Whether models are passed on, too.
    pub models_offered: bool,
    /// Nodes that may ask under [`Sharing::Peers`] though they proved no passcode.
    pub trusted: Vec<NodeId>,
}

/// The peers that may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Nobody.
    #[default]
    Off,
    /// Peers that completed a hello, with the passcode where one is set, and those that are trusted.
    Peers,
    /// Anybody who reaches this machine.
    Anyone,
}

/// A span of the day, in minutes since midnight; one that ends before it begins goes over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// Its first minute.
    pub from: u16,
    /// The minute after its last.
    pub to: u16,
}
