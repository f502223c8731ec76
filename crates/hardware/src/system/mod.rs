//! Differences between systems: how a program is started and ended, and the parts of the machine that the system itself describes.
//!
//! The modules have the same names in them; `unix` is for Linux and macOS.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as own;
#[cfg(windows)]
use windows as own;

pub(crate) use own::{alone, kill_all, power, report};

/// The parts of a machine whose system describes them by calls, not by files and tools.
#[derive(Debug, Clone)]
pub(crate) struct MachineReport {
    /// The maker of its processor, such as `GenuineIntel`.
    pub(crate) vendor: String,
    /// The name of its processor.
    pub(crate) processor: String,
    /// The number of its processors.
    pub(crate) cores: u32,
    /// In bytes.
    pub(crate) memory: u64,
}
