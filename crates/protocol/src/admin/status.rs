//! The JSON of `/health`, `/admin/workers` and `/admin/stats`: how a server is now.

use std::collections::BTreeMap;

pub use base::{FactsByModel, ModelFacts};
use serde::{Deserialize, Serialize};

/// Answer of `GET /health`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// `ok`, `degraded`, or `draining` once the server is stopping.
    pub status: String,
    /// Whether it takes new requests.
    pub ok: bool,
    /// The server's version.
    pub version: String,
    /// Peers that it is connected with.
    pub peers: u32,
    /// The details, which strangers do not see.
    #[serde(flatten)]
    pub details: Option<HealthDetails>,
}

/// The part of `/health` for local requests and those with a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthDetails {
    /// The problem and its consequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Seconds since the server started.
    pub uptime_secs: u64,
    /// How many workers and other providers are connected.
    pub workers_connected: u64,
    /// They themselves, by name.
    pub workers: Vec<WorkerJson>,
    /// Jobs waiting, all queues together.
    pub queue_depth: u64,
    /// Jobs at providers.
    pub in_flight: u64,
    /// The models that are served to all.
    pub models: Vec<String>,
    /// The aliases, each with its targets in order of preference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, Vec<String>>,
    /// The servers that act as one with this one, where there are such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetHealth>,
    /// The workspace of the machine, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceHealth>,
}

/// The part of `/health` about servers that act as one (`--cluster`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetHealth {
    /// The name of this server among them.
    pub name: String,
    /// The group of servers.
    pub group: String,
    /// Whether NATS is reached.
    pub connected: bool,
    /// The other servers, by name.
    pub servers: Vec<FellowJson>,
    /// Slots of this server's workers that are lent to the others.
    pub slots_lent: u32,
    /// Slots of the others' workers that are lent to this server.
    pub slots_borrowed: u32,
    /// Requests of this server at workers of the others.
    pub requests_sent: u64,
    /// Requests of the others at workers of this server.
    pub requests_served: u64,
}

/// Another server that acts as one with this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FellowJson {
    /// Its name.
    pub name: String,
    /// The id of its start.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// `active`, or `draining` when it stops.
    pub state: String,
    /// Where it is reached, as far as it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How many workers it has that this server may use.
    pub workers: u64,
}

/// The workspace's part of `/health`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceHealth {
    /// Clients that are connected.
    pub clients: u64,
    /// All sessions, including ended ones.
    pub sessions: u64,
    /// Sessions that have not ended.
    pub live_sessions: u64,
    /// How long they go on without the server, in seconds.
    #[serde(default)]
    pub keep_sessions_secs: u64,
}

/// Answer of `GET /admin/workers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerList {
    /// By name.
    pub workers: Vec<WorkerJson>,
}

/// A worker, or another provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerJson {
    /// Its id.
    pub worker_id: String,
    /// The same again, under a shorter name.
    pub id: String,
    /// The name that it gave itself.
    pub worker_name: String,
    /// The server that it is connected to, if that is another one of several that act as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Where its jobs come from: `server`, or a room.
    pub scope: String,
    /// Its models.
    pub models: Vec<String>,
    /// The known facts about its models, by name; a model of which nothing is known is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_facts: FactsByModel,
    /// Whether it loads and unloads models when it is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loads_models: bool,
    /// The paths of requests that it serves without translation.
    pub endpoints: Vec<String>,
    /// How far away it is: `here`, `fellow` (connected to another of several servers that act as one), `near`
    /// (another machine on this network) or `far` (through a relay).
    #[serde(default)]
    pub distance: String,
    /// Tokens a second: measured, or else as it reports; `null` while neither is known.
    pub speed: Option<f64>,
    /// How much of its speed it gives, in per cent; 0 while it is paused.
    #[serde(default = "unthrottled")]
    pub throttle: u8,
    /// How many jobs it takes at once; of another server's, how many of its slots are lent to this one now.
    pub max_concurrent: u32,
    /// How many of its slots are lent to other servers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lent: u32,
    /// The load that it reports, including work from other servers.
    pub reported_load: u32,
    /// Jobs that it has from here.
    pub in_flight_count: u32,
    /// The same again, under a shorter name.
    pub in_flight: u32,
    /// Whether it is given nothing more.
    pub is_draining: bool,
    /// The remaining seconds of its rest after faults.
    pub resting_secs: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn unthrottled() -> u8 {
    100
}

/// Answer of `GET /admin/stats`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Jobs waiting in each scope.
    pub queue_depth: BTreeMap<String, u64>,
    /// The queues that are not empty.
    pub queues: Vec<QueueJson>,
    /// Connected workers and other providers.
    pub active_workers: u64,
    /// Jobs at providers.
    pub in_flight: u64,
    /// Seconds since the server started.
    pub uptime_secs: u64,
}

/// A queue that is not empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueJson {
    /// Where its providers are: `server`, or a room.
    pub scope: String,
    /// Its model.
    pub model: String,
    /// Jobs waiting in it.
    pub depth: u64,
    /// Seconds that the oldest has waited.
    pub oldest_secs: f64,
}

/// Answer to the load or unload of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChanged {
    /// The worker's id.
    pub worker_id: String,
    /// The name that it gave itself.
    pub worker_name: String,
    /// The model.
    pub model: String,
    /// `loaded` or `unloaded`.
    pub done: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn health_is_read_in_its_short_form_and_in_its_long_one() {
        let short = json!({"status": "ok", "ok": true, "version": "1", "peers": 0});
        let health: Health = serde_json::from_value(short.clone()).unwrap();
        assert_eq!(health.details, None);
        assert_eq!(serde_json::to_value(&health).unwrap(), short);
        let details = HealthDetails { uptime_secs: 5, ..HealthDetails::default() };
        let long = Health { details: Some(details), ..health };
        let written = serde_json::to_value(&long).unwrap();
        assert_eq!((&written["uptime_secs"], written.get("degraded")), (&json!(5), None));
        assert_eq!(serde_json::from_value::<Health>(written).unwrap(), long);
    }
}
