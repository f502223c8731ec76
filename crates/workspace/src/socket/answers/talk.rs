//! What is said to sessions. None of it waits.

use std::time::Instant;

use bytes::Bytes;
use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::{InputAck, PermissionResponse, SendInput, TerminalInput},
};

use super::{Answer, Asker};
use crate::{engine::PermissionAnswer, refusal::Refusal};

pub(super) fn answer(asker: &Asker, message: ClientMessage) -> Answer {
    let (sessions, client) = (&asker.shared.sessions, asker.client);
    match message {
        ClientMessage::SendInput(input) => return prompt(asker, input),
        ClientMessage::TerminalInput(input) => return type_in(asker, input),
        ClientMessage::Interrupt(of) => {
            sessions.interrupt(of.session_id)?;
            let id = of.session_id.to_string();
            asker.shared.audit.note(&asker.me.who, "session.interrupt", &id, "done");
        }
        ClientMessage::TakeControl(of) => sessions.take_control(of.session_id, client)?,
        ClientMessage::Resize(to) => {
            sessions.resize(to.session_id, client, to.cols, to.rows, to.visible)?;
        }
        ClientMessage::PermissionResponse(response) => permit(asker, response)?,
        other => {
            let name = other.name();
            return Err(Refusal::Invalid(format!("{name} makes no sense here")));
        }
    }
    Ok(None)
}

fn prompt(asker: &Asker, input: SendInput) -> Answer {
    let SendInput { session_id, input, input_id } = input;
    let sessions = &asker.shared.sessions;
    let prompted = sessions.prompt(session_id, Some(asker.client), input, input_id.as_deref())?;
    if prompted.is_new {
        asker.shared.audit.typed(&asker.me.who, session_id, Instant::now());
    }
    Ok(input_id.map(|input_id| acknowledged(input_id, prompted.turn)))
}

fn type_in(asker: &Asker, input: TerminalInput) -> Answer {
    let (id, input_id) = (input.session_id, input.input_id.clone());
    let keys = input.bytes().map_err(|error| Refusal::failed(&error))?;
    let sessions = &asker.shared.sessions;
    if sessions.type_in(id, asker.client, Bytes::from(keys), input_id.as_deref())? {
        asker.shared.audit.typed(&asker.me.who, id, Instant::now());
    }
    Ok(input_id.map(|input_id| acknowledged(input_id, None)))
}

/// Once more, if it was applied before: that acknowledgement may have been lost.
fn acknowledged(input_id: String, turn: Option<u64>) -> ServerMessage {
    ServerMessage::InputAck(InputAck { input_id, turn })
}

fn permit(asker: &Asker, response: PermissionResponse) -> Result<(), Refusal> {
    let PermissionResponse { session_id, request_id, allow, message } = response;
    let (sessions, request_id) = (&asker.shared.sessions, request_id.to_string());
    let id = session_id.or_else(|| sessions.who_asks(&request_id));
    let id = id.ok_or_else(|| Refusal::Invalid(format!("nobody asks {request_id} any more")))?;
    sessions.permit(id, PermissionAnswer { request_id, allow, message })?;
    let what = if allow { "permission.allow" } else { "permission.deny" };
    asker.shared.audit.note(&asker.me.who, what, &id.to_string(), "done");
    Ok(())
}
