//! Giving up privileges: completely, for the calling thread, and proved afterwards.
//!
//! In a process of one thread, as every freshly forked child is, that is the whole process.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use rustix::thread::{Gid, Uid};

use crate::messages::Identity;

/// Becomes somebody for good. Whoever gets an error here must not go on: half of it may be done.
pub(crate) fn become_for_good(identity: &Identity) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    clear_ambient_capability_set()?;
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_capabilities(None, nothing())?;
    verify(identity)
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
    let no_capability = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
        .iter()
        .all(|name| fields(&status, name).all(|field| field.bytes().all(|digit| digit == b'0')));
    let became = all_are("Uid", identity.uid) && all_are("Gid", identity.gid);
    if became && no_capability && has_groups(&status, identity) && !can_return(identity) {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::EPERM))
}

fn has_groups(status: &str, identity: &Identity) -> bool {
    let mut found: Vec<u32> = fields(status, "Groups").filter_map(|gid| gid.parse().ok()).collect();
    let mut wanted = identity.groups.clone();
    found.sort_unstable();
    wanted.sort_unstable();
    found == wanted
}

fn can_return(identity: &Identity) -> bool {
    let user = identity.uid != 0 && set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    let group = identity.gid != 0 && set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).is_ok();
    user || group || set_thread_groups(&[Gid::ROOT]).is_ok()
}

fn fields<'a>(status: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().split_whitespace()
}
