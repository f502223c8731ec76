//! Lends a machine's backends to servers.
//!
//! A [`Worker`] keeps one link for each server and backend, so that a server knows each backend's
//! own concurrency. One driver serves every link; a codec for each protocol says what frames mean, with a
//! pure part that judges what the server sends. Every job runs in a task of its own, which closes its
//! backend's connection the moment it is dropped.
//!
//! - [`worker`]: all links together, from start to drain
//! - `crew`: the backends that it lends now, each with a task
//! - [`config`]: which servers, which backends
//! - [`dialer`]: opens links to servers; [`roaming`]: to a server whose address changes
//! - [`event`]: what happens to a worker, for people
//! - `lent`, `models`: one backend, shared by all links, and what it offers; `offered`: its models by the names
//!   that consumers use (pure); `ollama`: requests in a backend's own API; `patience`: asks a busy backend
//!   again
//! - `context`, `link`: what the links of one backend to one server share, and how they follow each other
//! - `driver`: the driver of an established link, and what a protocol must implement
//! - `relay`, `node`, `tunnel`: the protocols of workers, nodes and stock participants
//! - `traced`: the spans of requests to a backend
//! - `tasks`, `job`, `order`, `reply`, `credit`: the jobs of a link, from a request to the frames of its answer
//! - [`room`]: a room that a backend is lent to, and the requests to its server over HTTP
//! - [`failures`]: which of many failures in a row are shown (pure)
//! - `outcome`: how links end, and how long to wait for the next try (pure)

pub mod config;
mod context;
mod credit;
mod crew;
pub mod dialer;
mod driver;
pub mod event;
pub mod failures;
mod job;
mod lent;
mod link;
mod models;
mod node;
mod offered;
mod ollama;
mod order;
mod outcome;
mod patience;
mod relay;
mod reply;
pub mod roaming;
pub mod room;
mod tasks;
mod traced;
mod tunnel;
pub mod worker;

pub use backend::{
    BackendConfig, DEMO_MODEL, DemoConfig, Examined, LocalBackend, MAX_CONTEXT, ModelEngines,
    ModelEntry, NotAModel, Search, examine, find_local, key_file,
};
pub use config::{Lend, LendEngines, LentAlias, NotAServer, Protocol, ServerTarget, WorkerConfig};
pub use dialer::{DialFuture, Dialer, InProcessDialer, NetDialer};
pub use event::{Event, Observer};
pub use failures::Failures;
pub use outcome::WorkerEnd;
pub use roaming::{RoamingDialer, Whereabouts};
pub use room::{GiveUpReason, JoinRoom};
pub use worker::{Activity, NotAWorker, Worker};
