//! A message for a watcher that may know that something happens in a room, but not what.

use protocol::room::{
    MachineSpecs, ParticipantInfo, PublicConfig, ServerMessage,
    message::{LlmError, LlmToken, ParticipantJoined},
};

/// Replaces the text of an error.
const HIDDEN: &str = "the room has a password: its members see why";

/// Removes the text of answers, the text of errors and people's names from a message. Ids, counts
/// and times stay: they only show that something happens.
pub(super) fn discreet(message: &ServerMessage) -> ServerMessage {
    match message.clone() {
        ServerMessage::LlmToken(token) => {
            ServerMessage::LlmToken(LlmToken { token: String::new(), ..token })
        }
        ServerMessage::LlmError(error) => {
            ServerMessage::LlmError(LlmError { error: HIDDEN.to_owned(), ..error })
        }
        ServerMessage::ParticipantJoined(joined) => {
            let participant = nameless(joined.participant);
            ServerMessage::ParticipantJoined(ParticipantJoined { participant })
        }
        other => other,
    }
}

fn nameless(participant: ParticipantInfo) -> ParticipantInfo {
    ParticipantInfo {
        nickname: String::new(),
        model: String::new(),
        endpoint: String::new(),
        specs: MachineSpecs::default(),
        config: PublicConfig::default(),
        models: Vec::new(),
        ..participant
    }
}
