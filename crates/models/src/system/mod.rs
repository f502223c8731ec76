//! Differences between systems: reads at a place of a file, files that are opened without following links, and directories
//! that are written through or change places.
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

/// Whether any text may be the name of a file.
pub(crate) const TAKES_ALL_NAMES: bool = cfg!(unix);

pub(crate) use own::{FileExt, open_regular, swap, sync_directory};
