//! Connections that become links: accepted ones, and dialled ones.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

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
    Lan,
    frames::{Broken, Frames, farewell},
    handshake::{Call, Failure, Greeting, Local, accept, connect},
    pump,
};
use crate::link::{Carrier, Link, LinkProperties};

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// The pause when no connection can be accepted, for example because the system has no more
/// sockets. Without it the loop would use a whole core.
const NO_SOCKETS: Duration = Duration::from_millis(200);

/// After this much silence the system probes whether a connection is alive.
const KEEPALIVE: Duration = Duration::from_secs(10);

type Connection = Frames<OwnedReadHalf, OwnedWriteHalf>;

/// Answers every connection, until the node stops.
pub(super) async fn listen(lan: &Arc<Lan>, listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => answer(lan, stream, from),
            Err(error) => {
                tracing::warn!(%error, "no connection of a peer can be taken for the moment");
                sleep(NO_SOCKETS).await;
            }
        }
    }
}

fn answer(lan: &Arc<Lan>, stream: TcpStream, from: SocketAddr) {
    let knock = match lan.limits.knock(from.ip()) {
        Ok(knock) => knock,
        Err(full) => {
            lan.machine.counts.bad("a connection too many");
            tracing::info!(%from, %full, "a peer's connection was not taken");
            return refuse(&stream, &full.to_string());
        }
    };
    let (tasks, lan) = (lan.machine.tasks.clone(), Arc::clone(lan));
    tasks.spawn(async move {
        let greeting = lan.machine.stop.run_until_cancelled(greet(&lan, stream)).await;
        // Greeted or refused, the connection no longer counts as one that waits for its greeting.
        drop(knock);
        let Some(greeted) = greeting else { return };
        let linked = greeted.and_then(|(frames, greeted)| up(&lan, frames, greeted, from, false));
        // Without the port, which differs at each try.
        let whom = from.ip().to_canonical().to_string();
        match linked {
            Ok(_) => lan.unlinked.linked(&whom),
            Err(failure) => {
                if failure.is_about_peer() {
                    lan.unlinked.failed(&whom, &failure.to_string());
                }
                report(&lan, &whom, false, &failure);
            }
        }
    });
}

/// Sends the reason to a connection that is refused before its greeting, if that needs no waiting.
fn refuse(stream: &TcpStream, reason: &str) {
    let word = farewell(reason);
    let length = (word.len() as u32).to_be_bytes();
    let _ = stream.try_write(&[&length[..], &word].concat());
}

async fn greet(lan: &Lan, stream: TcpStream) -> Result<(Connection, Greeting), Failure> {
    let mut frames = tuned(stream)?;
    let greeted = accept(&mut frames, &local(lan)).await?;
    Ok((frames, greeted))
}

/// Links to the node that answers at an address. A stock listener that closes the connection on the
/// first hello is dialled again with the passcode's hash, if that is allowed.
pub(super) async fn dial(lan: &Arc<Lan>, call: Call) -> Result<Arc<Link>, Failure> {
    match dial_once(lan, &call).await {
        Err(Failure::ClosedOnHello) if may_send_hash(lan, &call) => {
            let to = call.address.map(tracing::field::display);
            tracing::info!(to, "it closed on a hello: it is sent the passcode's hash");
            dial_once(lan, &Call { with_hash: true, ..call }).await
        }
        other => other,
    }
}

fn may_send_hash(lan: &Lan, call: &Call) -> bool {
    let settings = &lan.machine.settings;
    let is_known = call.address.is_some_and(|address| lan.sealed_peers.at(&address).is_some());
    settings.plain_passcode
        && lan.hash.is_some()
        && !settings.require_sealed
        && call.expects.is_none()
        && !is_known
}

