//! An answer on its way from a provider into its exchange: passed on as it comes, unless what comes
//! may say that the endpoint is not there.

use bytes::Bytes;
use scheduler::{AnswerWriter, Head, ReaderGone};

use crate::served::{Asked, Held, Served};

/// Why a job fails whose answer is none in the shape that the provider was asked in.
pub(crate) const NO_SENSE: &str = "the provider's answer makes no sense";

/// The reason given when a job moves to another provider because the backend answered with an error.
pub(crate) const REFUSED: &str = "its backend refused, and another is asked";

/// A job that a provider has, and its answer.
pub(crate) struct Incoming {
    /// Where the answer goes.
    pub(crate) writer: AnswerWriter,
    /// What the provider was asked.
    pub(crate) asked: Asked,
    /// The answer so far, while it may say that the endpoint is not there.
    held: Option<Held>,
}

impl Incoming {
    pub(crate) fn new(writer: AnswerWriter, asked: Asked) -> Self {
        Self { writer, asked, held: None }
    }

    /// Whether its head has come.
    pub(crate) fn has_head(&self) -> bool {
        self.writer.has_begun() || self.held.is_some()
    }

    /// Writes a head, or holds it back while it may say that the endpoint is not there. A second head
    /// is ignored.
    pub(crate) fn head(&mut self, head: Head, served: Served) -> Result<(), ReaderGone> {
        if self.has_head() {
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

    /// Writes bytes after the head. Returns how much is held back for the reader now, in bytes.
    pub(crate) fn chunk(&mut self, bytes: Bytes) -> Result<usize, ReaderGone> {
        let Some(held) = &mut self.held else { return self.writer.chunk(bytes) };
        if held.take(&bytes) { Ok(0) } else { self.release() }
    }

    /// Whether the answer, which is complete, says that the endpoint is not there.
    pub(crate) fn is_unserved(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_unserved(&self.asked))
    }

    /// The answer is complete.
    pub(crate) fn end(mut self) {
        let written = self.release();
        self.finish(written.map(|_| ()));
    }

    /// Ends a job whose answer is complete, after its last part was written.
    pub(crate) fn finish(self, written: Result<(), ReaderGone>) {
        match written {
            Ok(()) => self.writer.end(),
            Err(ReaderGone::Unreadable) => self.writer.fail(NO_SENSE),
            Err(ReaderGone::Refused) => self.refused(),
            Err(ReaderGone::Over | ReaderGone::Stalled) => self.writer.abandon(),
        }
    }

    /// The client does not get this status while another provider can be asked.
    pub(crate) fn refused(self) {
        tracing::info!(request_id = %self.writer.job(), "{REFUSED}");
        self.writer.fail(REFUSED);
    }

    /// Passes on what was held back, if anything was.
    fn release(&mut self) -> Result<usize, ReaderGone> {
        let Some(held) = self.held.take() else { return Ok(0) };
        let (head, body) = held.release();
        self.writer.head(head)?;
        self.writer.chunk(body)
    }
}
