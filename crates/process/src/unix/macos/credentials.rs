//! Other users' rights, which this system's supervisor does not take: a check with [`NOBODY_ELSE`] refuses them
//! before a process or a thread is made, and these calls refuse them again.

use std::{ffi::CStr, io};

use rustix::process::{Gid, Uid};

use crate::unix::messages::Identity;

/// Why a daemon cannot become another user on this system.
pub(crate) const NOBODY_ELSE: Option<&str> =
    Some("on this system the workspace runs as the user of the server only");

/// The groups of this process, and the user's main one.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere the list of users may be unreadable")]
pub(crate) fn groups_of(_name: &CStr, main: nix::unistd::Gid) -> nix::Result<Vec<u32>> {
    let own = rustix::process::getgroups().unwrap_or_default();
    let mut groups: Vec<u32> = own.into_iter().map(Gid::as_raw).collect();
    if !groups.contains(&main.as_raw()) {
        groups.push(main.as_raw());
    }
    Ok(groups)
}

pub(crate) fn become_for_good(_identity: &Identity) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn become_in_child(_uid: Uid, _gid: Gid, _groups: &[Gid]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn use_files_as(_identity: &Identity) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
