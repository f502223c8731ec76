//! The system's calls on macOS, under the names of the module `linux`, and what it lacks.
//!
//! - `processes`: the kernel's table of processes instead of `/proc`; `ports`: `lsof`
//! - `cgroup`: there are no control groups. A session's processes are those of its kernel session, their
//!   descendants, and those with its marker
//! - `channel`: packets with their length before them, in a stream
//! - `credentials`: nobody else is become; the workspace runs as the daemon's own user
//! - `kernel`: kqueue instead of signalfds and pidfds; a file without a name instead of memory
//!
//! It lacks two things. There is no sub-reaper: a process that left its session, lost its parents and
//! cleared its environment is not found any more. Nothing kills the sessions when the supervisor is
//! killed; the daemon ends them by their marker then.

pub(crate) mod cgroup;
pub(crate) mod channel;
pub(crate) mod credentials;
pub(crate) mod kernel;
mod ports;
pub(crate) mod processes;
mod unsafe_calls;

pub use ports::listening_ports;

/// Does nothing: the allocator returns memory to the machine by itself.
pub fn give_back_memory() {}
