//! Every message between members that has a meaning (specification, "Peer Protocol").

use super::{
    forward::{ForwardedRequest, ForwardedResponse},
    hello::{NodeName, PeerHello, PeerHelloAck},
    output::{OfSubscriber, SessionOutput, SubscribeOutput, SubscribeProjectFiles},
    project::{ProjectDeleted, ProjectUpserted},
    session::{SessionRemoved, SessionUpdate},
    snapshot::StateSnapshot,
    team::{TeamRemoved, TeamUpserted},
};
use crate::workspace::{
    client::OfSession,
    decode::{BadMessage, decode_known, too_long},
    define::messages,
    limits::SNAPSHOT_MAX,
};

messages! {
    example "peer_hello";
    /// A message from one member to another.
    pub enum PeerMessage: PeerKind {
        /// The first message of the end that dialled.
        "peer_hello" => Hello(PeerHello),
        /// Its answer.
        "peer_hello_ack" => HelloAck(PeerHelloAck),
        /// All objects that the sender knows.
        "state_snapshot" => StateSnapshot(StateSnapshot),

        /// A session was made or changed.
        "session_update" | "session_upserted" => SessionUpdate(SessionUpdate),
        /// A session is gone.
        "session_removed" => SessionRemoved(SessionRemoved),
        /// The sender does not run this session.
        "session_unknown" => SessionUnknown(OfSession),
        /// A project was made or changed.
        "project_upserted" => ProjectUpserted(ProjectUpserted),
        /// A project was deleted.
        "project_deleted" => ProjectDeleted(ProjectDeleted),
        /// A team was made or changed.
        "team_upserted" => TeamUpserted(TeamUpserted),
        /// A team was deleted.
        "team_removed" | "team_deleted" => TeamRemoved(TeamRemoved),

        /// The receiver is to take this name.
        "peer_rename_node" => RenameNode(NodeName),
        /// The sender has this name.
        "peer_display_name_update" => DisplayNameUpdate(NodeName),

        /// A client's request.
        "forwarded_request" => ForwardedRequest(ForwardedRequest),
        /// Its response.
        "forwarded_response" => ForwardedResponse(ForwardedResponse),

        /// Ask for a session's output.
        "subscribe_output" => SubscribeOutput(SubscribeOutput),
        /// No longer ask for it.
        "unsubscribe_output" => UnsubscribeOutput(OfSubscriber),
        /// A session's output.
        "session_output" => SessionOutput(SessionOutput),
        /// Ask for changes of a project's files.
        "subscribe_project_files" => SubscribeProjectFiles(SubscribeProjectFiles),
        /// No longer ask for them.
        "unsubscribe_project_files" => UnsubscribeProjectFiles(OfSubscriber),
        /// A project's files changed.
        "project_files_changed" => ProjectFilesChanged(OfSubscriber),
    }
}

/// The types of old messages about elections. By the specification they are ignored.
pub const LEGACY: [&str; 9] = [
    "heartbeat",
    "heartbeat_ack",
    "request_vote",
    "vote_response",
    "leader_announce",
    "start_election_now",
    "clear_stickiness_for_election",
    "promote_request",
    "request_catchup",
];

/// Anything that another member may send.
#[derive(Debug, Clone, PartialEq)]
pub enum FromPeer {
    /// A message with a meaning.
    Message(PeerMessage),
    /// One of [`LEGACY`], to be ignored.
    Legacy(&'static str),
    /// A message of an unknown type, cut to 64 bytes, to be ignored.
    Unknown(String),
}

/// Reads another member's message. Unknown fields are ignored, and so are fields of the wrong type
/// if the message has a meaning without them.
///
/// # Errors
/// [`BadMessage`] for text that is not a JSON object with a `type`, for a message that lacks a field
/// which it needs, and for one over [`SNAPSHOT_MAX`].
pub fn decode_peer(text: &str) -> Result<FromPeer, BadMessage> {
    if text.len() > SNAPSHOT_MAX {
        return Err(too_long(text, SNAPSHOT_MAX));
    }
    Ok(decode_known(text)?.map_or_else(ignored, FromPeer::Message))
}

fn ignored(kind: String) -> FromPeer {
    let legacy = LEGACY.into_iter().find(|legacy| *legacy == kind);
    legacy.map_or(FromPeer::Unknown(kind), FromPeer::Legacy)
}

impl PeerMessage {
    /// The message as JSON, once with each name under which members may know it. A member that
    /// understands several copies applies only one.
    pub fn spellings(&self) -> Vec<String> {
        let text = self.encode();
        let other = match self.kind() {
            PeerKind::SessionUpdate => "session_upserted",
            PeerKind::TeamRemoved => "team_deleted",
            _ => return vec![text],
        };
        let renamed = text.replacen(self.name(), other, 1);
        vec![text, renamed]
    }
}
