//! Differences between systems.

/// Whether this is macOS.
pub(crate) const IS_MACOS: bool = cfg!(target_os = "macos");
