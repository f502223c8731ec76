//! One transfer to a peer.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use models::Hashed;
use protocol::{admin::mesh::MeshTransfer, mesh::WireId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    link::Link,
    transfer::{rate::Rate, shared::Shared},
};

/// A transfer that has sent nothing for this long counts as waiting for its peer.
const RUNS: Duration = Duration::from_secs(10);

/// A transfer to a peer.
pub(super) struct Outbound {
    /// The number of this transfer among all transfers to peers.
    pub(super) number: u64,
    pub(super) id: WireId,
    pub(super) uuid: [u8; 16],
    pub(super) link: Arc<Link>,
    pub(super) hashed: OnceLock<Arc<Hashed>>,
    pub(super) stop: CancellationToken,
    model: String,
    /// The size of the model in bytes; 0 while it is not known.
    total: AtomicU64,
    state: Mutex<OutboundState>,
}

struct OutboundState {
    sent: u64,
    rate: Rate,
    last: Instant,
}

impl Outbound {
    pub(super) fn new(link: &Arc<Link>, id: WireId, uuid: [u8; 16], model: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            id,
            uuid,
            link: Arc::clone(link),
            hashed: OnceLock::new(),
            stop: CancellationToken::new(),
            model: model.to_owned(),
            total: AtomicU64::new(0),
            state: Mutex::new(OutboundState {
                sent: 0,
                rate: Rate::default(),
                last: Instant::now(),
            }),
        }
    }

    /// Sets the size of the model.
    pub(super) fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Whether the size of the model is known. Before that, the transfer is not listed.
    pub(super) fn is_known(&self) -> bool {
        self.total.load(Ordering::Relaxed) > 0
    }

    /// Records that `bytes` more bytes were sent.
    pub(super) fn sent(&self, shared: &Shared, bytes: u64) {
        shared.counts.bytes_out.add(bytes);
        let mut state = self.lock();
        state.sent += bytes;
        state.last = Instant::now();
        let (now, sent) = (state.last, state.sent);
        if !state.rate.is_fresh(now, Duration::from_millis(250)) {
            state.rate.mark(now, sent);
        }
    }

    /// The time since the last byte was sent.
    pub(super) fn silence(&self) -> Duration {
        self.lock().last.elapsed()
    }

    /// Its state, for the administrator.
    pub(super) fn state(&self) -> MeshTransfer {
        let state = self.lock();
        let runs = state.last.elapsed() < RUNS;
        let total = self.total.load(Ordering::Relaxed);
        MeshTransfer {
            id: self.id.to_string(),
            model: self.model.clone(),
            direction: "out".to_owned(),
            state: if runs { "running" } else { "waiting" }.to_owned(),
            bytes: state.sent,
            total: Some(total),
            rate: if runs { state.rate.per_second() } else { 0 },
            eta_secs: if runs { state.rate.left(total) } else { None },
            peers: vec![self.link.peer.to_string()],
            ..MeshTransfer::default()
        }
    }

    /// Ends the transfer. It is remembered if anything was sent.
    pub(super) fn end(&self, shared: &Shared, state: &str, why: Option<&str>) {
        self.stop.cancel();
        let last = self.state();
        if last.bytes == 0 {
            return;
        }
        let detail = why.map(str::to_owned);
        let code = why.map(|_| "lost".to_owned());
        let state = state.to_owned();
        shared.remember(MeshTransfer { state, detail, code, rate: 0, eta_secs: None, ..last });
    }

    fn lock(&self) -> MutexGuard<'_, OutboundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
