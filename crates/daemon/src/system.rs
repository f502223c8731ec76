//! Differences between systems.

/// Where a user's data is, below the home directory, unless `XDG_DATA_HOME` says otherwise.
pub(crate) const DATA_HOME: &str =
    if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
