//! An answer on its way from a provider into its exchange. It passes as it arrives, unless it may
//! be a refusal which says that the backend does not have the endpoint, or still loads its model.

use bytes::Bytes;
use http::StatusCode;
use protocol::failure::may_be_loading;
use scheduler::{AnswerWriter, Head, WriteError};

use crate::served::{HeldAnswer, RequestShape, ServedEndpoints, announced_length};

/// A job that a provider has, and its answer.
pub(crate) struct Incoming {
    pub(crate) writer: AnswerWriter,
    pub(crate) shape: RequestShape,
    /// The status of its head, once it has arrived.
    status: Option<StatusCode>,
    /// The answer so far, while it may turn out to be such a refusal.
    held: Option<HeldAnswer>,
}

impl Incoming {
    pub(crate) fn new(writer: AnswerWriter, shape: RequestShape) -> Self {
        Self { writer, shape, status: None, held: None }
    }

    /// Whether its head has arrived.
    pub(crate) fn has_head(&self) -> bool {
        self.writer.has_begun() || self.held.is_some()
    }

    /// Writes a head, or holds it back while it may be such a refusal. A second head is ignored.
    pub(crate) fn head(&mut self, head: Head, served: &ServedEndpoints) -> Result<(), WriteError> {
        if self.has_head() {
            return Ok(());
        }
        self.status = Some(head.status);
        if !served.learns() && !may_be_loading(head.status.as_u16(), announced_length(&head)) {
            return self.writer.head(head);
        }
        match HeldAnswer::of(head) {
            Ok(held) => self.held = Some(held),
            Err(head) => self.writer.head(head)?,
        }
        Ok(())
    }

    /// Writes bytes after the head. Returns the number of bytes now held back for the reader.
    pub(crate) fn chunk(&mut self, bytes: Bytes) -> Result<usize, WriteError> {
        let Some(held) = &mut self.held else { return self.writer.chunk(bytes) };
        if held.take(&bytes) { Ok(0) } else { self.release() }
    }

    /// The status of its head, once it has arrived.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// The body so far, if it is held back.
    pub(crate) fn held_body(&self) -> Option<&[u8]> {
        self.held.as_ref().map(HeldAnswer::body)
    }

    /// Passes the job to another provider. Returns it if there is none.
    pub(crate) fn pass_on(self) -> Option<Self> {
        let Self { writer, shape, status, held } = self;
        writer.pass_on().err().map(|writer| Self { writer, shape, status, held })
    }

    /// Ends a complete answer.
    pub(crate) fn end(mut self) {
        let written = self.release();
        self.finish(written.map(|_| ()));
    }

    /// Ends a job whose answer is complete, after its last part was written.
    pub(crate) fn finish(self, written: Result<(), WriteError>) {
        match written {
            Ok(()) => self.writer.end(),
            // The answer is complete, so the provider is not at fault. The dispatcher's own
            // deadline ends the stalled job.
            Err(WriteError::Stalled) => self.writer.abandon(),
            Err(error) => self.writer.give_up(error),
        }
    }

    /// Passes on the held part, if any.
    fn release(&mut self) -> Result<usize, WriteError> {
        let Some(held) = self.held.take() else { return Ok(0) };
        let (head, body) = held.release();
        self.writer.head(head)?;
        self.writer.chunk(body)
    }
}
