//! Serves requests through guests.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::{OfSession, WithSession},
    decode_reply,
};
use replica::Kind;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::timeout,
};
use wire::Frame;

use super::{Guest, Request, Requester, place::session_of, reply};
use crate::{circuit::Circuit, plain::saying};

/// A request in turn must be answered within this time.
const DEADLINE: Duration = Duration::from_secs(15);
/// The same for a request beside the others, which may copy files or wait for a team.
const LONG_DEADLINE: Duration = Duration::from_secs(15 * 60);

/// Serves requests one after the other until their link is gone. The present one is finished; the
/// ones behind it are forgotten, and may come again over another link.
pub(super) async fn in_turn(requester: Requester, mut requests: mpsc::Receiver<Request>) {
    let mut guest = None;
    loop {
        let request = tokio::select! {
            request = requests.recv() => request,
            // Events are ignored here, but they must not fill the guest's queue.
            frame = next_event(&mut guest) => {
                guest = guest.filter(|_| frame.is_some());
                continue;
            }
        };
        let Some(request) = request else { return };
        if requests.is_closed() {
            if let Some(id) = &request.id {
                requester.forget(id);
            }
            continue;
        }
        guest = guest.or_else(|| Guest::open(&requester));
        let answer = one(&requester, guest.as_mut(), &request, DEADLINE).await;
        if let Some(id) = request.id {
            requester.answered_in_time(id, answer).await;
        }
    }
}

/// Serves one request with a guest of its own.
pub(super) async fn beside(requester: Requester, request: Request, _place: OwnedSemaphorePermit) {
    let mut guest = Guest::open(&requester);
    let answer = one(&requester, guest.as_mut(), &request, LONG_DEADLINE).await;
    if let Some(id) = request.id {
        requester.answered_in_time(id, answer).await;
    }
}

/// Has a request served by another plain peer. The first message that comes back is the answer.
pub(super) async fn relayed(
    requester: Requester,
    id: String,
    text: String,
    mut circuit: Circuit,
    _place: OwnedSemaphorePermit,
) {
    // If the circuit has ended, reading it says so.
    let _ended = circuit.send(Frame::from(text));
    let answer = match circuit.next().await {
        Ok(Frame::Text(text)) => text.as_str().to_owned(),
        Ok(Frame::Binary(_)) => ServerMessage::error("its answer cannot be read").encode(),
        Err(ended) => ServerMessage::error(format!("its owner: {ended}")).encode(),
    };
    requester.answered_in_time(id, answer).await;
}

async fn next_event(guest: &mut Option<Guest>) -> Option<Frame> {
    match guest {
        Some(guest) => guest.next().await,
        None => std::future::pending().await,
    }
}

async fn one(
    requester: &Requester,
    guest: Option<&mut Guest>,
    request: &Request,
    deadline: Duration,
) -> String {
    let Some(guest) = guest else {
        return ServerMessage::error("this machine is starting").encode();
    };
    guest.ask(request.text.clone());
    let is_unanswered = reply::has_no_answer(&request.message);
    if is_unanswered {
        guest.ask(ClientMessage::Keepalive.encode());
    }
    let answer = timeout(deadline, answer(guest, &request.message, is_unanswered)).await;
    match answer {
        Ok(Some(Answer::Own(text))) => text,
        Ok(Some(Answer::Done)) => status(requester, &request.message),
        Ok(None) => ServerMessage::error("the workspace ended the connection").encode(),
        Err(_) => {
            let words = format!("it was not answered within {} s", deadline.as_secs());
            ServerMessage::error(words).encode()
        }
    }
}

enum Answer {
    /// An answer of its own.
    Own(String),
    /// It was carried out, and has no answer of its own.
    Done,
}

/// Waits for the answer. `None` if the guest ends first.
async fn answer(guest: &mut Guest, request: &ClientMessage, is_unanswered: bool) -> Option<Answer> {
    loop {
        let Frame::Text(text) = guest.next().await? else { continue };
        let Ok(reply) = decode_reply(&text) else { continue };
        if is_unanswered && reply == ServerMessage::KeepaliveAck {
            return Some(Answer::Done);
        }
        if reply::is_answer(request, &reply) {
            return Some(Answer::Own(text.as_str().to_owned()));
        }
    }
}

/// The present state of the session of a request.
fn status(requester: &Requester, request: &ClientMessage) -> String {
    let Some(session_id) = session_of(request) else {
        return ServerMessage::KeepaliveAck.encode();
    };
    let entry = requester.shared.directory.get(Kind::SESSION, &session_id.to_string());
    let session = entry.and_then(|entry| saying::session(&entry));
    match session {
        Some(session) => {
            let session = Box::new(session.info());
            ServerMessage::SessionStatusChanged(WithSession { session }).encode()
        }
        None => ServerMessage::SessionUnknown(OfSession { session_id }).encode(),
    }
}
