#![allow(unsafe_code, reason = "fork and what belongs to it have no safe form")]
//! The few unsafe calls that all systems have: those of the supervisor and its children, those of a
//! child of the daemon before its exec, the registration of a descriptor with the runtime, and memory
//! that is shared with the supervisor.

use std::{io, os::fd::OwnedFd};

use nix::unistd::{ForkResult, fork};
use tokio::io::{Interest, unix::AsyncFd};

/// Forks. Returns `None` in the child, and the child's process id in the parent. The child may
/// allocate and lock as before, because the supervisor has one thread, so no other thread can hold
/// a lock at the fork.
pub(crate) fn fork_single_threaded() -> io::Result<Option<u32>> {
    // SAFETY: the supervisor never starts a thread, so the child is a whole process.
    match unsafe { fork() }? {
        ForkResult::Child => Ok(None),
        ForkResult::Parent { child } => Ok(Some(child.as_raw().unsigned_abs())),
    }
}

/// Ends a forked child at once, without the exit handlers of its parent.
pub(crate) fn exit_child(code: i32) -> ! {
    // SAFETY: it does not return, and touches nothing.
    unsafe { libc::_exit(code) }
}

/// Runs `act` in a command's child before the exec. If it fails, the command is not started. `act`
/// may only make system calls: no allocation, no lock.
pub(crate) fn before_program(
    command: &mut tokio::process::Command,
    act: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: between fork and exec `act` neither allocates nor locks, as required above.
    unsafe { command.pre_exec(act) };
}

/// Registers a non-blocking descriptor with the runtime.
pub(crate) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, so it stays open until it is dropped together with the watch.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// Memory that is shared with another process. That one uses it only when this one is dead.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    start: std::ptr::NonNull<u8>,
    length: usize,
}

// SAFETY: the memory stays mapped as long as this value lives, whichever thread has it.
unsafe impl Send for SharedMemory {}
// SAFETY: numbers are used as atomics, and `with` has one caller at a time.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps the first `length` bytes of a file, which must have them as long as it is mapped.
    pub(crate) fn map(file: std::os::fd::BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let file = std::os::fd::AsRawFd::as_raw_fd(&file);
        // SAFETY: the kernel chooses a place that nothing else uses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = std::ptr::NonNull::new(start.cast());
        start.map(|start| Self { start, length }).ok_or(io::ErrorKind::OutOfMemory.into())
    }

    /// The number at this index, of eight bytes each.
    pub(crate) fn word(&self, index: usize) -> &std::sync::atomic::AtomicU64 {
        assert!((index + 1) * 8 <= self.length, "a number beyond the memory");
        // SAFETY: the place is within the memory, aligned, and always used as an atomic.
        unsafe { self.start.cast::<std::sync::atomic::AtomicU64>().add(index).as_ref() }
    }

    /// Lends a part of the memory behind the numbers. Only a journal's reader calls this, and there is
    /// one for each journal.
    pub(crate) fn with<T>(
        &self,
        from: usize,
        length: usize,
        act: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let is_within = from.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(is_within && from >= 4096, "a part beyond the memory");
        // SAFETY: the part is within the memory and beside the numbers, and has this one user.
        act(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), length) })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the memory any more.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
