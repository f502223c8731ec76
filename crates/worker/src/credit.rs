//! How many bytes of its answer a job may still send.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// One job's credit. The link adds, the job takes.
#[derive(Debug)]
pub(crate) struct Credit {
    bytes: Mutex<u64>,
    more: Notify,
}

impl Credit {
    pub(crate) fn new(bytes: u32) -> Self {
        Self { bytes: Mutex::new(bytes.into()), more: Notify::new() }
    }

    /// Adds what the server granted.
    pub(crate) fn grant(&self, bytes: u32) {
        let mut left = self.lock();
        *left = left.saturating_add(bytes.into());
        drop(left);
        self.more.notify_one();
    }

    /// Takes the available credit, up to `most` bytes, and waits while there is none. Only one task may take.
    /// Cancel safe.
    pub(crate) async fn take(&self, most: usize) -> usize {
        loop {
            let taken = self.take_now(most);
            if taken > 0 || most == 0 {
                return taken;
            }
            // `notify_one` stores a permit, so a grant between the two lines is not lost.
            self.more.notified().await;
        }
    }

    /// Takes the available credit, up to `most` bytes, without waiting.
    pub(crate) fn take_now(&self, most: usize) -> usize {
        let mut left = self.lock();
        let taken = usize::try_from(*left).map_or(most, |left| left.min(most));
        *left -= taken as u64;
        taken
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn credit_that_is_there_is_taken_and_more_is_waited_for() {
        let credit = Arc::new(Credit::new(5));
        assert_eq!(credit.take(3).await, 3);
        assert_eq!(credit.take(3).await, 2);
        let taker = Arc::clone(&credit);
        let waiting = tokio::spawn(async move { taker.take(3).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        credit.grant(1);
        assert_eq!(waiting.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn endless_grants_do_not_overflow() {
        let credit = Credit { bytes: Mutex::new(u64::MAX - 1), more: Notify::new() };
        credit.grant(u32::MAX);
        assert_eq!(credit.take(7).await, 7);
    }
}
