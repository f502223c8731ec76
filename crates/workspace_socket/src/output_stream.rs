//! A session's output on its way to a client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use protocol::workspace::{ServerMessage, SessionId, frame};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use wire::{Frame, Outbox};
use workspace::{Attachment, StreamItem};

/// A client's attachment to a session. Dropping it ends the attachment.
pub(crate) struct OutputStream {
    pub(crate) session: SessionId,
    /// The number of the newest output that was sent; 0: none.
    seq: Arc<AtomicU64>,
    task: AbortOnDropHandle<()>,
}

impl OutputStream {
    /// Sends the session's output as fast as the client takes it.
    pub(crate) fn start(attachment: Attachment, outbox: Outbox) -> Self {
        let session = attachment.session();
        let seq = Arc::<AtomicU64>::default();
        let passing_on = pass_on(attachment, outbox, Arc::clone(&seq)).in_current_span();
        let task = AbortOnDropHandle::new(tokio::spawn(passing_on));
        Self { session, seq, task }
    }

    /// Ends the attachment. Once this returns, no more output is queued. The result is the number of
    /// the newest output that was sent.
    pub(crate) async fn end(self) -> Option<u64> {
        self.task.abort();
        // The task may still be queueing output until it has ended.
        let _aborted = self.task.await;
        Some(self.seq.load(Ordering::Relaxed)).filter(|seq| *seq > 0)
    }
}

async fn pass_on(mut attachment: Attachment, outbox: Outbox, seq: Arc<AtomicU64>) {
    // While this waits for room in the outbox, it takes nothing more from the session. That is how
    // the session notices that its client is slow.
    while let Some(next) = attachment.next().await {
        let (frame, sent) = match next {
            StreamItem::Message(message) => {
                let sent = position(&message);
                (Frame::from(message.encode()), sent)
            }
            StreamItem::Output(bytes) => {
                let sent = frame::position(&bytes).map(|(_, seq)| seq);
                (Frame::from(bytes), sent)
            }
        };
        if outbox.send(frame).await.is_err() {
            return;
        }
        if let Some(sent) = sent {
            seq.store(sent, Ordering::Relaxed);
        }
    }
}

/// The number of the newest output that a message contains.
fn position(message: &ServerMessage) -> Option<u64> {
    match message {
        ServerMessage::SessionHistory(history) => Some(history.last_seq),
        ServerMessage::SessionSnapshot(snapshot) => Some(snapshot.seq),
        _ => None,
    }
}
