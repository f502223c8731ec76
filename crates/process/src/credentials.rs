//! Giving up privileges: for the calling thread, and proved afterwards.
//!
//! In a process of one thread, as every freshly forked child is, that is the whole process, and it is
//! done completely. A thread of the daemon only uses files as somebody else: who is really another
//! user can be signalled and limited by that user, and with a thread goes its whole process.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use rustix::thread::{Gid, Uid};

use crate::{messages::Identity, unsafe_calls::set_file_user};

/// Becomes somebody for good. Whoever gets an error here must not go on: half of it may be done.
pub(crate) fn become_for_good(identity: &Identity) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    give_up_all(uid, gid, &groups)?;
    verify(identity)
}

/// The same in a child that a process with threads has just forked, where nothing may be allocated and
/// no lock taken: the kernel alone is asked.
pub(crate) fn become_in_child(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    give_up_all(uid, gid, groups)?;
    if is_way_back(uid.as_raw(), gid.as_raw()) { Err(not_permitted()) } else { Ok(()) }
}

/// Has this thread use files as somebody else, and nothing that only root may do. To everybody else it
/// stays whose it was. It must not start processes: they would be its real user's.
pub(crate) fn use_files_as(identity: &Identity) -> io::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    clear_ambient_capability_set()?;
    set_thread_groups(&groups)?;
    set_file_user(identity.uid, identity.gid);
    set_capabilities(None, nothing())?;
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let is = |name, number: u32| fields(&status, name).nth(3) == Some(number.to_string().as_str());
    let uses_files_as = is("Uid", identity.uid) && is("Gid", identity.gid);
    match uses_files_as && has_no_capability(&status) && has_groups(&status, identity) {
        true => Ok(()),
        false => Err(not_permitted()),
    }
}

/// Nothing is allocated here, and no lock taken.
fn give_up_all(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_thread_groups(groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(set_capabilities(None, nothing())?)
}

fn nothing() -> CapabilitySets {
    let none = CapabilitySet::empty();
    CapabilitySets { effective: none, permitted: none, inheritable: none }
}

/// What the kernel says, and whether there is a way back.
fn verify(identity: &Identity) -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let all_are = |name, number: u32| {
        let found: Vec<_> = fields(&status, name).collect();
        found.len() == 4 && found.iter().all(|field| *field == number.to_string())
    };
    let became = all_are("Uid", identity.uid) && all_are("Gid", identity.gid);
    let has_nothing_else = has_no_capability(&status) && has_groups(&status, identity);
    if became && has_nothing_else && !is_way_back(identity.uid, identity.gid) {
        return Ok(());
    }
    Err(not_permitted())
}

fn not_permitted() -> io::Error {
    io::Error::from_raw_os_error(libc::EPERM)
}

fn has_no_capability(status: &str) -> bool {
    ["CapInh", "CapPrm", "CapEff", "CapAmb"]
        .iter()
        .all(|name| fields(status, name).all(|field| field.bytes().all(|digit| digit == b'0')))
}

fn has_groups(status: &str, identity: &Identity) -> bool {
    let mut found: Vec<u32> = fields(status, "Groups").filter_map(|gid| gid.parse().ok()).collect();
    let mut wanted = identity.groups.clone();
    found.sort_unstable();
    wanted.sort_unstable();
    found == wanted
}

/// Whether root's rights can be had again.
fn is_way_back(uid: u32, gid: u32) -> bool {
    let user = uid != 0 && set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    let group = gid != 0 && set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).is_ok();
    user || group || set_thread_groups(&[Gid::ROOT]).is_ok()
}

fn fields<'a>(status: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().split_whitespace()
}
