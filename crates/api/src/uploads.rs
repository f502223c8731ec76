//! The common memory bound of all request bodies that are being read, wait for the head of their answer, or are kept
//! because another provider may have to go on with the answer.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::{ApiError, Kind};

/// How long a body waits for memory that other bodies hold.
const WAIT: Duration = Duration::from_secs(5);

/// The memory for bodies, in KiB.
pub(crate) struct Uploads {
    room: Arc<Semaphore>,
    total: u32,
}

/// The memory of a body that is held beyond the reading of the body, until this is dropped.
pub(crate) struct HeldMemory {
    _permit: Option<OwnedSemaphorePermit>,
}

/// The memory that one body holds, until this is dropped.
pub(crate) struct HeldBody<'a> {
    uploads: &'a Uploads,
    permit: Option<OwnedSemaphorePermit>,
}

/// Shows how much of the memory is left, now and later.
#[derive(Clone)]
pub(crate) struct RoomLeft {
    room: Arc<Semaphore>,
    total: u32,
}

impl RoomLeft {
    /// Whether at least half of the memory is free.
    pub(crate) fn is_ample(&self) -> bool {
        self.room.available_permits() >= self.total as usize / 2
    }
}

impl HeldMemory {
    /// No memory, for a request without a body.
    pub(crate) fn none() -> Self {
        Self { _permit: None }
    }
}

impl Uploads {
    /// Memory for `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let total = u32::try_from(bytes / 1024).unwrap_or(most).clamp(1, most);
        Self { room: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// A view of how much memory is left.
    pub(crate) fn room_left(&self) -> RoomLeft {
        RoomLeft { room: Arc::clone(&self.room), total: self.total }
    }

    /// Starts to hold memory for a body that has not begun to arrive.
    pub(crate) fn hold(&self) -> HeldBody<'_> {
        HeldBody { uploads: self, permit: None }
    }
}

impl HeldBody<'_> {
    /// Hands the memory over to something that lives longer.
    pub(crate) fn take(&mut self) -> HeldMemory {
        HeldMemory { _permit: self.permit.take() }
    }

    /// Takes memory for a body that has grown to `len` bytes, and waits for it if need be. A body larger than the
    /// whole bound takes all of it.
    ///
    /// # Errors
    /// 429 when other bodies do not free memory in time.
    pub(crate) async fn grow(&mut self, len: usize) -> Result<(), ApiError> {
        let needed = u32::try_from(len.div_ceil(1024)).unwrap_or(u32::MAX).min(self.uploads.total);
        let had = self.permit.as_ref().map_or(0, |permit| permit.num_permits());
        let more = needed.saturating_sub(u32::try_from(had).unwrap_or(u32::MAX));
        if more == 0 {
            return Ok(());
        }
        let room = || Arc::clone(&self.uploads.room);
        let permit = match room().try_acquire_many_owned(more) {
            Ok(permit) => permit,
            Err(_) => match timeout(WAIT, room().acquire_many_owned(more)).await {
                Ok(Ok(permit)) => permit,
                _ => return Err(no_room()),
            },
        };
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        Ok(())
    }
}

fn no_room() -> ApiError {
    let words = "queue full: the bodies of other requests take all the room there is";
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, words);
    ApiError { code: Some("queue_full"), retry_after: Some(WAIT), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bodies_wait_for_room_and_not_for_ever() {
        let uploads = Uploads::new(4 * 1024);
        let mut first = uploads.hold();
        first.grow(1).await.unwrap();
        first.grow(3 * 1024).await.unwrap();
        let mut second = uploads.hold();
        second.grow(1024).await.unwrap();
        let refused = second.grow(1025).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.retry_after),
            (StatusCode::TOO_MANY_REQUESTS, Some(WAIT))
        );
        drop(first);
        second.grow(1025).await.unwrap();
        drop(second);
        uploads.hold().grow(usize::MAX).await.unwrap();
        assert_eq!(uploads.room.available_permits(), 4);
    }

    #[tokio::test]
    async fn half_of_the_memory_is_ample_and_less_is_not() {
        let uploads = Uploads::new(4 * 1024);
        let left = uploads.room_left();
        let mut body = uploads.hold();
        body.grow(2 * 1024).await.unwrap();
        assert!(left.is_ample());
        body.grow(2 * 1024 + 1).await.unwrap();
        assert!(!left.is_ample());
        drop(body);
        assert!(left.is_ample());
    }
}
