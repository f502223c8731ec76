//! The sessions of this machine: their engines, output and viewers, kept over restarts.
//!
//! From the bottom up:
//!
//! - [`clock`], [`alarms`]: time; [`client_id`], [`new`]: plain values
//! - the parts of a session: [`output`], [`attached_viewers`], [`client_inputs`], [`life`]
//! - [`shared`]: the state that all sessions share; [`turn_follower`]: follows turns for teams
//! - [`session`]: one session, which owns its parts
//! - [`feed`]: the interface by which an engine reports to its session; [`engine_starter`]: starts
//!   engines; [`attachment`]: one client's stream of a session
//! - [`registry`]: all sessions, and the calls of their users

mod alarms;
mod attached_viewers;
mod attachment;
mod client_id;
mod client_inputs;
mod clock;
mod engine_starter;
mod feed;
pub(crate) mod life;
pub mod moving;
mod new;
mod output;
mod registry;
mod session;
mod shared;
#[cfg(test)]
mod tests;
mod turn_follower;

pub use self::{
    attached_viewers::steps::Streamed,
    attachment::Attachment,
    client_id::ClientId,
    life::facts::{Facts, TranscriptPosition},
    new::{NewEngine, NewSession},
    registry::{Prompted, Sessions, WeakSessions},
    turn_follower::TurnFollower,
};
pub(crate) use self::{
    engine_starter::{EngineStarter, Started},
    feed::Feed,
    life::activity::Activity,
    output::journaled::TerminalState,
    registry::{Dependencies, Outlived},
};
