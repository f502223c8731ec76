//! A proxy on the way between two programs, which cuts and holds the connections that lead through it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

const CHUNK: usize = 16 * 1024;

/// The state of a way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// All connections are cut, and no others come about.
    pub(crate) is_cut: bool,
    /// Nothing arrives at the far end, or at the near one, which dials. It does arrive later.
    pub(crate) holds: [bool; 2],
}

impl Fault {
    /// The same, for the way in the other direction.
    pub(crate) const fn mirrored(self) -> Self {
        Self { holds: [self.holds[1], self.holds[0]], ..self }
    }
}

/// A way.
pub(crate) struct Way {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// `None` until the far end listens.
    target: Mutex<Option<SocketAddr>>,
    fault: watch::Sender<Fault>,
}

impl Way {
    /// A way that leads nowhere yet.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it listens");
        let (fault, _) = watch::channel(Fault::default());
        let state = Arc::new(State { target: Mutex::default(), fault });
        let own = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(connection(near, Arc::clone(&own)));
            }
        });
        Self { address, state }
    }

    /// The address to dial.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// It leads there from now on.
    pub(crate) fn lead_to(&self, target: SocketAddr) {
        *self.state.target.lock().expect("nobody panics with it") = Some(target);
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.state.fault.send_replace(fault);
    }
}

async fn connection(near: TcpStream, state: Arc<State>) {
    let target = *state.target.lock().expect("nobody panics with it");
    let (Some(target), false) = (target, state.fault.borrow().is_cut) else { return };
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _unset = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let mut fault = state.fault.subscribe();
    tokio::select! {
        _ = fault.wait_for(|fault| fault.is_cut) => {}
        () = carry(near_read, far_write, state.fault.subscribe(), 0) => {}
        () = carry(far_read, near_write, state.fault.subscribe(), 1) => {}
    }
}

/// Carries bytes one way, but for the times when they are held.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut fault: watch::Receiver<Fault>,
    end: usize,
) {
    let mut bytes = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_free = fault.wait_for(|fault| !fault.holds[end]).await.is_ok();
        if !is_free || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
