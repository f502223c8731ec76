//! Requests about the connection itself.

use protocol::workspace::ServerMessage;
use workspace::Refusal;

use super::asker::Answer;

pub(crate) fn keepalive() -> Answer {
    Ok(Some(ServerMessage::KeepaliveAck))
}

pub(crate) fn authenticated_already() -> Answer {
    Err(Refusal::invalid("this connection has authenticated already"))
}
