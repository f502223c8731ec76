//! A proxy on the way between two programs, which cuts and holds the connections that lead through it.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::{
    sockets::{Task, accept, any_port, listen},
    wait::within,
};

const CHUNK: usize = 64 * 1024;

/// The state of a way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fault {
    /// All connections are reset, and no others come about.
    pub is_cut: bool,
    /// Nothing arrives at the far end, or at the near one, which dials. It does arrive later.
    pub holds: [bool; 2],
}

impl Fault {
    /// The same, for the way in the other direction.
    pub const fn mirrored(self) -> Self {
        Self { holds: [self.holds[1], self.holds[0]], ..self }
    }
}

/// A way on a port of its own. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Way {
    address: SocketAddr,
    state: Arc<State>,
    _task: Task,
}

#[derive(Debug)]
struct State {
    /// `None` until the far end listens.
    target: Mutex<Option<SocketAddr>>,
    fault: watch::Sender<Fault>,
    /// Bytes that came back from the far end.
    passed: AtomicU64,
    /// Both directions are held once this number has.
    limit: AtomicU64,
}

impl Way {
    /// A way that leads nowhere yet.
    pub async fn new() -> Self {
        let (listener, address) = listen(any_port()).await;
        let state = Arc::new(State {
            target: Mutex::default(),
            fault: watch::Sender::default(),
            passed: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
        });
        let own = Arc::clone(&state);
        let task = accept(listener, move |near| connection(near, Arc::clone(&own)));
        Self { address, state, _task: task }
    }

    pub async fn to(target: SocketAddr) -> Self {
        let way = Self::new().await;
        way.lead_to(target);
        way
    }

    /// The address to dial.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// It leads there from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = Some(target);
    }

    pub fn set(&self, fault: Fault) {
        self.state.fault.send_replace(fault);
    }

    pub fn cut(&self) {
        self.set(Fault { is_cut: true, ..Fault::default() });
    }

    /// Lets everything pass again.
    pub fn mend(&self) {
        self.state.limit.store(u64::MAX, Ordering::SeqCst);
        self.set(Fault::default());
    }

    /// Holds both directions when this number of bytes more has come back from the far end.
    pub fn freeze_after(&self, bytes: u64) {
        self.state.limit.store(self.passed() + bytes, Ordering::SeqCst);
    }

    /// Waits until both directions are held.
    pub async fn is_frozen(&self) {
        let mut fault = self.state.fault.subscribe();
        let frozen = fault.wait_for(|fault| fault.holds == [true; 2]);
        within("a way that holds", frozen).await.expect("it is there");
    }

    /// How many bytes came back from the far end.
    pub fn passed(&self) -> u64 {
        self.state.passed.load(Ordering::SeqCst)
    }
}

async fn connection(near: TcpStream, state: Arc<State>) {
    let target = *state.target.lock().unwrap();
    let (Some(target), false) = (target, state.fault.borrow().is_cut) else { return };
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _unset = (near.set_nodelay(true), far.set_nodelay(true));
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let mut fault = state.fault.subscribe();
    tokio::select! {
        _ = fault.wait_for(|fault| fault.is_cut) => {
            // What is on its way is lost, too.
            let _unset = [&near_write, &far_write].map(|end| end.as_ref().set_zero_linger());
        }
        () = carry(&mut near_read, &mut far_write, &state, 0) => {}
        () = carry(&mut far_read, &mut near_write, &state, 1) => {}
    }
}

/// Carries bytes one way, but for the times when they are held.
async fn carry(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, state: &State, end: usize) {
    let mut fault = state.fault.subscribe();
    let mut bytes = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if end == 1 {
            state.count(count);
        }
        let is_free = fault.wait_for(|fault| !fault.holds[end]).await.is_ok();
        if !is_free || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

impl State {
    fn count(&self, bytes: usize) {
        let passed = self.passed.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64;
        if passed > self.limit.load(Ordering::SeqCst) {
            self.fault.send_replace(Fault { is_cut: false, holds: [true; 2] });
        }
    }
}
