//! The part of the server that acts with others as one, over NATS.
//!
//! - `present`: the part, with the feature `nats`
//! - `absent`: stands in for it in a program without that feature
//! - [`examination`]: a look at NATS without a running server

#[cfg(not(feature = "nats"))]
#[path = "absent.rs"]
mod present;
#[cfg(feature = "nats")]
mod present;

pub mod examination;

use std::sync::{Arc, OnceLock};

use prometheus_client::{
    encoding::text::encode_registry,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::telemetry::metrics::{Labels, counter, gauge};

pub(crate) use self::present::{FleetObserver, FleetPart, RoomsOfFleet};

/// The part, if this server is one of several. It is set once the server listens.
pub(crate) type FleetCell = Arc<OnceLock<FleetPart>>;

/// Figures of the fleet, for metrics.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FleetCounts {
    /// Servers that are there, this one included.
    pub(crate) servers: usize,
    pub(crate) connected: bool,
    pub(crate) lent: u32,
    pub(crate) borrowed: u32,
    /// Jobs of this server at fellows: now, and all since the start.
    pub(crate) asking: u64,
    pub(crate) asked: u64,
    /// Jobs of fellows at this server: now, and all since the start.
    pub(crate) serving: u64,
    pub(crate) served: u64,
    /// Messages to fellows, and those of them that could not be sent at once.
    pub(crate) messages: u64,
    pub(crate) unsent: u64,
}

/// Appends the metrics of the fleet, if there is one.
pub(crate) fn encode(text: &mut String, counts: Option<&FleetCounts>) {
    let Some(counts) = counts else { return };
    let mut registry = Registry::with_prefix("warren_fleet");
    let help = "Servers that act as one, this one included";
    registry.register("servers", help, gauge(counts.servers));
    let help = "1 while NATS is reached";
    registry.register("connected", help, gauge(usize::from(counts.connected)));
    let slots = Family::<Labels<1>, Gauge>::default();
    for (way, number) in [("lent", counts.lent), ("borrowed", counts.borrowed)] {
        slots.get_or_create(&[("way", way.to_owned())]).set(number.into());
    }
    registry.register("slots", "Slots lent to other servers, and borrowed of them", slots);
    let (now, ended) =
        (Family::<Labels<1>, Gauge>::default(), Family::<Labels<1>, Counter>::default());
    for (way, running, all) in
        [("sent", counts.asking, counts.asked), ("served", counts.serving, counts.served)]
    {
        let label = [("way", way.to_owned())];
        now.get_or_create(&label).set(i64::try_from(running).unwrap_or(i64::MAX));
        ended.get_or_create(&label).inc_by(all);
    }
    let help = "Jobs at workers of other servers, and jobs of theirs at workers of this one";
    registry.register("jobs_running", help, now);
    registry.register("jobs", "All of these since the start", ended);
    let help = "Messages to other servers";
    registry.register("messages", help, counter(counts.messages));
    let help = "Messages to other servers that could not be sent at once, and were sent again";
    registry.register("messages_unsent", help, counter(counts.unsent));
    // Writing to a string does not fail.
    let _ = encode_registry(text, &registry);
}
