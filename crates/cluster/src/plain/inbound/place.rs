//! Where a plain peer's request is served. Only its owner can serve requests about a session.

use protocol::workspace::{ClientMessage, RequestKind, SessionId};

use crate::plain::rights::Parties;

/// Where a request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// This member's workspace, which forwards it if another member with a key must serve it.
    Here,
    /// Another plain peer.
    Peer(String),
    /// No member is known to run the session, or the asking peer itself does.
    Unknown(SessionId),
    /// Nowhere, for this reason.
    Refused(&'static str),
}

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This member, or another one with a key.
    Member,
    /// A plain peer.
    Plain(String),
}

/// Where a request is served. `owner_of` gives the owners of sessions.
pub(super) fn of(
    message: &ClientMessage,
    parties: Parties<'_>,
    owner_of: impl FnOnce(SessionId) -> Option<Owner>,
) -> Place {
    match message.kind() {
        RequestKind::Auth => Place::Refused("peers authenticate with peer_hello"),
        RequestKind::Attach | RequestKind::Detach => {
            Place::Refused("output is asked for with subscribe_output")
        }
        RequestKind::WatchProjectFiles | RequestKind::UnwatchProjectFiles => {
            Place::Refused("changes of files are asked for with subscribe_project_files")
        }
        _ => session_of(message)
            .map_or(Place::Here, |session| of_session(session, parties, owner_of(session))),
    }
}

/// Where requests about a session are served.
pub(super) fn of_session(session: SessionId, parties: Parties<'_>, owner: Option<Owner>) -> Place {
    match owner {
        None => Place::Unknown(session),
        Some(Owner::Member) => Place::Here,
        Some(Owner::Plain(node)) if node == parties.peer => Place::Unknown(session),
        Some(Owner::Plain(node)) => Place::Peer(node),
    }
}

/// The session that a request concerns.
pub(crate) fn session_of(message: &ClientMessage) -> Option<SessionId> {
    match message {
        ClientMessage::Attach(of) => Some(of.session_id),
        ClientMessage::SendInput(of) => Some(of.session_id),
        ClientMessage::TerminalInput(of) => Some(of.session_id),
        ClientMessage::Resize(of) => Some(of.session_id),
        ClientMessage::RenameSession(of) => Some(of.session_id),
        ClientMessage::MoveSession(of) => Some(of.session_id),
        ClientMessage::GetHistory(of) => Some(of.session_id),
        ClientMessage::GetTurns(of) => Some(of.session_id),
        ClientMessage::PermissionResponse(of) => of.session_id,
        ClientMessage::KillSession(of)
        | ClientMessage::Interrupt(of)
        | ClientMessage::TakeControl(of) => Some(of.session_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{client::OfSession, decode_request};

    use super::*;

    const PARTIES: Parties<'_> = Parties { me: "me", peer: "peer" };
    const ID: SessionId = SessionId::from_random(7);

    fn place(owner: Option<Owner>) -> Place {
        of(&ClientMessage::Interrupt(OfSession { session_id: ID }), PARTIES, |_| owner)
    }

    #[test]
    fn a_session_is_served_by_its_owner() {
        assert_eq!(place(Some(Owner::Member)), Place::Here);
        assert_eq!(place(Some(Owner::Plain("other".into()))), Place::Peer("other".into()));
        assert_eq!(place(None), Place::Unknown(ID));
    }

    #[test]
    fn a_peer_that_asks_for_its_own_session_asks_in_vain() {
        assert_eq!(place(Some(Owner::Plain("peer".into()))), Place::Unknown(ID));
    }

    #[test]
    fn there_are_messages_of_their_own_for_subscriptions() {
        let place = |text: &str| of(&decode_request(text).unwrap(), PARTIES, |_| None);
        assert_eq!(place(r#"{"type":"list_sessions"}"#), Place::Here);
        let attach = format!(r#"{{"type":"attach","session_id":"{ID}"}}"#);
        for refused in [r#"{"type":"auth","token":"t"}"#, r#"{"type":"detach"}"#, &attach] {
            assert!(matches!(place(refused), Place::Refused(_)), "{refused}");
        }
    }
}
