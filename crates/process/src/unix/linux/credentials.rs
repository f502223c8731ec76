//! Gives up privileges of the calling thread, and verifies the result.
//!
//! A freshly forked child has one thread, so there the change covers the whole process. A thread of
//! the daemon changes only its access to files: if the thread really became another user's, that
//! user could signal and limit it, and the whole process with it.

use std::{ffi::CStr, io};

use nix::unistd;
use procfs_core::{FromRead, process::Status};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use rustix::thread::{Gid, Uid};

use super::unsafe_calls::set_file_user;
use crate::unix::messages::Identity;

/// Why a daemon cannot become another user on this system; `None`: one of root can.
pub(crate) const NOBODY_ELSE: Option<&str> = None;

/// All groups of a user, including the main one.
pub(crate) fn groups_of(name: &CStr, main: unistd::Gid) -> nix::Result<Vec<u32>> {
    let groups = unistd::getgrouplist(name, main)?;
    Ok(groups.into_iter().map(unistd::Gid::as_raw).collect())
}

/// Becomes another user for good. After an error the process must end, since the change may be half
/// done.
pub(crate) fn become_for_good(identity: &Identity) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    give_up_all(uid, gid, &groups)?;
    verify(identity)
}

/// The same in a child just forked by a process with threads. Nothing may be allocated or locked
/// there, since another thread may have held the lock at the fork. So only system calls are made.
pub(crate) fn become_in_child(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    give_up_all(uid, gid, groups)?;
    if is_way_back(uid.as_raw(), gid.as_raw()) { Err(not_permitted()) } else { Ok(()) }
}

/// Makes this thread access files as another user, without any capability. In all other respects
/// the thread keeps its user. It must not start processes: they would belong to the real user.
pub(crate) fn use_files_as(identity: &Identity) -> io::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    clear_ambient_capability_set()?;
    set_thread_groups(&groups)?;
    set_file_user(identity.uid, identity.gid);
    set_capabilities(None, nothing())?;
    let status = status()?;
    let uses_files_as = (status.fuid, status.fgid) == (identity.uid, identity.gid);
    match uses_files_as && has_no_capability(&status) && has_groups(&status, identity) {
        true => Ok(()),
        false => Err(not_permitted()),
    }
}

/// Gives up all other rights. It allocates and locks nothing; see [`become_in_child`].
fn give_up_all(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_thread_groups(groups)?;
    // Before the user: without root's rights the group could not be set any more.
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(set_capabilities(None, nothing())?)
}

fn nothing() -> CapabilitySets {
    let none = CapabilitySet::empty();
    CapabilitySets { effective: none, permitted: none, inheritable: none }
}

/// The status of this thread in `/proc`.
fn status() -> io::Result<Status> {
    Status::from_file("/proc/thread-self/status").map_err(io::Error::other)
}

/// Checks the result in `/proc`, and that root's rights cannot be regained.
fn verify(identity: &Identity) -> io::Result<()> {
    let status = status()?;
    let uids = [status.ruid, status.euid, status.suid, status.fuid];
    let gids = [status.rgid, status.egid, status.sgid, status.fgid];
    let became = uids == [identity.uid; 4] && gids == [identity.gid; 4];
    let has_nothing_else = has_no_capability(&status) && has_groups(&status, identity);
    if became && has_nothing_else && !is_way_back(identity.uid, identity.gid) {
        return Ok(());
    }
    Err(not_permitted())
}

fn not_permitted() -> io::Error {
    Errno::PERM.into()
}

fn has_no_capability(status: &Status) -> bool {
    let ambient = status.capamb.unwrap_or(0);
    status.capinh | status.capprm | status.capeff | ambient == 0
}

fn has_groups(status: &Status, identity: &Identity) -> bool {
    let mut found = status.groups.clone();
    let mut wanted = identity.groups.clone();
    found.sort_unstable();
    wanted.sort_unstable();
    found == wanted
}

/// Whether root's rights can be regained.
fn is_way_back(uid: u32, gid: u32) -> bool {
    let user = uid != 0 && set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    let group = gid != 0 && set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).is_ok();
    user || group || set_thread_groups(&[Gid::ROOT]).is_ok()
}
