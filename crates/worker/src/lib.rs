//! Lends a machine's backends to servers.
//!
//! A [`Worker`] keeps one link for each server and backend, so that a server knows each backend's
//! own concurrency. What a server says is judged by a pure session; the link only carries out
//! what the session decides, and every job runs in a task of its own, which closes its backend's
//! connection the moment it is dropped.
//!
//! - [`worker`]: all links together, from start to drain
//! - [`config`]: which servers, which backends
//! - [`dialer`]: how a link to a server comes about
//! - [`event`]: what there is to tell people
//! - `lent`, `models`: one backend, shared by all links, and what it offers
//! - `link`, `serving`: one link to one server: again and again, and while it stands
//! - `session`, `order`: what a server's messages mean (pure)
//! - `job`, `reply`, `credit`: one request, from the backend's answer to the frames of the link
//! - `node`: the same for a stock API server, whose protocol has one task a connection
//! - [`room`]: a room that a backend is lent to, and what there is to ask of its server over HTTP
//! - `tunnel`: the same for a stock server of rooms
//! - `reconnect`: how long to wait for the next try (pure)

pub mod config;
mod credit;
pub mod dialer;
pub mod event;
mod job;
mod lent;
mod link;
mod models;
mod node;
mod order;
mod reconnect;
mod reply;
pub mod room;
mod serving;
mod session;
mod tunnel;
pub mod worker;

pub use backend::{
    BackendConfig, DEMO_MODEL, DemoConfig, LocalBackend, ModelEntry, NotAModel, find_local,
};
pub use config::{Lend, NotAServer, Protocol, ServerTarget, WorkerConfig};
pub use dialer::{Dialer, Dialing, NetDialer, PipeDialer};
pub use event::{Event, Observer};
pub use room::{GiveUpReason, JoinRoom};
pub use worker::{Activity, NotAWorker, Worker, WorkerEnd};
