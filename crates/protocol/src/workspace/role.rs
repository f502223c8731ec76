//! The roles of clients.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of a client; each role includes the ones before it.
///
/// | Role | May |
/// | --- | --- |
/// | read | look: lists, attach, history, files and git of projects, watches, teams and inboxes, the cluster |
/// | write | work: make, type into, rename and end sessions; write files; answer agents; run teams |
/// | admin | reach beyond projects: directories of the host, processes of others, other users; make, change and delete projects; change the cluster |
///
/// Changing projects needs the role admin because a project decides on directories, users and
/// environments. A terminal runs as the daemon's user in any directory, so the role write can reach
/// all of that user's files. Reading and writing files of projects over this protocol stays within
/// the projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May look.
    Read,
    /// May work.
    Write,
    /// May do everything.
    Admin,
}

impl Role {
    /// All roles, the least powerful first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Its name, with which a key's scope ends: `workspace:read`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_may_do_what_those_before_it_may() {
        assert!(Role::Read < Role::Write && Role::Write < Role::Admin);
        assert_eq!(Role::ALL.map(Role::as_str), ["read", "write", "admin"]);
    }
}
