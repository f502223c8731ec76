//! Processes on Windows: model engines. There are no terminals, no other users, and no supervisor.
//!
//! - `job`: a job object for each command. Whatever the command starts is in it, and Windows ends all of them when
//!   the last handle on it is closed, however this process ended
//! - `supervisor`, `child`: the names of the module `unix::client`
//! - `environment`: this process's user, and the part of its environment that a command gets
//! - `ports`: `netstat` instead of `/proc`
//!
//! What a command starts before it is in its job, in the first moment, would outlive it. Windows asks no program
//! without a window to end: a command is ended at once.

mod child;
mod environment;
mod job;
mod ports;
pub mod supervisor;

pub use child::{Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle};
pub use environment::{User, clean_environment};
pub use ports::listening_ports;
pub use supervisor::{Limits, Supervisor};

/// Does nothing: the allocator returns memory to the machine by itself.
pub fn give_back_memory() {}
