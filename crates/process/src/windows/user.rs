//! The user of this process. No other is become.

use std::path::PathBuf;

use crate::error::ProcessError;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The home directory.
    pub home: PathBuf,
}

impl User {
    /// The user that this process runs as.
    ///
    /// # Errors
    /// [`ProcessError::UnknownUser`] when the environment does not name one.
    pub fn current() -> Result<Self, ProcessError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let unknown = || ProcessError::UnknownUser { name: "USERPROFILE".to_owned() };
        let home = variable("USERPROFILE").ok_or_else(unknown)?;
        let name = variable("USERNAME").unwrap_or_default();
        Ok(Self { name: name.to_string_lossy().into_owned(), home: home.into() })
    }

    /// Its size in a packet, in bytes: it is in none.
    pub(crate) fn size(&self) -> usize {
        0
    }
}
