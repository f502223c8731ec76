//! Answers in binary frames, as another Warren's worker sends them: passed on as they come, unless
//! what comes may say that the endpoint is not there.

use bytes::Bytes;
use scheduler::{Head, ReaderGone};

use super::{
    served::{Held, Served},
    session,
};

impl session::Current {
    /// Writes a head, or holds it back while it may say that the endpoint is not there.
    pub(super) fn head(&mut self, head: Head, served: Served) -> Result<(), ReaderGone> {
        if self.writer.has_begun() || self.held.is_some() {
            // A second head is ignored.
            return Ok(());
        }
        if !served.may_learn(&self.asked) {
            return self.writer.head(head);
        }
        match Held::back(head) {
            Ok(held) => self.held = Some(held),
            Err(head) => self.writer.head(head)?,
        }
        Ok(())
    }

    pub(super) fn chunk(&mut self, bytes: Bytes) -> Result<(), ReaderGone> {
        let Some(held) = &mut self.held else { return self.writer.chunk(bytes).map(|_| ()) };
        if held.take(&bytes) { Ok(()) } else { self.release() }
    }

    /// Passes on what was held back, if anything was.
    pub(super) fn release(&mut self) -> Result<(), ReaderGone> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let (head, body) = held.release();
        self.writer.head(head)?;
        self.writer.chunk(body).map(|_| ())
    }
}
