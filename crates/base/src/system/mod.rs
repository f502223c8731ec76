//! Differences between systems in files and names: who may read what, which file is which, and what a machine calls itself.
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

pub use own::{
    Rights, file_id, file_limits, free_space, host_name, is_administrator, mode, raise_file_limit,
    stranger, times, user_home,
};

/// How many files and connections a process may have open; `None`: as many as it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// As many now.
    pub current: Option<u64>,
    /// As many as it may allow itself.
    pub maximum: Option<u64>,
}

/// Whether a file that SQLite has open stays where it is: nobody can move, remove or replace it.
pub const KEEPS_DATABASES: bool = cfg!(windows);

/// How another user could have written a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// Another user than root and the user of this process owns it: the user with this id.
    Owns(u32),
    /// Others than the owner may write it. Its mode, such as 0o666.
    Writes(u32),
}
