//! Requests about the connection itself.

use protocol::workspace::ServerMessage;

use super::asker::Answer;
use crate::refusal::Refusal;

pub(in crate::socket) fn keepalive() -> Answer {
    Ok(Some(ServerMessage::KeepaliveAck))
}

pub(in crate::socket) fn authenticated_already() -> Answer {
    Err(Refusal::invalid("this connection has authenticated already"))
}
