#![allow(unsafe_code, reason = "these calls have no safe form")]
//! The unsafe calls of Linux: those of the supervisor and its children, the change of a thread's access
//! to files, and the settings of the allocator.

use std::io;

/// The first descriptor that is neither stdin, stdout nor stderr.
const FIRST: libc::c_uint = 3;

/// Blocks of at least this size, in bytes, are mapped one by one and returned to the machine when
/// freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1024 * 1024;

/// A pool returns its last free block once that block has this size, in bytes.
#[cfg(target_env = "gnu")]
const SPARE: libc::c_int = 2 * 1024 * 1024;

/// Resets every signal to its default, since a daemon may have been started with some ignored.
pub(crate) fn default_signals() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: the default handler runs no code of ours. The kernel refuses some numbers, which
        // have no other handler.
        let _ = unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Makes every descriptor except the first three close at the next `exec`.
pub(crate) fn close_rest_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // The C library has a function for it only since glibc 2.34.
    // SAFETY: it only sets a flag on descriptors, and closes nothing now.
    let done = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the user whose rights count when this thread accesses files. The calls report no failure,
/// so the caller must check the result.
pub(crate) fn set_file_user(uid: u32, gid: u32) {
    // SAFETY: they change two numbers of this thread, and no memory. The group comes first: it
    // needs rights that are lost with the user.
    let _ = unsafe { (libc::setfsgid(gid), libc::setfsuid(uid)) };
}

/// Makes the allocator return large blocks as soon as they are freed. Otherwise the size up to
/// which it keeps blocks grows with the freed blocks, up to 64 MiB for each pool. C libraries other
/// than glibc have no such setting.
pub(crate) fn keep_no_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the calls set two numbers, under the allocator's own lock.
    let _ = unsafe {
        (libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE), libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE))
    };
}

/// Returns all whole free pages in the allocator's pools to the machine.
pub(crate) fn trim_pools() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes the lock of each pool, and touches only free memory.
    let _ = unsafe { libc::malloc_trim(0) };
}
