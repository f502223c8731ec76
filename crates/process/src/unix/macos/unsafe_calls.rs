#![allow(unsafe_code, reason = "these calls have no safe form")]
//! The unsafe calls of macOS: its table of processes, kqueue, holes in files, and resets in a child.

use std::{
    fs::File,
    io,
    mem::{MaybeUninit, size_of},
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
};

use rustix::event::kqueue::{Event, kevent, kqueue};

/// The most processes that are listed.
const MOST_PROCESSES: usize = 65_536;
/// Zombies are shown, too.
const ALSO_ZOMBIES: u64 = 1;

/// Resets every signal to its default, since a daemon may have been started with some ignored.
pub(crate) fn default_signals() {
    for number in 1..32 {
        // SAFETY: the default handler runs no code of ours. The kernel refuses some numbers, which
        // have no other handler.
        let _ = unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Makes the descriptor with this number close at the next `exec`. An error if no descriptor has it.
pub(super) fn close_on_exec(number: i32) -> io::Result<()> {
    // SAFETY: it only sets a flag.
    let done = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The ids of all processes.
pub(super) fn list() -> Vec<u32> {
    let mut pids = vec![0_u32; MOST_PROCESSES];
    let size = i32::try_from(pids.len() * size_of::<u32>()).unwrap_or(i32::MAX);
    // SAFETY: the buffer has the size that is given.
    let found = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(found).unwrap_or(0));
    pids
}

/// The entry of a process.
pub(super) fn table(pid: u32) -> io::Result<libc::proc_bsdinfo> {
    about(pid, libc::PROC_PIDTBSDINFO, ALSO_ZOMBIES)
}

/// The working directory of a process.
pub(super) fn directory(pid: u32) -> io::Result<Vec<u8>> {
    let paths: libc::proc_vnodepathinfo = about(pid, libc::PROC_PIDVNODEPATHINFO, 0)?;
    let path = paths.pvi_cdir.vip_path.as_flattened();
    Ok(path.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect())
}

/// One of the kernel's structures of plain numbers about a process.
fn about<T>(pid: u32, flavour: i32, argument: u64) -> io::Result<T> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    let size = i32::try_from(size_of::<T>()).map_err(io::Error::other)?;
    let mut place = MaybeUninit::<T>::zeroed();
    // SAFETY: the place has the size that is given.
    let got =
        unsafe { libc::proc_pidinfo(pid, flavour, argument, place.as_mut_ptr().cast(), size) };
    match got {
        // SAFETY: the kernel has filled all of it.
        got if got == size => Ok(unsafe { place.assume_init() }),
        got if got <= 0 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The arguments and the environment of a process, in the kernel's form.
pub(super) fn arguments(pid: u32) -> io::Result<Vec<u8>> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    // The most that `exec` takes.
    let mut bytes = vec![0; 1024 * 1024];
    let mut size = bytes.len();
    // SAFETY: the name has three parts, and the buffer the size that is given.
    let done = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            bytes.as_mut_ptr().cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if done != 0 {
        // The kernel has no other error for a process that has ended.
        return Err(io::ErrorKind::NotFound.into());
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// A queue of the kernel's events that is told about the wanted ones.
pub(super) fn events(wanted: &[Event]) -> io::Result<OwnedFd> {
    let queue = kqueue()?;
    rustix::io::ioctl_fioclex(&queue)?;
    let mut none: [Event; 0] = [];
    // SAFETY: the events are about processes and signals, and about no descriptor.
    let _none = unsafe { kevent(&queue, wanted, &mut none[..], None) }?;
    Ok(queue)
}

/// Takes all events that have come.
pub(super) fn take_events(queue: impl AsFd) {
    let mut came = Vec::with_capacity(8);
    let at_once = Some(std::time::Duration::ZERO);
    // SAFETY: nothing is asked for.
    let _ = unsafe { kevent(queue, &[], rustix::buffer::spare_capacity(&mut came), at_once) };
}

/// Frees a part of a file. Where the file system cannot, the part stays until the file is closed.
pub(crate) fn punch_hole(file: &File, from: u64, length: u64) -> io::Result<()> {
    let number = |it: u64| i64::try_from(it).map_err(io::Error::other);
    let hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: number(from)?,
        fp_length: number(length)?,
    };
    // SAFETY: the call reads the structure.
    let _done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PUNCHHOLE, &raw const hole) };
    // File systems differ in what they refuse: other blocks than 4 KiB, a part beyond the end, holes at all. Nobody
    // reads the part again, so that a refusal costs space on the disk alone.
    Ok(())
}
