//! Differences between systems: where files are, and the signals that end a server.
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

pub(crate) use own::{
    EndSignals, HangUpSignal, base_directory, give_all, machine_configuration, owner,
};

/// The directory for a user's data, below the home directory, unless `XDG_DATA_HOME` names another.
pub(crate) const DATA_HOME: &str =
    if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
