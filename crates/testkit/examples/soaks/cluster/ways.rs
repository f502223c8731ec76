//! The ways between the members: proxies that cut and hold the links that lead through them.

use std::{
    collections::BTreeMap,
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

/// The state of the ways between two members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// All connections are cut, and no others come about.
    pub(crate) is_cut: bool,
    /// Nothing arrives at the one member, or at the other. It does arrive later.
    pub(crate) holds: [bool; 2],
}

impl Fault {
    const fn mirrored(self) -> Self {
        Self { holds: [self.holds[1], self.holds[0]], ..self }
    }
}

/// One way from each member to each other one.
pub(crate) struct Ways(BTreeMap<(usize, usize), Way>);

struct Way {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// `None` until the member listens.
    target: Mutex<Option<SocketAddr>>,
    fault: watch::Sender<Fault>,
}

impl Ways {
    pub(crate) async fn between(members: usize) -> Self {
        let mut ways = BTreeMap::new();
        for from in 0..members {
            for to in (0..members).filter(|to| *to != from) {
                ways.insert((from, to), Way::new().await);
            }
        }
        Self(ways)
    }

    /// The peer addresses that a member dials.
    pub(crate) fn peers_of(&self, member: usize) -> impl Iterator<Item = String> {
        let own = self.0.iter().filter(move |((from, _), _)| *from == member);
        own.map(|(_, way)| way.address.to_string())
    }

    /// The member has this peer port from now on.
    pub(crate) fn lead_to(&self, member: usize, target: SocketAddr) {
        for (_, way) in self.0.iter().filter(|((_, to), _)| *to == member) {
            *way.state.target.lock().expect("nobody panics with it") = Some(target);
        }
    }

    /// Sets the fault of the two ways between two members. `holds[0]` is of the bytes to `one`.
    pub(crate) fn set(&self, one: usize, other: usize, fault: Fault) {
        // What the dialler sends arrives at the other member.
        self.0[&(other, one)].state.fault.send_replace(fault);
        self.0[&(one, other)].state.fault.send_replace(fault.mirrored());
    }

    pub(crate) fn heal_all(&self) {
        self.0.values().for_each(|way| {
            way.state.fault.send_replace(Fault::default());
        });
    }
}

impl Way {
    async fn new() -> Self {
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
