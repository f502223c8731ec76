//! The frames of a relay session without a message of the mesh: those of the handshake, sealed
//! records, and the close with its reason.

use base::{NodeId, plain};
use protocol::mesh::relay::{Forward, ForwardKind, forward::relay_data};
use serde::{Deserialize, Serialize};

use crate::link::MAX_REASON;

/// The first byte of a `relayData` between Warrens. A `{` instead begins a message in clear text.
pub(super) mod kind {
    /// The first message of Noise IK.
    pub(in crate::wan) const FIRST: u8 = 0x11;
    /// The second message, of either form.
    pub(in crate::wan) const SECOND: u8 = 0x12;
    /// A sealed record.
    pub(in crate::wan) const SEALED: u8 = 0x13;
    /// The first message of Noise IKpsk2.
    pub(in crate::wan) const FIRST_WITH_PASSCODE: u8 = 0x14;
}

/// A `relayData` with this kind and content.
pub(super) fn data(own: &str, peer: &str, session: &str, kind: u8, content: &[u8]) -> String {
    relay_data(own, peer, session, &[&[kind], content].concat())
}

/// The message that ends a session. Its reason is in a field that stock peers ignore.
pub(super) fn close(own: &NodeId, peer: &NodeId, session: &str, reason: &str) -> String {
    let close = Close {
        from: &own.to_string(),
        reason: protocol::json::clip(reason, MAX_REASON),
        session,
        to: &peer.to_string(),
    };
    // It has only text, so it always serialises.
    let body = serde_json::to_string(&close).unwrap_or_default();
    format!("{{\"{}\":{body}}}", ForwardKind::RelayClose.name())
}

/// Why the other end closed a session, if it gives a reason.
pub(super) fn reason(close: &Forward<'_>) -> Option<String> {
    let close: CloseReason = close.payload().ok()?;
    Some(protocol::json::clip(&plain::line(&close.reason?), MAX_REASON).to_owned())
}

#[derive(Serialize)]
struct Close<'a> {
    #[serde(rename = "fromNodeID")]
    from: &'a str,
    reason: &'a str,
    #[serde(rename = "sessionID")]
    session: &'a str,
    #[serde(rename = "toNodeID")]
    to: &'a str,
}

#[derive(Deserialize)]
struct CloseReason {
    reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use protocol::mesh::relay::FromRelay;

    use super::*;

    const ONE: NodeId = NodeId::new([1; 32]);
    const OTHER: NodeId = NodeId::new([2; 32]);

    fn reason_of(text: &str) -> Option<String> {
        let Ok(FromRelay::Forward(forward)) = FromRelay::read(text) else { panic!("{text}") };
        assert_eq!(forward.kind, ForwardKind::RelayClose);
        reason(&forward)
    }

    #[test]
    fn a_close_has_a_reason_and_stock_peers_can_read_it() {
        assert_eq!(
            reason_of(&close(&ONE, &OTHER, "s-1", "no \"passcode\"")),
            Some("no \"passcode\"".into())
        );
        let stock = r#"{"relayClose":{"fromNodeID":"a","toNodeID":"b","sessionID":"s"}}"#;
        assert_eq!(reason_of(stock), None);
    }

    #[test]
    fn a_reason_is_bounded_and_cannot_move_a_cursor() {
        assert_eq!(
            reason_of(&close(&ONE, &OTHER, "s", "a\u{1b}[2Jb")),
            Some("a\u{fffd}[2Jb".into())
        );
        assert_eq!(
            reason_of(&close(&ONE, &OTHER, "s", &"x".repeat(999))).unwrap().len(),
            MAX_REASON
        );
    }

    #[test]
    fn data_begins_with_its_kind() {
        let text = data(&ONE.to_string(), &OTHER.to_string(), "s", kind::SEALED, b"abc");
        let Ok(FromRelay::Forward(forward)) = FromRelay::read(&text) else { panic!("{text}") };
        assert_eq!(forward.data().unwrap(), b"\x13abc");
    }
}
