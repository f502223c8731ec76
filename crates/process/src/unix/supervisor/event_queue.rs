//! Events that the daemon has not read yet.
//!
//! The queue is bounded, because each request has one answer and each child one end: when too many
//! events wait, no more requests are read, so no more answers or children can follow.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::unix::channel;

/// While this many events wait, no more requests are read.
pub(super) const MOST_WAITING: usize = 1024;
/// How long to wait when the kernel takes no more descriptors, even though the socket has room.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct EventQueue {
    waiting: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    retry_at: Option<Instant>,
}

impl EventQueue {
    pub(super) fn push(&mut self, packet: Vec<u8>, with: Vec<OwnedFd>) {
        self.waiting.push_back((packet, with));
    }

    /// Sends as many events as possible now. An error means that the other end is gone.
    pub(super) fn flush(&mut self, socket: impl AsFd) -> io::Result<()> {
        self.retry_at = None;
        while let Some((packet, with)) = self.waiting.front() {
            match channel::send(socket.as_fd(), packet, with) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_passing(&error) => {
                    self.retry_at = Some(Instant::now() + RETRY);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING
    }

    pub(super) fn is_blocked(&self) -> bool {
        // While the kernel takes no descriptors the socket is writable, and waiting for that would spin.
        !self.waiting.is_empty() && self.retry_at.is_none()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

/// Whether too many descriptors are in flight or memory is short: both are temporary.
fn is_passing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_does_not_read_gets_all_events_later_in_order() {
        let (ours, theirs) = channel::pair().unwrap();
        let mut outgoing = EventQueue::default();
        let mut number = 0_u32;
        while !outgoing.is_full() {
            outgoing.push(number.to_le_bytes().to_vec(), Vec::new());
            outgoing.flush(&ours).unwrap();
            number += 1;
        }
        assert!(outgoing.is_blocked());
        let mut buffer = [0; 4];
        for expected in 0..number {
            let length = channel::receive(&theirs, &mut buffer).unwrap().0;
            assert_eq!((length, u32::from_le_bytes(buffer)), (4, expected));
            outgoing.flush(&ours).unwrap();
        }
        assert!(!outgoing.is_blocked() && !outgoing.is_full());
    }

    #[test]
    fn an_end_that_is_gone_is_an_error() {
        let (ours, theirs) = channel::pair().unwrap();
        drop(theirs);
        let mut outgoing = EventQueue::default();
        outgoing.push(vec![1], Vec::new());
        assert!(outgoing.flush(&ours).is_err());
    }
}
