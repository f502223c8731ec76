#![allow(unsafe_code, reason = "fork and what belongs to it have no safe form")]
//! The few calls that the compiler cannot vouch for: those of the supervisor and its children, what a
//! child of the daemon does before it is a program, whose files a thread may use, the runtime's watch
//! over a descriptor, and what the C library does with freed memory.

use std::{io, os::fd::OwnedFd};

use nix::unistd::{ForkResult, fork};
use tokio::io::{Interest, unix::AsyncFd};

/// The first descriptor that is neither stdin, stdout nor stderr.
const FIRST: libc::c_uint = 3;

/// Blocks of at least this size, in bytes, are mapped one by one and go back to the machine when freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1024 * 1024;

/// A pool gives back its last free block once that has this size, in bytes.
#[cfg(target_env = "gnu")]
const SPARE: libc::c_int = 2 * 1024 * 1024;

/// Forks: `None` in the child, its process id in the parent. The child may go on as if nothing had
/// happened only because the supervisor has one thread: nobody else can hold a lock.
pub(crate) fn fork_single_threaded() -> io::Result<Option<u32>> {
    // SAFETY: the supervisor never starts a thread, so the child is a whole process.
    match unsafe { fork() }? {
        ForkResult::Child => Ok(None),
        ForkResult::Parent { child } => Ok(Some(child.as_raw().unsigned_abs())),
    }
}

/// Sets every signal back to what it does by default; a daemon may have been started with some ignored.
pub(crate) fn default_signals() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: the default handler runs no code of ours. For some numbers it is refused: they
        // cannot be other than they are.
        let _ = unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Makes every descriptor but the first three close at the next `exec`, whoever left them open.
pub(crate) fn close_rest_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: it only sets a flag on descriptors, and closes nothing now.
    let done = unsafe { libc::close_range(FIRST, libc::c_uint::MAX, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends a forked child at once, without running what its parent had registered for its own end.
pub(crate) fn exit_child(code: i32) -> ! {
    // SAFETY: it does not return, and touches nothing.
    unsafe { libc::_exit(code) }
}

/// Has this done in a command's child before it is the program; when it fails, the command is not
/// started. It may ask the kernel, and nothing else: no memory, no lock.
pub(crate) fn before_program(
    command: &mut tokio::process::Command,
    act: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: what is done between fork and exec neither allocates nor locks, as is said above.
    unsafe { command.pre_exec(act) };
}

/// Whose rights the kernel looks at when this thread uses files. It says nothing when it refuses: look
/// at what it did.
pub(crate) fn set_file_user(uid: u32, gid: u32) {
    // SAFETY: they change two numbers of this thread, and no memory. The group comes first, for it
    // takes rights that go with the user.
    let _ = unsafe { (libc::setfsgid(gid), libc::setfsuid(uid)) };
}

/// Has the runtime watch a descriptor, which must not block.
pub(crate) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: what is owned stays open, and the same, until the watch is dropped together with it.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// Makes the allocator give back large blocks as soon as they are freed. Otherwise the size up to which
/// it keeps blocks grows with the blocks freed, up to 64 MiB for each pool. C libraries other than
/// glibc have no such setting.
pub(crate) fn keep_no_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the calls set two numbers, under the allocator's own lock.
    let _ = unsafe {
        (libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE), libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE))
    };
}

/// Gives back all whole free pages in the allocator's pools.
pub(crate) fn trim_pools() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes the lock of each pool, and touches only free memory.
    let _ = unsafe { libc::malloc_trim(0) };
}