async fn dial_once(lan: &Arc<Lan>, call: &Call) -> Result<Arc<Link>, Failure> {
    let Some(address) = call.address else { return Err(Failure::NoAnswer) };
    // Checked before the greeting, so that the other end does not keep a link for which this end
    // has no room.
    drop(lan.limits.link()?);
    let connecting = timeout(CONNECT, TcpStream::connect(address)).await;
    let stream = connecting.map_err(|_| Failure::NoAnswer)?.map_err(Broken::Io)?;
    let mut frames = tuned(stream)?;
    let greeted = connect(&mut frames, &local(lan), call).await?;
    up(lan, frames, greeted, address, true)
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
fn local(lan: &Lan) -> Local<'_> {
    let dial = lan.dials.fetch_add(1, Ordering::Relaxed);
    let hello = |sealed| {
        let mut hello = lan.machine.facts.hello(sealed);
        if let Some(warren) = &mut hello.warren {
            warren.instance = Some(lan.instance);
            warren.dial = Some(dial);
        }
        hello
    };
    Local {
        identity: &lan.machine.identity,
        psk: lan.machine.psk.as_ref(),
        hash: lan.hash.as_deref(),
        trusted: &lan.machine.settings.trusted,
        require_sealed: lan.machine.settings.require_sealed,
        sealed_peers: &lan.sealed_peers,
        open: hello(false),
        sealed: hello(true),
    }
}

/// Makes a greeted connection a link, and runs it in a task of its own.
fn up(
    lan: &Arc<Lan>,
    frames: Connection,
    greeted: Greeting,
    address: SocketAddr,
    opened_here: bool,
) -> Result<Arc<Link>, Failure> {
    let (lan, permit) = (Arc::clone(lan), lan.limits.link()?);
    // The node exists as long as this program runs.
    let events = lan.events.upgrade().ok_or(Failure::Stopping)?;
    let Greeting { peer, hello, dialect, order, seals } = greeted;
    let (link, outgoing) = Link::new(LinkProperties {
        peer,
        carrier: Carrier::Lan(address),
        sealed: seals.is_some(),
        dialect,
        warren: seals.is_some(),
        opened_here,
        // The handshake has checked that.
        proved: true,
        order,
    });
    lan.limits.know(address.ip());
    // Before anything is read from the link, so that its messages come from a known peer.
    events.opened(&link, Some(&hello));
    let (tasks, span, carried) = (lan.machine.tasks.clone(), link.span.clone(), Arc::clone(&link));
    let carrying = async move {
        let run = pump::Run {
            machine: &lan.machine,
            peers: &lan.peers,
            events: &*events,
            link: &carried,
        };
        let why = until_stopped(&lan, &carried, pump::run(run, outgoing, frames, seals)).await;
        events.closed(&carried, &why);
        drop(permit);
    };
    tasks.spawn(carrying.instrument(span));
    Ok(link)
}

/// Lets a link run until it ends or the node stops. Returns why it ended.
async fn until_stopped(lan: &Lan, link: &Link, running: impl Future<Output = String>) -> String {
    let mut running = std::pin::pin!(running);
    tokio::select! {
        why = &mut running => why,
        () = lan.machine.stop.cancelled() => {
            // The task runs on for a moment, and sends the reason to the other end.
            link.close("the node stops");
            running.await
        }
    }
}

/// Logs why there is no link, and notes the problems that a person should know. `named` says that
/// the peer is in the settings, so that a person expects the link.
pub(super) fn report(lan: &Lan, whom: &str, named: bool, failure: &Failure) {
    match failure {
        Failure::Myself => tracing::debug!(whom, "a connection of this node led back to it"),
        Failure::SameKey => {
            tracing::error!(whom, "no link to a peer: {failure}");
            lan.machine.counts.problem(&format!("{whom}: {failure}"));
        }
        Failure::Seal(_) | Failure::Downgrade(_) | Failure::NotThem { .. } => {
            lan.machine.counts.bad("a handshake that was refused");
            tracing::warn!(whom, "no link to a peer: {failure}");
        }
        _ if named => tracing::warn!(whom, "no link to a peer: {failure}"),
        _ => tracing::info!(whom, "no link to a peer: {failure}"),
    }
}
