//! Differences between systems: the terminal, what the system tells this process, and other programs.
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
    Notices, QuietTerminal, is_input_piped, is_writable, kill, may_be_run, opener, output_width,
    owner, prepare_console, take_interrupts, terminal_input, terminal_output, user_id,
};

/// Whether this is macOS.
pub(crate) const IS_MACOS: bool = cfg!(target_os = "macos");

/// Whether this is Windows.
pub(crate) const IS_WINDOWS: bool = cfg!(windows);

/// A notice of the system to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Ctrl-C was typed.
    Interrupt,
    /// The process has to end.
    End,
    /// The terminal has another size.
    Resized,
}
