//! A connection that a test cuts and freezes.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use testkit::within;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// A TCP connection to somewhere, which the test cuts and freezes. Dropping it resets what is left.
pub(super) struct Wire {
    address: SocketAddr,
    state: Arc<WireState>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    /// Nothing passes, and nobody is told.
    Frozen,
    /// Every connection is reset, and none is taken.
    Cut,
}

struct WireState {
    mode: watch::Sender<Mode>,
    target: Mutex<SocketAddr>,
    /// Bytes that came back from its far end.
    passed: AtomicU64,
    /// It stands still once this number has.
    limit: AtomicU64,
}

impl Wire {
    /// To this address.
    pub(super) async fn to(target: SocketAddr) -> Self {
        Self::new(target, Mode::Open).await
    }

    /// To this address, and cut.
    pub(super) async fn cut_to(target: SocketAddr) -> Self {
        Self::new(target, Mode::Cut).await
    }

    async fn new(target: SocketAddr, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(WireState {
            mode: watch::Sender::new(mode),
            target: Mutex::new(target),
            passed: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
        });
        let task = tokio::spawn(carry(listener, Arc::clone(&state)));
        Self { address, state, task }
    }

    /// Where it begins.
    pub(super) fn name(&self) -> String {
        self.address.to_string()
    }

    /// Leads elsewhere from now on.
    pub(super) fn lead_to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = target;
    }

    /// Resets every connection, and takes none.
    pub(super) fn cut(&self) {
        self.state.mode.send_replace(Mode::Cut);
    }

    /// Stands still when this number of bytes more has come back from its far end.
    pub(super) fn freeze_after(&self, bytes: u64) {
        self.state.limit.store(self.passed() + bytes, Ordering::SeqCst);
    }

    /// Waits until it stands still.
    pub(super) async fn is_frozen(&self) {
        let mut mode = self.state.mode.subscribe();
        let frozen = mode.wait_for(|mode| *mode == Mode::Frozen);
        within("a connection that stands still", frozen).await.expect("it is there");
    }

    /// How many bytes came back from its far end.
    pub(super) fn passed(&self) -> u64 {
        self.state.passed.load(Ordering::SeqCst)
    }

    /// Lets everything pass again.
    pub(super) fn mend(&self) {
        self.state.limit.store(u64::MAX, Ordering::SeqCst);
        self.state.mode.send_replace(Mode::Open);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl WireState {
    fn back(&self, bytes: usize) {
        let passed = self.passed.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64;
        if passed > self.limit.load(Ordering::SeqCst) {
            self.mode.send_replace(Mode::Frozen);
        }
    }
}

async fn carry(listener: TcpListener, state: Arc<WireState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((near, _)) = listener.accept() => {
                connections.spawn(connection(near, Arc::clone(&state)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(near: TcpStream, state: Arc<WireState>) {
    // Either side may be gone already.
    let _unset = near.set_zero_linger();
    let mut mode = state.mode.subscribe();
    if *mode.borrow() == Mode::Cut {
        return;
    }
    let target = *state.target.lock().unwrap();
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _unset = (far.set_zero_linger(), far.set_nodelay(true), near.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    tokio::select! {
        _ = mode.wait_for(|mode| *mode == Mode::Cut) => {}
        () = copy(near_read, far_write, &state, |_| {}) => {}
        () = copy(far_read, near_write, &state, |bytes| state.back(bytes)) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &WireState,
    passed: impl Fn(usize),
) {
    let mut mode = state.mode.subscribe();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        passed(length);
        if mode.wait_for(|mode| *mode == Mode::Open).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}
