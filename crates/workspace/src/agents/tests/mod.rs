//! Agents with real processes: the fake command lines of the crate `testkit`.
//!
//! - `rig`: a workspace with them, and a client that watches a session
//! - `turns`: turns of each dialect: the first, later ones, and turns after a restart
//! - `halting`: interrupts, and agents that hang, crash, or never end
//! - `asking`: questions
//! - `starting`: programs, arguments, environment, files
//! - `gateway`: keys; `outliving`: turns that go on over a restart

mod asking;
mod gateway;
mod halting;
mod outliving;
pub(crate) mod rig;
mod starting;
mod turns;
