//! The search for the port of a development server.

use std::sync::Arc;

use tokio::task;
use tracing::Instrument as _;

use super::{clock::now, session::Session};

impl Session {
    /// Searches for the server's port, in a task of its own.
    pub(super) fn search_port(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let searching = async move {
            let Ok(engine) = session.live() else { return };
            let pids = engine.processes().await;
            let listening = task::spawn_blocking(move || process::listening_ports(&pids)).await;
            let listening = listening.unwrap_or_default();
            let now = now();
            if session.change(now, |state| state.port.take(&listening, now)) {
                session.tell(now);
            }
        };
        tokio::spawn(searching.instrument(self.span.clone()));
    }
}
