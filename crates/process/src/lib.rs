//! Processes on this machine: terminals and commands run for users, and no orphans.
//!
//! A daemon starts one small helper, the *supervisor*, and asks it over a socket pair to start
//! processes. All descendants of these processes stay below the supervisor, even daemonised ones.
//! When the daemon is gone, however it ended, the supervisor ends them and then itself; or it holds
//! them for a while, and the next daemon takes it over with all of them.
//!
//! - [`Supervisor`]: the daemon's side: starts a [`Command`] as a [`Child`], stops it with all its
//!   descendants through a [`Handle`]
//! - [`supervisor`]: the helper's side, which the binary calls before it has a thread or a runtime
//! - [`Keep`]: how sessions outlive the daemon; [`Journal`]: what is read and not stored outlives it
//! - [`Terminal`]: the master of a child's terminal: read, write, resize, foreground process
//! - [`User`], [`as_user`], [`start_as`]: other users, to run commands or access files as
//! - [`clean_environment`]: the part of the daemon's environment that a child gets
//! - [`Adopted`]: a process that somebody else started: watched, signalled, and never mistaken for
//!   another one
//! - [`listening_ports`]: the TCP ports that processes listen on
//! - [`end_leftovers`]: ends the leftovers of an earlier daemon and its supervisor
//! - [`give_back_memory`]: returns memory to the machine that this process no longer uses
//! - [`ProcessError`]: the errors of this crate
//!
//! Linux has sub-reapers, pidfds, `/proc` and control groups (version 2, and the version 1 `pids`
//! controller beside it). Without a writable control group there are two restrictions. A process that
//! cleared its environment, left its session and lost its parents ends only with the daemon. And a
//! limit on processes counts those of the user instead of the session's, and does not apply to root.
//!
//! macOS has none of these. The module `macos` says what takes their place, and what is lacking. The
//! two modules have the same names in them.
//!
//! Windows has the processes of model engines alone, under the same names, in the module `windows`: no
//! terminals, no other users, no supervisor.

mod command;
mod error;
mod signal;

#[cfg(unix)]
mod adopted;
#[cfg(unix)]
mod as_user;
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod environment;
#[cfg(unix)]
mod failure;
#[cfg(unix)]
mod journal;
#[cfg(unix)]
mod leftovers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod messages;
#[cfg(unix)]
mod signal_numbers;
#[cfg(unix)]
pub mod supervisor;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod unsafe_calls;
#[cfg(unix)]
mod user;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(unix)]
use system::{cgroup, channel, credentials, kernel, processes};
#[cfg(windows)]
use windows as system;
#[cfg(windows)]
use windows::user;

#[cfg(unix)]
pub use adopted::Adopted;
#[cfg(unix)]
pub use as_user::{as_user, start_as};
#[cfg(unix)]
pub use client::{
    Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle, HeldProcess, Keep, Limits,
    Supervisor, TakenOver,
};
pub use command::{Command, MAX_COMMAND, Stdio};
#[cfg(unix)]
pub use environment::clean_environment;
pub use error::ProcessError;
#[cfg(unix)]
pub use journal::{Journal, Note};
#[cfg(unix)]
pub use leftovers::end_leftovers;
pub use signal::{Exit, Signal};
pub use system::{give_back_memory, listening_ports};
#[cfg(unix)]
pub use terminal::{MOST_PER_READ, Terminal, TerminalReader, TerminalWriter};
pub use user::User;
#[cfg(windows)]
pub use windows::{
    Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle, Limits, Supervisor,
    clean_environment, supervisor,
};

/// The variable that marks a process and its descendants with their session.
pub const SESSION_MARKER: &str = "WARREN_SESSION";
