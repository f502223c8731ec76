//! A client of this member's workspace that stands for a plain peer.

use protocol::workspace::Role;
use tokio_util::sync::CancellationToken;
use wire::{Frame, Outbox, OutboxReader};

use super::Requester;
use crate::circuit::{Caller, Served};

/// A client of this member's workspace. It leaves when this is dropped.
pub(super) struct Guest {
    requests: Outbox,
    answers: OutboxReader,
}

impl Guest {
    /// Opens a guest. `None` while no host serves clients yet.
    pub(super) fn open(requester: &Requester) -> Option<Self> {
        let host = requester.shared.host()?;
        let (requests, to_serve) = Outbox::detached();
        let (to_answer, answers) = Outbox::detached();
        let caller =
            Caller { who: format!("peer:{}", requester.node), role: Role::Write, member: None };
        host.serve(Served {
            from: requester.node.clone(),
            caller,
            requests: to_serve,
            answers: to_answer,
            done: CancellationToken::new(),
        });
        Some(Self { requests, answers })
    }

    /// Sends a request. If the guest is gone, [`Guest::next`] returns `None`.
    pub(super) fn ask(&self, text: String) {
        let _gone = self.requests.push(text);
    }

    /// The next answer or event; `None` when nothing more will come. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        self.answers.next().await
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.requests.close();
    }
}
