//! The system's calls on Linux, most of which it alone has.
//!
//! - `processes`: `/proc`; `ports`: its tables of sockets
//! - `cgroup`: control groups; `credentials`: the rights of a thread
//! - `channel`: whole packets between the daemon and the supervisor
//! - `kernel`: sub-reapers, pidfds, signalfds, memory without a file
//! - `memory`: pools of the C library that are returned to the machine

pub(crate) mod cgroup;
pub(crate) mod channel;
pub(crate) mod credentials;
pub(crate) mod kernel;
mod memory;
mod ports;
pub(crate) mod processes;
mod unsafe_calls;

// What macOS has instead, to be tested where tests run.
#[cfg(test)]
#[expect(unreachable_pub, reason = "it is public on macOS")]
#[path = "../macos/ports.rs"]
mod ports_of_lsof;
#[cfg(test)]
#[path = "../macos/channel.rs"]
mod stream_channel;

pub use memory::give_back_memory;
pub use ports::listening_ports;
