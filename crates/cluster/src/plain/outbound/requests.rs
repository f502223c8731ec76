//! The requests that a plain peer serves.

use protocol::workspace::{ClientMessage, RequestKind, Role, ServerMessage, client::InputAck};

use crate::plain::inbound::input_id;

/// The role that a request needs; `None` if a plain peer does not serve it.
pub(super) fn role(kind: RequestKind) -> Option<Role> {
    use RequestKind as K;
    match kind {
        K::Keepalive
        | K::Attach
        | K::Detach
        | K::GetHistory
        | K::WatchProjectFiles
        | K::UnwatchProjectFiles => Some(Role::Read),
        K::SendInput
        | K::TerminalInput
        | K::Resize
        | K::TakeControl
        | K::Interrupt
        | K::PermissionResponse
        | K::KillSession
        | K::RenameSession => Some(Role::Write),
        K::RenameNode => Some(Role::Admin),
        _ => None,
    }
}

/// The reply that the client expects beside a peer's answer, since a peer may send no
/// acknowledgements.
pub(super) fn completion(request: &ClientMessage, reply: &ServerMessage) -> Option<ServerMessage> {
    match (request, reply) {
        (_, ServerMessage::InputAck(_)) => None,
        (ClientMessage::KillSession(_), ServerMessage::SessionKilled(_)) => None,
        (ClientMessage::KillSession(of), _) => Some(ServerMessage::SessionKilled(*of)),
        (request, _) => {
            let input_id = input_id(request)?.to_owned();
            Some(ServerMessage::InputAck(InputAck { input_id, turn: None }))
        }
    }
}
