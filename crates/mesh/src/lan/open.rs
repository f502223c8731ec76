//! Connections that become links: those that come, and those that are made.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use protocol::mesh::ClusterMessage;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{sleep, timeout},
};
use tracing::Instrument;

use super::{
    frames::{Broken, Frames, farewell},
    handshake::{Call, Failure, Greeted, Local, accept, connect},
    home::Home,
    pump,
};
use crate::link::{Carrier, Link, Opening};

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// The pause when the system has no more sockets.
const NO_SOCKETS: Duration = Duration::from_millis(200);

/// After this much silence the system probes whether a connection is alive.
const KEEPALIVE: Duration = Duration::from_secs(10);

type Connection = Frames<OwnedReadHalf, OwnedWriteHalf>;

/// Answers every connection, until the node stops.
pub(super) async fn listen(node: &Arc<dyn Home>, listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => answer(node, stream, from),
            Err(error) => {
                tracing::warn!(%error, "no connection of a peer can be taken for the moment");
                sleep(NO_SOCKETS).await;
            }
        }
    }
}

fn answer(node: &Arc<dyn Home>, stream: TcpStream, from: SocketAddr) {
    let knock = match node.lan().limits.knock(from.ip()) {
        Ok(knock) => knock,
        Err(full) => {
            node.own().counts.bad("a connection too many");
            tracing::info!(%from, %full, "a peer's connection was not taken");
            return tell(&stream, &full.to_string());
        }
    };
    let (tasks, node) = (node.own().tasks.clone(), Arc::clone(node));
    tasks.spawn(async move {
        let greeting = node.own().stop.run_until_cancelled(greet(&*node, stream)).await;
        drop(knock);
        let Some(greeted) = greeting else { return };
        let linked = greeted.and_then(|(frames, greeted)| up(&node, frames, greeted, from, false));
        // Its port is another one at each try.
        let whom = from.ip().to_canonical().to_string();
        match linked {
            Ok(_) => node.lan().unlinked.linked(&whom),
            Err(failure) => {
                if failure.is_about_peer() {
                    node.lan().unlinked.failed(&whom, &failure.to_string());
                }
                report(&*node, &whom, false, &failure);
            }
        }
    });
}

/// Tells a connection that is not answered why, if that can be done at once.
fn tell(stream: &TcpStream, reason: &str) {
    let word = farewell(reason);
    let length = (word.len() as u32).to_be_bytes();
    let _ = stream.try_write(&[&length[..], &word].concat());
}

async fn greet(node: &dyn Home, stream: TcpStream) -> Result<(Connection, Greeted), Failure> {
    let mut frames = tuned(stream)?;
    let greeted = accept(&mut frames, &local(node)).await?;
    Ok((frames, greeted))
}

/// Links to the node that answers at an address. A stock listener that closes on our hello gets the
/// passcode's hash, if it may.
pub(super) async fn dial(node: &Arc<dyn Home>, call: Call) -> Result<Arc<Link>, Failure> {
    match dial_once(node, &call).await {
        Err(Failure::ClosedOnHello) if may_send_hash(&**node, &call) => {
            let to = call.address.map(tracing::field::display);
            tracing::info!(to, "it closed on a hello: it is sent the passcode's hash");
            dial_once(node, &Call { with_hash: true, ..call }).await
        }
        other => other,
    }
}

fn may_send_hash(node: &dyn Home, call: &Call) -> bool {
    let settings = &node.own().settings;
    let is_known = call.address.is_some_and(|address| node.lan().seen.at(&address).is_some());
    settings.plain_passcode
        && node.lan().hash.is_some()
        && !settings.require_sealed
        && call.expects.is_none()
        && !is_known
}

async fn dial_once(node: &Arc<dyn Home>, call: &Call) -> Result<Arc<Link>, Failure> {
    let Some(address) = call.address else { return Err(Failure::NoAnswer) };
    // A place is not found out to be missing when it is too late.
    drop(node.lan().limits.link()?);
    let connecting = timeout(CONNECT, TcpStream::connect(address)).await;
    let stream = connecting.map_err(|_| Failure::NoAnswer)?.map_err(Broken::Io)?;
    let mut frames = tuned(stream)?;
    let greeted = connect(&mut frames, &local(&**node), call).await?;
    up(node, frames, greeted, address, true)
}

