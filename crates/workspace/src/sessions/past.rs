//! Earlier output: from memory as far as it reaches, beyond that from disk.

use std::sync::Arc;

use session::terminal::log::{Gather, History};
use tokio::task;

use super::{painter::Painter, session::Session};
use crate::refusal::Refusal;

impl Session {
    /// The newest output before a number, as much as fits.
    pub(super) async fn past(
        self: &Arc<Self>,
        before_seq: u64,
        max_bytes: usize,
    ) -> Result<History, Refusal> {
        let mut gather = Gather::new(before_seq, max_bytes);
        if !gather.add(self.lock().output.log.all()) {
            return Ok(gather.finish());
        }
        self.on_disk(move |session| {
            session.segments().gather(&mut gather)?;
            Ok(gather.finish())
        })
        .await
    }

    /// Reads the output of a terminal that has ended into memory, for a viewer.
    pub(super) async fn load(self: &Arc<Self>) -> Result<(), Refusal> {
        let bound = self.commons.log_bytes;
        self.on_disk(move |session| {
            let mut gather = Gather::new(u64::MAX, bound);
            session.segments().gather(&mut gather)?;
            let chunks = gather.finish().chunks;
            let mut painter = session.painter();
            let mut state = session.lock();
            // Another viewer may have loaded the output meanwhile.
            if state.output.is_napping() {
                *painter = Painter::new(state.windows.size());
                state.output.wake_with(chunks);
            }
            Ok(())
        })
        .await
    }

    /// Drops the output of an ended terminal from memory, if it is on the disk and has no viewers.
    pub(super) fn nap(&self) {
        let mut painter = self.painter();
        let mut state = self.lock();
        if state.viewers.is_empty() && state.output.may_nap() {
            *painter = Painter::new(state.windows.size());
            state.output.nap(self.commons.log_bytes);
            state.asides.clear();
        }
    }

    async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let session = Arc::clone(self);
        let done = task::spawn_blocking(move || read(&session)).await;
        let done = done.map_err(|error| Refusal::failed(&error))?;
        done.map_err(|error| {
            Refusal::Failed(format!("the session's history cannot be read: {error}"))
        })
    }
}
