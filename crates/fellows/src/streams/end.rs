//! The user's end of a stream.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use fleet::ServerId;
pub use fleet::stream::Reason;

use super::{Streams, cell::Cell};

/// One end of a stream with a fellow. It is tokio's reader and writer, too.
///
/// Dropping it before all was written resets it; what was written to its end still goes to the fellow.
pub struct FellowStream {
    pub(super) cell: Arc<Cell>,
    streams: Arc<Streams>,
    /// The bytes that [`AsyncRead`](tokio::io::AsyncRead) has taken out and not handed on.
    pub(super) rest: Bytes,
}

/// Why a stream was over before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", words(*reason, detail))]
pub struct Over {
    /// The reason.
    pub reason: Reason,
    /// The other end's words about it; may be empty.
    pub detail: String,
}

/// Says that bytes of a stream were used, from wherever that is seen.
#[derive(Clone)]
pub(crate) struct Consumed(Arc<Cell>);

impl Consumed {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.consumed(bytes);
    }
}

impl FellowStream {
    pub(super) fn new(cell: Arc<Cell>, streams: Arc<Streams>) -> Self {
        Self { cell, streams, rest: Bytes::new() }
    }

    /// The server at the other end.
    pub fn fellow(&self) -> ServerId {
        self.cell.fellow
    }

    /// The next bytes as they came; `None` when the fellow has written all. They count as unread until they are
    /// [consumed](FellowStream::consumed).
    ///
    /// # Errors
    /// [`Over`] when the stream is over before its end.
    pub async fn piece(&self) -> Result<Option<Bytes>, Over> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// As [`FellowStream::piece`], as a poll function.
    ///
    /// # Errors
    /// [`Over`] when the stream is over before its end.
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Over>> {
        self.cell.poll_piece(cx)
    }

    /// Says that this number of bytes of the pieces is not kept any more: the fellow may send as many.
    pub fn consumed(&self, bytes: usize) {
        self.cell.consumed(bytes);
    }

    pub(crate) fn consumption(&self) -> Consumed {
        Consumed(Arc::clone(&self.cell))
    }

    /// Writes all of it, as the fellow has room. `is_last`: there will be no more.
    ///
    /// # Errors
    /// [`Over`] when the stream is over.
    pub async fn write(&self, mut bytes: Bytes, is_last: bool) -> Result<(), Over> {
        loop {
            let taken = poll_fn(|cx| self.poll_write(cx, &bytes, is_last)).await?;
            bytes.advance(taken);
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Writes as much of it as the fellow has room for now. `is_last`: there will be no more after all of it.
    ///
    /// # Errors
    /// [`Over`] when the stream is over.
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bytes: &Bytes,
        is_last: bool,
    ) -> Poll<Result<usize, Over>> {
        self.cell.poll_write(cx, bytes, is_last)
    }

    /// Waits until the stream is over before its end. What comes does not wake it: a task that waits here reads
    /// nothing.
    pub async fn over(&self) -> Over {
        poll_fn(|cx| self.cell.poll_over(cx)).await
    }

    /// Ends it at both ends, with words for the fellow.
    pub fn reset(self, reason: Reason, detail: &str) {
        self.cell.reset(reason, Bytes::copy_from_slice(detail.as_bytes()));
    }
}

impl Drop for FellowStream {
    fn drop(&mut self) {
        if self.cell.leave() {
            self.streams.remove(&self.cell);
        }
    }
}

fn words(reason: Reason, detail: &str) -> String {
    let words = match reason {
        Reason::Cancelled => "the other server has no use for it any more",
        Reason::Unknown => "the other server does not know it: it may have started again",
        Reason::Refused => "the other server does not take it",
        Reason::Left => "the other server is gone",
        Reason::Silent => "the other server is silent",
        Reason::Breach => "the servers do not understand each other",
        Reason::TimedOut => "its time was over",
        Reason::Stopping => "the other server stops",
        Reason::Failed => "the other server failed",
    };
    if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") }
}
