//! The user of this process, as no other is become, and the part of its environment that a command gets. That is an
//! allow-list, so that new secrets stay inside.

use std::{ffi::OsString, path::PathBuf};

use crate::error::ProcessError;

/// The variables that are passed on: without them programs find neither the system nor their own files. Windows does not
/// distinguish capitals in their names.
const PASSED_ON: [&str; 20] = [
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

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

/// The whole environment of a command: what programs need to find the system, their files and other programs, and then
/// `extra`, which overrides it. Nothing else of this process's environment is passed on, above all no secret.
#[must_use]
pub fn clean_environment(extra: &[(String, String)], _user: &User) -> Vec<(OsString, OsString)> {
    clean(std::env::vars_os(), extra)
}

fn clean(
    own: impl Iterator<Item = (OsString, OsString)>,
    extra: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let is = |name: &OsString, known: &str| {
        name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(known))
    };
    let passes = |name: &OsString| {
        let is_overridden = extra.iter().any(|(other, _)| is(name, other));
        !is_overridden && PASSED_ON.iter().any(|known| is(name, known))
    };
    let passed = own.filter(|(name, _)| passes(name));
    passed.chain(extra.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_variables_are_passed_on_and_extra_ones_win() {
        let own =
            [("Path", "C:\\a"), ("WARREN_ADMIN_TOKEN", "secret"), ("SystemRoot", "C:\\Windows")];
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let cleaned = clean(own.into_iter(), &[("PATH".into(), "C:\\b".into())]);
        let expected = [("SystemRoot", "C:\\Windows"), ("PATH", "C:\\b")];
        assert_eq!(cleaned, expected.map(|(name, value)| (name.into(), value.into())));
    }
}
