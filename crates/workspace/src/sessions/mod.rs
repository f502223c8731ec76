//! The sessions of this machine: their engines, output and viewers, kept across restarts.
//!
//! From the bottom up:
//!
//! - [`clock`]: time and alarms; [`new`]: the description of a new session
//! - the parts of a session: [`output`], [`attached_viewers`], [`client_inputs`], [`life`]
//! - [`shared`]: the state that all sessions share
//! - [`session`]: one session, which owns its parts
//! - [`feed`]: the interface by which an engine reports to its session; [`engine_starter`]: starts
//!   engines; [`attachment`]: one client's stream of a session
//! - [`registry`]: all sessions, and the calls of their users

mod attached_viewers;
mod attachment;
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

pub use self::{
    attached_viewers::steps::StreamItem,
    attachment::Attachment,
    life::facts::{Facts, TranscriptPosition},
    new::{NewEngine, NewSession},
    registry::{PromptAcceptance, Sessions, WeakSessions},
    shared::{Counts, TurnFollower},
};
pub(crate) use self::{
    engine_starter::{EngineStart, EngineStarter},
    feed::Feed,
    life::Activity,
    output::journal::TerminalState,
    registry::{Dependencies, Survivors},
};
