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
        /// An invited machine is a member.
        "welcome" => Welcome(Welcome),
        /// It is not.
        "not_invited" => NotInvited(NotInvited),
        /// The cluster's new secret.
        "new_token" => NewToken(NewToken),

        /// Whether an agent could move to the receiver.
        "move_ask" => MoveAsk(MoveAsk),
        /// The objections to the move.
        "move_answer" => MoveAnswer(MoveAnswer),
        /// The description of the agent.
        "move_prepare" => MovePrepare(MovePrepare),
        /// A part of a file of it.
        "move_chunk" => MoveChunk(MoveChunk),
        /// All of it has arrived and is on the disk.
        "move_prepared" => MovePrepared(OfMove),
        /// What became of the move?
        "move_status" => MoveStatus(OfMove),
        /// The agent stays where it was.
        "move_aborted" => MoveAborted(OfMove),
        /// The agent is the receiver's.
        "move_take" => MoveTake(OfMove),
        /// It is the sender's.
        "move_taken" => MoveTaken(OfMove),
        /// It never will be the sender's by this move.
        "move_refused" => MoveRefused(MoveRefused),
    }
}

/// Reads another Warren's message; none of a type that this version does not know, which is ignored.
///
/// # Errors
/// [`BadMessage`]; a message over [`LONG_MESSAGE_MAX`] is one.
pub fn decode_sealed(text: &str) -> Result<Option<SealedMessage>, BadMessage> {
    match text.len() > LONG_MESSAGE_MAX {
        true => Err(too_long(text, LONG_MESSAGE_MAX)),
        false => decode_known(text).map(Result::ok),
    }
}
