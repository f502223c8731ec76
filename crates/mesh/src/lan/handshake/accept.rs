//! The listening end.

use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, WarrenHello, encode},
};
use seal::{MAX_RECORD, Opener, PasscodeKey, Responder, SealError, prologue};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{
    Failure, Frames, GREETED_WITHIN, Greeting, GreetingFrame, Local, MAX_OTHERS, kind, next_frame,
    proved_hello, refuse,
};
use crate::{greeting, link::Order, peer::PeerId};

/// Greets a peer that has connected. A refused peer gets the reason.
pub(in crate::lan) async fn accept(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
) -> Result<Greeting, Failure> {
    let greeted = converse(frames, local).await;
    if let Err(failure) = &greeted {
        refuse(frames, failure).await;
    }
    greeted
}

async fn converse(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
) -> Result<Greeting, Failure> {
    let hello = timeout(GREETED_WITHIN, hello(frames)).await;
    let (hello, dialect) = hello.map_err(|_| Failure::Silent)??;
    match &hello.warren {
        None => plain(frames, local, hello, dialect).await,
        Some(theirs) => {
            if let Err(myself) = local.not_myself(theirs) {
                // The dialling end is this process as well. From the answer it learns that it has
                // found itself.
                frames.send(&ack(local, &hello, dialect)).await?;
                return Err(myself);
            }
            let sealing =
                timeout(GREETED_WITHIN, seal(frames, local, &hello, dialect, theirs)).await;
            let greeted = sealing.map_err(|_| Failure::Unfinished)??;
            local.sealed_peers.sealed(&theirs.node_id, None);
            Ok(greeted)
        }
    }
}

async fn hello(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) -> Result<(Hello, Dialect), Failure> {
    for _ in 0..MAX_OTHERS {
        if let GreetingFrame::Hello(hello, dialect) = next_frame(frames).await? {
            return Ok((*hello, dialect));
        }
    }
    Err(Failure::NoHello)
}

/// Completes the greeting with a peer that cannot seal links.
async fn plain(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    hello: Hello,
    dialect: Dialect,
) -> Result<Greeting, Failure> {
    if let Some(node) = local.warren_of(hello.device_info.id.as_str()) {
        return Err(Failure::Downgrade(node));
    }
    if local.require_sealed {
        return Err(Failure::Unsealed);
    }
    local.same_passcode(hello.cluster_passcode_hash.as_deref())?;
    let ack = ack(local, &hello, dialect);
    let greeted = Greeting::plain(hello, dialect)?;
    frames.send(&ack).await?;
    Ok(greeted)
}

fn ack(local: &Local<'_>, hello: &Hello, dialect: Dialect) -> Vec<u8> {
    encode(&ClusterMessage::HelloAck(Box::new(local.ack(hello))), dialect)
}

/// Completes the greeting with a Warren: seals the link.
async fn seal(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    local: &Local<'_>,
    hello: &Hello,
    dialect: Dialect,
    theirs: &WarrenHello,
) -> Result<Greeting, Failure> {
    let (own, peer) = (local.id(), theirs.node_id);
    let ack = ack(local, hello, dialect);
    frames.send(&ack).await?;
    let (with_passcode, first) = first(frames, &ack).await?;
    let psk = psk(local, theirs, with_passcode)?;
    let mut noise = Responder::new(local.identity, psk, &prologue::lan(&peer, &own))?;
    let payload = noise.read(&first, &peer)?;
    let (hello, dial) = proved_hello(&payload, &peer)?;
    let (second, sealed) =
        noise.finish(&greeting::write(local.sealed.clone(), ClusterMessage::HelloAck))?;
    frames.send(&[&[kind::SECOND], &second[..]].concat()).await?;
    let (sealer, mut opener) = sealed.split();
    proof(frames, &mut opener).await?;
    // Only after the proof. Before it, anyone could claim this node's id, and so cause a false
    // alarm.
    if peer == own {
        return Err(Failure::SameKey);
    }
    let instance = hello.warren.as_ref().and_then(|warren| warren.instance);
    let (peer, seals) = (PeerId::Node(peer), Some((sealer, opener)));
    Ok(Greeting { peer, hello, dialect: Dialect::Flat, order: Order { instance, dial }, seals })
}

/// Message 1, and whether it has the form with a passcode. A repeated hello is answered again,
/// since the dialling end may have sent it before it got the answer.
async fn first(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    ack: &[u8],
) -> Result<(bool, Vec<u8>), Failure> {
    for _ in 0..MAX_OTHERS {
        match next_frame(frames).await? {
            GreetingFrame::Noise(kind::FIRST, message) => return Ok((false, message)),
            GreetingFrame::Noise(kind::FIRST_WITH_PASSCODE, message) => return Ok((true, message)),
            GreetingFrame::Hello(..) => frames.send(ack).await?,
            GreetingFrame::Noise(..) => break,
            GreetingFrame::HelloAck(..) | GreetingFrame::Other => {}
        }
    }
    Err(Failure::Seal(SealError::Malformed("something else than the beginning of a handshake")))
}

/// The passcode's key, if the peer proves it.
fn psk<'a>(
    local: &Local<'a>,
    theirs: &WarrenHello,
    with_passcode: bool,
) -> Result<Option<&'a PasscodeKey>, Failure> {
    match with_passcode {
        true => local.psk.map(Some).ok_or(Failure::OneHasNone),
        false if local.wants_passcode(&theirs.node_id) => Err(Failure::OneHasNone),
        false => Ok(None),
    }
}

/// Waits for a record that only the other end of this same handshake can have sealed.
async fn proof(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    opener: &mut Opener,
) -> Result<(), Failure> {
    let record = frames.incoming.next(MAX_RECORD).await?;
    // A peer that could not read message 2 says so in clear text.
    if let Some(reason) = super::farewell_reason(&record) {
        return Err(Failure::Refused(reason));
    }
    match opener.record(&record)? {
        Some(payload) if payload.is_empty() => Ok(()),
        _ => Err(Failure::Seal(SealError::Malformed("something else than an empty first payload"))),
    }
}
