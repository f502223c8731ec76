//! The dialling end.

use std::time::Duration;

use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, WarrenHello, encode},
};
use seal::{Initiator, PasscodeKey, SealError, prologue};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{
    Broken, Call, Failure, Frames, GREETED_WITHIN, Greeting, GreetingFrame, Local, MAX_OTHERS,
    kind, next_frame, proved_hello, refuse,
};
use crate::{greeting, link::Order, peer::PeerId};

/// After this time an unanswered hello is sent again. Stock listeners lose a hello that comes
/// immediately.
const AGAIN: Duration = Duration::from_secs(3);

/// Greets the listener at the other end. A refused peer gets the reason.
pub(in crate::lan) async fn connect(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    call: &Call,
) -> Result<Greeting, Failure> {
    let greeted = converse(frames, local, call).await;
    if let Err(failure) = &greeted {
        refuse(frames, failure).await;
    }
    greeted
}

async fn converse(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    call: &Call,
) -> Result<Greeting, Failure> {
    let greeting = timeout(GREETED_WITHIN, greet(frames, local, call)).await;
    let (ack, dialect) = greeting.map_err(|_| Failure::Silent)??;
    match &ack.warren {
        None => plain(local, call, ack, dialect),
        Some(theirs) => {
            check(local, call, theirs)?;
            let sealing = timeout(GREETED_WITHIN, seal(frames, local, theirs)).await;
            let greeted = sealing.map_err(|_| Failure::Unfinished)??;
            local.sealed_peers.sealed(&theirs.node_id, call.address);
            Ok(greeted)
        }
    }
}

/// Sends hellos until one is answered.
async fn greet(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    call: &Call,
) -> Result<(Hello, Dialect), Failure> {
    let dialect = if call.expects.is_some() { Dialect::Flat } else { Dialect::Wrapped };
    let hello = encode(&ClusterMessage::Hello(Box::new(local.hello(call))), dialect);
    loop {
        frames.send(&hello).await.map_err(on_hello)?;
        if let Ok(answer) = timeout(AGAIN, ack(frames)).await {
            return answer;
        }
    }
}

/// The answer to a hello. Cancel safe.
async fn ack(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) -> Result<(Hello, Dialect), Failure> {
    for _ in 0..MAX_OTHERS {
        match next_frame(frames).await {
            Ok(GreetingFrame::HelloAck(ack, dialect)) => return Ok((*ack, dialect)),
            Ok(_) => {}
            Err(Failure::Broken(broken)) => return Err(on_hello(broken)),
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::NoHello)
}

/// The failure of a connection that ends before the hello is answered. Stock listeners do so with
/// another passcode or none.
fn on_hello(broken: Broken) -> Failure {
    match broken {
        Broken::Closed | Broken::Io(_) => Failure::ClosedOnHello,
        other => Failure::Broken(other),
    }
}

/// Completes the greeting with a peer that cannot seal links.
fn plain(
    local: &Local<'_>,
    call: &Call,
    ack: Hello,
    dialect: Dialect,
) -> Result<Greeting, Failure> {
    let known = call.address.and_then(|address| local.sealed_peers.at(&address));
    let known = known.or_else(|| local.warren_of(ack.device_info.id.as_str()));
    if let Some(node) = call.expects.or(known) {
        return Err(Failure::Downgrade(node));
    }
    if local.require_sealed {
        return Err(Failure::Unsealed);
    }
    local.same_passcode(ack.cluster_passcode_hash.as_deref())?;
    Greeting::plain(ack, dialect)
}

fn check(local: &Local<'_>, call: &Call, theirs: &WarrenHello) -> Result<(), Failure> {
    local.not_myself(theirs)?;
    match call.expects {
        Some(expected) if expected != theirs.node_id => {
            Err(Failure::NotThem { expected, found: theirs.node_id })
        }
        _ => Ok(()),
    }
}

/// Completes the greeting with a Warren: seals the link.
async fn seal(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    theirs: &WarrenHello,
) -> Result<Greeting, Failure> {
    let (own, peer) = (local.id(), theirs.node_id);
    let psk = psk(local, theirs)?;
    let mut noise = Initiator::new(local.identity, &peer, psk, &prologue::lan(&own, &peer))?;
    let first = noise.write(&greeting::write(local.sealed.clone(), ClusterMessage::Hello))?;
    let kind = if psk.is_some() { kind::FIRST_WITH_PASSCODE } else { kind::FIRST };
    frames.send(&[&[kind], &first[..]].concat()).await?;
    let (sealed, payload) = noise.finish(&second(frames).await?)?;
    let (hello, _) = proved_hello(&payload, &peer)?;
    let (mut sealer, opener) = sealed.split();
    // This proves to the other end that message 1 was not a recording.
    let mut proof = Vec::new();
    sealer.payload(&[], &mut proof)?;
    frames.write(&proof).await?;
    if peer == own {
        return Err(Failure::SameKey);
    }
    let order = order(&hello, local.sealed.warren.as_ref().and_then(|own| own.dial));
    let (peer, seals) = (PeerId::Node(peer), Some((sealer, opener)));
    Ok(Greeting { peer, hello, dialect: Dialect::Flat, order, seals })
}

fn order(hello: &Hello, dial: Option<u64>) -> Order {
    let instance = hello.warren.as_ref().and_then(|warren| warren.instance);
    Order { instance, dial: dial.unwrap_or_default() }
}

/// The passcode's key, if either end wants it proved.
fn psk<'a>(local: &Local<'a>, theirs: &WarrenHello) -> Result<Option<&'a PasscodeKey>, Failure> {
    if !theirs.psk && !local.wants_passcode(&theirs.node_id) {
        return Ok(None);
    }
    local.psk.map(Some).ok_or(Failure::OneHasNone)
}

/// Message 2. A second answer, to a repeated hello, is skipped.
async fn second(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) -> Result<Vec<u8>, Failure> {
    for _ in 0..MAX_OTHERS {
        match next_frame(frames).await? {
            GreetingFrame::Noise(kind::SECOND, message) => return Ok(message),
            GreetingFrame::Noise(..) => break,
            GreetingFrame::Hello(..) | GreetingFrame::HelloAck(..) | GreetingFrame::Other => {}
        }
    }
    Err(Failure::Seal(SealError::Malformed("something else than the answer of a handshake")))
}
