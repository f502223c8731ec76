//! Users of this machine, and the check that processes may run as them.

use std::{ffi::CString, path::PathBuf};

use nix::unistd;

use crate::{
    error::ProcessError,
    unix::credentials::{NOBODY_ELSE, groups_of},
};

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The user id.
    pub uid: u32,
    /// The id of the main group.
    pub gid: u32,
    /// All groups, including the main one.
    pub groups: Vec<u32>,
    /// The home directory.
    pub home: PathBuf,
    /// The shell.
    pub shell: PathBuf,
}

impl User {
    /// Finds a user by name. Blocks: it may ask a directory server.
    ///
    /// # Errors
    /// [`ProcessError::UnknownUser`] when there is no such user; [`ProcessError::Start`] when the
    /// system's list of users cannot be read.
    pub fn lookup(name: &str) -> Result<Self, ProcessError> {
        let unknown = || ProcessError::UnknownUser { name: name.to_owned() };
        if name.is_empty() || name.contains('\0') {
            return Err(unknown());
        }
        unistd::User::from_name(name).map_err(unreadable)?.map_or_else(|| Err(unknown()), Self::new)
    }

    /// The user that this process runs as.
    ///
    /// # Errors
    /// As for [`User::lookup`].
    pub fn current() -> Result<Self, ProcessError> {
        let uid = unistd::geteuid();
        let unknown = || ProcessError::UnknownUser { name: uid.to_string() };
        unistd::User::from_uid(uid).map_err(unreadable)?.map_or_else(|| Err(unknown()), Self::new)
    }

    /// Whether this process runs as this user.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.uid == unistd::geteuid().as_raw()
    }

    /// Its size in a packet, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.groups.len() * 4
    }

    /// Refuses a user that this process must not or cannot become.
    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        let refuse = |reason| Err(ProcessError::MayNotBecome { name: self.name.clone(), reason });
        match () {
            () if self.is_current() => Ok(()),
            () if let Some(reason) = NOBODY_ELSE => refuse(reason),
            () if self.uid == 0 => refuse("it is root"),
            () if !unistd::geteuid().is_root() => {
                refuse("only a daemon of root can become another user")
            }
            () => Ok(()),
        }
    }

    fn new(user: unistd::User) -> Result<Self, ProcessError> {
        let name = CString::new(user.name.clone())
            .map_err(|_| ProcessError::UnknownUser { name: user.name.clone() })?;
        let groups = groups_of(&name, user.gid).map_err(unreadable)?;
        Ok(Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups,
            home: user.dir,
            shell: user.shell,
        })
    }
}

fn unreadable(error: nix::Error) -> ProcessError {
    ProcessError::Start { step: "reading the list of users", source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_user_is_found_and_may_be_run_as() {
        let user = User::current().unwrap();
        assert!(user.is_current());
        assert!(user.groups.contains(&user.gid));
        assert!(user.check().is_ok());
        assert_eq!(User::lookup(&user.name).unwrap(), user);
    }

    #[test]
    fn an_unknown_user_is_an_error_with_the_name() {
        for name in ["nobody-has-this-name", "", "a\0b"] {
            let missing = User::lookup(name);
            assert!(
                matches!(missing, Err(ProcessError::UnknownUser { name: unknown }) if unknown == name)
            );
        }
    }

    #[test]
    fn users_that_this_process_cannot_or_must_not_become_are_refused() {
        let mut user = User::current().unwrap();
        if user.uid == 0 {
            user.uid = 12_345;
            assert!(user.check().is_ok(), "root may become any other");
        } else {
            user.uid = 0;
            assert!(matches!(user.check(), Err(ProcessError::MayNotBecome { .. })));
            user.uid = 12_345;
            assert!(matches!(user.check(), Err(ProcessError::MayNotBecome { .. })));
        }
    }
}
