//! Bounds the memory of long answers. A long answer is made only when the client's outbox has room
//! and enough memory is free.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use protocol::workspace::limits::CHUNK_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::{Frame, FrameSource, Outbox, OutboxClosed};

use crate::policy::Memory;

/// The memory for long answers of all connections together, in KiB.
pub(crate) const IN_ALL: usize = 256 * 1024;
/// The most long answers of one connection at the same time.
const EACH: usize = 2;
/// An answer of at most this many bytes needs no share.
const SHORT: usize = 64 * 1024;
/// The number of copies of an answer while it is made: as read, as text, as a message.
const MADE_OF: usize = 3;

/// The long answers of one connection.
#[derive(Clone)]
pub(crate) struct Shares {
    connection: Arc<Semaphore>,
    all: Arc<Semaphore>,
    /// The number of answers that are complete but not written yet.
    unread: Arc<AtomicUsize>,
}

/// The memory of one answer. It is queued behind the answer, and given back once the answer was
/// written.
pub(crate) struct Share {
    _connection: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
    unread: Arc<AtomicUsize>,
    is_made: bool,
}

impl Shares {
    pub(crate) fn new(all: &Arc<Semaphore>) -> Self {
        let connection = Arc::new(Semaphore::new(EACH));
        Self { connection, all: Arc::clone(all), unread: Arc::default() }
    }

    /// Waits until the outbox has room and the memory for an answer is free. A short answer needs
    /// no share: `None`.
    pub(crate) async fn of(
        &self,
        memory: Memory,
        outbox: &Outbox,
    ) -> Result<Option<Share>, OutboxClosed> {
        let Some(kib) = kib(memory) else { return Ok(None) };
        outbox.room().await?;
        // The connection's own permit goes first. So a client that has used up its share occupies
        // no memory that others wait for.
        let own = Arc::clone(&self.connection).acquire_owned().await.map_err(|_| OutboxClosed)?;
        let all = Arc::clone(&self.all).acquire_many_owned(kib).await.map_err(|_| OutboxClosed)?;
        Ok(Some(Share { _connection: own, all, unread: Arc::clone(&self.unread), is_made: false }))
    }

    /// Whether this connection has unread answers while the free memory is too little for the
    /// longest answer.
    pub(crate) fn is_wanted(&self) -> bool {
        let most = MADE_OF * CHUNK_MAX / 1024;
        self.unread.load(Ordering::Relaxed) > 0 && self.all.available_permits() < most
    }
}

impl Share {
    /// Notes that the answer is complete. From now on it takes only memory for its length, in bytes.
    pub(crate) fn made(&mut self, length: usize) {
        if !std::mem::replace(&mut self.is_made, true) {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
        let more = self.all.num_permits().saturating_sub(length.div_ceil(1024));
        drop(self.all.split(more));
    }
}

/// Writes nothing. It is dropped when its turn comes, which is after everything queued before it.
impl FrameSource for Share {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        None
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.is_made {
            self.unread.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The memory that an answer takes while it is made, in KiB; `None` for a short answer.
fn kib(memory: Memory) -> Option<u32> {
    let Memory::Long(length) = memory else { return None };
    let kib = MADE_OF * length.min(CHUNK_MAX).div_ceil(1024);
    (length > SHORT).then(|| u32::try_from(kib).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;
    use wire::{Link, link::Role};

    use super::*;

    const fn long(kib: usize) -> Memory {
        Memory::Long(kib * 1024)
    }

    fn link() -> (Link, Outbox) {
        Link::new(Box::pin(duplex(1024).0), Role::Server)
    }

    async fn taken(shares: &Shares, memory: Memory, outbox: &Outbox) -> Option<Share> {
        let share = tokio::time::timeout(std::time::Duration::from_secs(1), async {
            shares.of(memory, outbox).await.unwrap().unwrap()
        });
        share.await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_two_long_answers_and_any_number_of_short_ones() {
        let (all, (_link, outbox)) = (Arc::new(Semaphore::new(IN_ALL)), link());
        let shares = Shares::new(&all);
        let first = taken(&shares, long(100), &outbox).await.unwrap();
        let _second = taken(&shares, long(100), &outbox).await.unwrap();
        assert!(taken(&shares, long(100), &outbox).await.is_none());
        assert!(shares.of(long(1), &outbox).await.unwrap().is_none(), "none is needed");
        assert!(taken(&Shares::new(&all), long(100), &outbox).await.is_some(), "another's");
        drop(first);
        assert!(taken(&shares, long(100), &outbox).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn all_together_have_no_more_than_the_bound_and_what_is_made_only_its_length() {
        let (all, (_link, outbox)) = (Arc::new(Semaphore::new(24 * 1024)), link());
        let (one, other) = (Shares::new(&all), Shares::new(&all));
        let mut share = taken(&one, long(8 * 1024), &outbox).await.unwrap();
        assert!(taken(&other, long(100), &outbox).await.is_none());
        assert!(!one.is_wanted(), "it is being made");
        share.made(11 << 20);
        assert_eq!(all.available_permits(), 13 * 1024);
        assert!(one.is_wanted() && !other.is_wanted());
        drop(share);
        assert!(taken(&other, long(8 * 1024), &outbox).await.is_some());
        assert!(!one.is_wanted());
    }
}
