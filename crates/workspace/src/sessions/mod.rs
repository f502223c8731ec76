//! The sessions of this machine: their engines, output and viewers, kept over restarts.
//!
//! From the bottom up:
//!
//! - [`clock`], [`alarms`]: time; [`client_id`], [`new`]: plain values
//! - the parts of a session: [`output`], [`viewers`], [`inputs`], [`life`]
//! - [`shared`]: the state that all sessions share; [`turn_follower`]: follows turns for teams
//! - [`session`]: one session, which owns its parts
//! - [`feed`]: the interface by which an engine reports to its session; [`engine_starter`]: starts
//!   engines; [`attachment`]: one client's stream of a session
//! - [`registry`]: all sessions, and the calls of their users

mod alarms;
mod attachment;
mod client_id;
mod clock;
mod engine_starter;
mod feed;
mod inputs;
pub(crate) mod life;
mod new;
mod output;
mod registry;
mod session;
mod shared;
#[cfg(test)]
mod tests;
mod turn_follower;
mod viewers;

pub use self::{
    attachment::Attachment,
    client_id::ClientId,
    life::facts::{Facts, TranscriptPosition},
    new::{NewEngine, NewSession},
    registry::{PastOutput, Prompted, Sessions, WeakSessions},
    turn_follower::TurnFollower,
    viewers::steps::Streamed,
};
pub(crate) use self::{
    engine_starter::{EngineStarter, Started},
    feed::Feed,
    life::activity::Activity,
    registry::Dependencies,
};
