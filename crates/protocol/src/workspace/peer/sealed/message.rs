//! Every message in JSON between two Warrens.

use super::{
    join::{NewToken, NotInvited, Welcome},
    moving::{MoveAnswer, MoveAsk, MoveChunk, MovePrepare, MoveRefused, OfMove},
};
use crate::workspace::{
    decode::{BadMessage, decode_known, too_long},
    define::messages,
    limits::LONG_MESSAGE_MAX,
};

messages! {
    example "not_invited";
    /// A message between two Warrens.
    pub enum SealedMessage: SealedKind {
        /// An invited machine is now a member.
        "welcome" => Welcome(Welcome),
        /// The machine is not accepted.
        "not_invited" => NotInvited(NotInvited),
        /// The cluster's new secret.
        "new_token" => NewToken(NewToken),

        /// Whether an agent could move to the receiver.
        "move_ask" => MoveAsk(MoveAsk),
        /// The objections to the move.
        "move_answer" => MoveAnswer(MoveAnswer),
        /// The description of the agent.
        "move_prepare" => MovePrepare(MovePrepare),
        /// A part of one of the agent's files.
        "move_chunk" => MoveChunk(MoveChunk),
        /// All files have arrived and are on the disk.
        "move_prepared" => MovePrepared(OfMove),
        /// Asks for the state of the move.
        "move_status" => MoveStatus(OfMove),
        /// The agent stays where it was.
        "move_aborted" => MoveAborted(OfMove),
        /// The agent now belongs to the receiver.
        "move_take" => MoveTake(OfMove),
        /// The agent now belongs to the sender.
        "move_taken" => MoveTaken(OfMove),
        /// The agent will never belong to the sender by this move.
        "move_refused" => MoveRefused(MoveRefused),
    }
}

/// Reads another Warren's message; none if its type is unknown, so that it is ignored.
///
/// # Errors
/// [`BadMessage`]; a message over [`LONG_MESSAGE_MAX`] is one.
pub fn decode_sealed(text: &str) -> Result<Option<SealedMessage>, BadMessage> {
    match text.len() > LONG_MESSAGE_MAX {
        true => Err(too_long(text, LONG_MESSAGE_MAX)),
        false => decode_known(text).map(Result::ok),
    }
}
