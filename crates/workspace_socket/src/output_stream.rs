//! A session's output on its way to a client.

use protocol::workspace::SessionId;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use wire::{Frame, Outbox};
use workspace::{Attachment, Streamed};

/// A client's attachment to a session. Dropping it ends the attachment.
pub(crate) struct OutputStream {
    pub(crate) session: SessionId,
    task: AbortOnDropHandle<()>,
}

impl OutputStream {
    /// Sends the session's output as fast as the client takes it.
    pub(crate) fn start(attachment: Attachment, outbox: Outbox) -> Self {
        let session = attachment.session();
        let passing_on = pass_on(attachment, outbox).in_current_span();
        let task = AbortOnDropHandle::new(tokio::spawn(passing_on));
        Self { session, task }
    }

    /// Ends the attachment. Once this returns, no more output is queued.
    pub(crate) async fn end(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }
}

async fn pass_on(mut attachment: Attachment, outbox: Outbox) {
    // While this waits for room in the outbox, it takes nothing more from the session. That is how
    // the session notices that its client is slow.
    while let Some(next) = attachment.next().await {
        let frame = match next {
            Streamed::Message(message) => Frame::from(message.encode()),
            Streamed::Output(bytes) => Frame::from(bytes),
        };
        if outbox.send(frame).await.is_err() {
            return;
        }
    }
}
