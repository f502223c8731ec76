//! Messages of elections, which the specification keeps and ignores.

/// Their types.
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

/// The type of this name, if it is one of theirs.
pub(super) fn named(name: &str) -> Option<&'static str> {
    LEGACY.into_iter().find(|legacy| *legacy == name)
}
