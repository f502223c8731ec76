//! Input for sessions. These handlers never wait, so they run in the connection's own task.

use std::time::Instant;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::workspace::{
    ServerMessage,
    client::{InputAck, OfSession, PermissionResponse, Resize, SendInput, TerminalInput},
};
use tokio::sync::oneshot;
use wire::Outbox;
use workspace::{PermissionAnswer, Refusal, TypingTime};

use super::asker::{Answer, Asker};

pub(crate) fn prompt(asker: &Asker, request: SendInput) -> Answer {
    let SendInput { session_id, input, input_id } = request;
    let sessions = &asker.services.sessions;
    let prompted = sessions.prompt(session_id, Some(asker.client), input, input_id.as_deref())?;
    if prompted.is_new {
        asker.services.audit.typed(&asker.me.who, session_id, Instant::now());
    }
    let stored = sessions.prompts_stored(session_id);
    match (stored, input_id.map(|input_id| acknowledged(input_id, prompted.turn))) {
        (None, answer) => Ok(answer),
        (Some(stored), answer) => {
            // Not waited for: this runs in the connection's own task.
            tokio::spawn(acknowledge_stored(stored, answer, asker.outbox.clone()));
            Ok(None)
        }
    }
}

/// Waits until the prompts are stored, and then acknowledges one. Prompts that come at the same time share
/// one write.
async fn acknowledge_stored(
    stored: BoxFuture<'static, ()>,
    answer: Option<ServerMessage>,
    outbox: Outbox,
) {
    stored.await;
    if let Some(answer) = answer {
        // An error means that the client has gone, and nobody needs the acknowledgement.
        let _ = outbox.push(answer.encode());
    }
}

pub(crate) fn type_in(asker: &Asker, request: TerminalInput) -> Answer {
    let (id, input_id) = (request.session_id, request.input_id.clone());
    let keys = request.bytes().map_err(|error| Refusal::failed(&error))?;
    let sessions = &asker.services.sessions;
    let typed = sessions.type_in(id, asker.client, Bytes::from(keys), input_id.as_deref())?;
    if typed.is_some() {
        asker.services.audit.typed(&asker.me.who, id, Instant::now());
    }
    let answer = input_id.map(|input_id| acknowledged(input_id, None));
    match (typed, answer) {
        (Some(TypingTime::Later(is_typed)), Some(answer)) => {
            tokio::spawn(acknowledge(is_typed, answer, asker.outbox.clone()));
            Ok(None)
        }
        (_, answer) => Ok(answer),
    }
}

/// Acknowledges keys once they are typed. A client that types faster than the program reads waits for
/// this acknowledgement before it types more.
async fn acknowledge(is_typed: oneshot::Receiver<()>, answer: ServerMessage, outbox: Outbox) {
    if is_typed.await.is_ok() {
        // An error means that the client has gone, and nobody needs the acknowledgement.
        let _ = outbox.push(answer.encode());
    }
}

pub(crate) fn interrupt(asker: &Asker, request: OfSession) -> Answer {
    asker.services.sessions.interrupt(request.session_id)?;
    asker.note("session.interrupt", &request.session_id.to_string(), "done");
    Ok(None)
}

pub(crate) fn take_control(asker: &Asker, request: OfSession) -> Answer {
    asker.services.sessions.take_control(request.session_id, asker.client)?;
    Ok(None)
}

pub(crate) fn resize(asker: &Asker, request: Resize) -> Answer {
    let Resize { session_id, cols, rows, visible } = request;
    asker.services.sessions.resize(session_id, asker.client, cols, rows, visible)?;
    Ok(None)
}

pub(crate) fn permit(asker: &Asker, request: PermissionResponse) -> Answer {
    let PermissionResponse { session_id, request_id, allow, message } = request;
    let (sessions, request_id) = (&asker.services.sessions, request_id.to_string());
    let id = session_id.or_else(|| sessions.asker(&request_id));
    let id = id.ok_or_else(|| Refusal::Invalid(format!("nobody asks {request_id} any more")))?;
    sessions.permit(id, PermissionAnswer { request_id, allow, message })?;
    let what = if allow { "permission.allow" } else { "permission.deny" };
    asker.note(what, &id.to_string(), "done");
    Ok(None)
}

/// The acknowledgement of an input. An input that was applied before is acknowledged again, because the
/// first acknowledgement may have been lost.
fn acknowledged(input_id: String, turn: Option<u64>) -> ServerMessage {
    ServerMessage::InputAck(InputAck { input_id, turn })
}
