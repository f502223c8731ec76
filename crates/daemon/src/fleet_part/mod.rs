//! Several servers that act as one, over NATS: as a part of the server.
//!
//! - `present`: the part, with the feature `nats`
//! - `absent`: the same in a program without it
//! - [`examination`]: a look at NATS from outside of a server
//! - [`metrics`]: its figures

#[cfg(not(feature = "nats"))]
#[path = "absent.rs"]
mod present;
#[cfg(feature = "nats")]
mod present;

pub mod examination;
pub(crate) mod metrics;

use std::sync::{Arc, OnceLock};

pub(crate) use self::present::{FleetPart, Hearing, RoomsOfFleet};

/// The part, once this server listens, if it is one of several.
pub(crate) type FleetCell = Arc<OnceLock<FleetPart>>;

/// Figures of the fleet, for metrics.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FleetCounts {
    /// Servers that are there, this one included.
    pub(crate) servers: usize,
    pub(crate) connected: bool,
    pub(crate) lent: u32,
    pub(crate) borrowed: u32,
    /// Jobs at fellows now and so far, and jobs of fellows here now and so far.
    pub(crate) asking: u64,
    pub(crate) asked: u64,
    pub(crate) serving: u64,
    pub(crate) served: u64,
    /// Messages to fellows that were sent, and that could not be.
    pub(crate) messages: u64,
    pub(crate) unsent: u64,
}