fn tuned(stream: TcpStream) -> Result<Connection, Failure> {
    tune(&stream).map_err(Broken::Io)?;
    let (reader, writer) = stream.into_split();
    Ok(Frames::new(reader, writer))
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// This node's part of a handshake.
fn local(node: &dyn Home) -> Local<'_> {
    let dial = node.lan().dials.fetch_add(1, Ordering::Relaxed);
    let hello = |sealed| {
        let mut hello = node.own().facts.hello(sealed);
        if let Some(warren) = &mut hello.warren {
            warren.instance = Some(node.lan().instance);
            warren.dial = Some(dial);
        }
        hello
    };
    Local {
        identity: &node.own().identity,
        psk: node.own().psk.as_ref(),
        hash: node.lan().hash.as_deref(),
        trusted: &node.own().settings.trusted,
        require_sealed: node.own().settings.require_sealed,
        seen: &node.lan().seen,
        open: hello(false),
        sealed: hello(true),
    }
}

/// Makes a link of a connection that was greeted.
fn up(
    node: &Arc<dyn Home>,
    frames: Connection,
    greeted: Greeted,
    address: SocketAddr,
    opened_here: bool,
) -> Result<Arc<Link>, Failure> {
    let place = node.lan().limits.link()?;
    let Greeted { peer, hello, dialect, order, seals } = greeted;
    let (link, outgoing) = Link::new(Opening {
        peer,
        carrier: Carrier::Lan(address),
        sealed: seals.is_some(),
        dialect,
        warren: seals.is_some(),
        opened_here,
        // Or there would be no link.
        proved: true,
        order,
    });
    node.lan().limits.know(address.ip());
    node.opened(&link, &hello);
    let home = OpenLink { node: Arc::clone(node), link: Arc::clone(&link) };
    let span = link.span.clone();
    let carrying = async move {
        let why = home.carry(pump::run(&home, &home.link, outgoing, frames, seals)).await;
        home.node.closed(&home.link, &why);
        drop(place);
    };
    node.own().tasks.spawn(carrying.instrument(span));
    Ok(link)
}

/// A link at this node.
struct OpenLink {
    node: Arc<dyn Home>,
    link: Arc<Link>,
}

impl OpenLink {
    /// Lets a link run until it ends or the node stops. Why it ended.
    async fn carry(&self, running: impl Future<Output = String>) -> String {
        let mut running = std::pin::pin!(running);
        tokio::select! {
            why = &mut running => why,
            () = self.node.own().stop.cancelled() => {
                self.link.close("the node stops");
                running.await
            }
        }
    }
}

impl pump::Home for OpenLink {
    fn received(&self, payload: Bytes) {
        self.node.received(&self.link, payload);
    }

    fn heartbeat(&self) -> ClusterMessage {
        ClusterMessage::Heartbeat(Box::new(self.node.own().facts.heartbeat()))
    }

    fn changed(&self) {
        if let Some(peer) = self.node.peers().get(&self.link.peer) {
            self.node.changed(&peer);
        }
    }

    fn odd(&self, what: &str) {
        self.node.own().counts.bad(what);
    }
}

/// Logs why there is no link, and counts it. `named`: somebody has named this peer, and waits for it.
pub(super) fn report(node: &dyn Home, whom: &str, named: bool, failure: &Failure) {
    match failure {
        Failure::Myself => tracing::debug!(whom, "a connection of this node led back to it"),
        Failure::SameKey => {
            tracing::error!(whom, "no link to a peer: {failure}");
            node.own().counts.problem(&format!("{whom}: {failure}"));
        }
        Failure::Seal(_) | Failure::Downgrade(_) | Failure::NotThem { .. } => {
            node.own().counts.bad("a handshake that was refused");
            tracing::warn!(whom, "no link to a peer: {failure}");
        }
        _ if named => tracing::warn!(whom, "no link to a peer: {failure}"),
        _ => tracing::info!(whom, "no link to a peer: {failure}"),
    }
}
