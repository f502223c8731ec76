//! Events that the daemon has not taken yet.
//!
//! Bounded because each request has one answer and each child one end: when too many wait, no more
//! requests are taken, and so no more answers or children come into being.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::channel;

/// How many may wait before no more requests are taken.
pub(super) const MOST_WAITING: usize = 1024;
/// How long to wait when the kernel takes no more descriptors, whatever room the socket has.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    retry_at: Option<Instant>,
}

impl Outgoing {
    pub(super) fn push(&mut self, packet: Vec<u8>, with: Vec<OwnedFd>) {
        self.waiting.push_back((packet, with));
    }

    /// Sends what can be sent now. An error: the other end is gone.
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

    /// Something waits for the socket to have room.
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty() && self.retry_at.is_none()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

/// Too many descriptors are under way, or memory is short: it passes.
fn is_passing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_read_blocks_nobody_and_gets_all_in_order_later() {
        let (ours, theirs) = channel::pair().unwrap();
        let mut outgoing = Outgoing::default();
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
        let mut outgoing = Outgoing::default();
        outgoing.push(vec![1], Vec::new());
        assert!(outgoing.flush(&ours).is_err());
    }
}
