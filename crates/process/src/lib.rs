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
//! macOS has none of these: `unix::macos` says what takes their place, and what is lacking. Windows has
//! the processes of model engines alone, under the same names as the module `unix`, in the module
//! `windows`: no terminals, no other users, no supervisor.

mod command;
mod error;
mod signal;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use command::{Command, MAX_COMMAND, Stdio};
pub use error::ProcessError;
pub use signal::{Exit, Signal};
pub use system::{
    Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle, Limits, Supervisor, User,
    clean_environment, give_back_memory, listening_ports, supervisor,
};
#[cfg(unix)]
pub use unix::{
    Adopted, HeldProcess, Journal, Keep, MOST_PER_READ, Note, TakenOver, Terminal, TerminalReader,
    TerminalWriter, as_user, end_leftovers, start_as,
};

/// The variable that marks a process and its descendants with their session.
pub const SESSION_MARKER: &str = "WARREN_SESSION";
