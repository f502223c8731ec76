//! Processes on Linux and macOS.
//!
//! - `client`: the daemon's side of the supervisor; [`supervisor`]: the helper's side; `messages`, `failure`: what they
//!   say to each other
//! - `journal`: output that outlives the daemon; `leftovers`: processes that outlived their supervisor
//! - `terminal`, `user`, `as_user`, `environment`, `adopted`, `signal_numbers`
//! - `linux`, `macos`: the calls of each system, with the same names in both; `unsafe_calls`: those of both

mod adopted;
mod as_user;
mod client;
mod environment;
mod failure;
mod journal;
mod leftovers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod messages;
mod signal_numbers;
pub mod supervisor;
mod terminal;
mod unsafe_calls;
mod user;

#[cfg(target_os = "linux")]
use linux as kernel_calls;
#[cfg(target_os = "macos")]
use macos as kernel_calls;

use kernel_calls::{cgroup, channel, credentials, kernel, processes};

pub use adopted::Adopted;
pub use as_user::{as_user, start_as};
pub use client::{
    Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle, HeldProcess, Keep, Limits,
    Supervisor, TakenOver,
};
pub use environment::clean_environment;
pub use journal::{Journal, Note};
pub use kernel_calls::{give_back_memory, listening_ports};
pub use leftovers::end_leftovers;
pub use terminal::{MOST_PER_READ, Terminal, TerminalReader, TerminalWriter};
pub use user::User;
