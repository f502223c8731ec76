//! The data that a handshake is bound to: both ends must provide the same bytes, or nothing opens.
//! So a message recorded on one link is useless on another.

use base::NodeId;

/// Of a link on the local network, dialled by `initiator` and answered by `responder`.
pub fn lan(initiator: &NodeId, responder: &NodeId) -> Vec<u8> {
    [b"warren.mesh.lan.1", &initiator.as_bytes()[..], responder.as_bytes()].concat()
}

/// Of a session over a relay, opened by `initiator`. `session` is its id, whose letters count as
/// lower case: stock peers write the same id in either.
pub fn relay(initiator: &NodeId, responder: &NodeId, session: &str) -> Vec<u8> {
    let session = session.to_ascii_lowercase();
    let ends = [&initiator.as_bytes()[..], responder.as_bytes()].concat();
    [b"warren.mesh.relay.1", &ends[..], session.as_bytes()].concat()
}

/// Of a link between two members of a workspace's cluster, dialled by `initiator` and answered by
/// `responder`. `label` names the secret that both have.
pub fn peer(initiator: &NodeId, responder: &NodeId, label: &[u8]) -> Vec<u8> {
    [b"warren.peer.1", &initiator.as_bytes()[..], responder.as_bytes(), label].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId::new([1; 32]);
    const OTHER: NodeId = NodeId::new([2; 32]);

    #[test]
    fn a_link_is_bound_to_its_ends_and_who_dialled() {
        let expected = [b"warren.mesh.lan.1", &[1; 32][..], &[2; 32]].concat();
        assert_eq!(lan(&ONE, &OTHER), expected);
        assert_ne!(lan(&ONE, &OTHER), lan(&OTHER, &ONE));
    }

    #[test]
    fn a_link_of_members_is_bound_to_its_ends_and_its_secret() {
        let expected = [b"warren.peer.1", &[1; 32][..], &[2; 32], b"cluster"].concat();
        assert_eq!(peer(&ONE, &OTHER, b"cluster"), expected);
        assert_ne!(peer(&ONE, &OTHER, b"cluster"), peer(&OTHER, &ONE, b"cluster"));
    }

    #[test]
    fn a_relay_session_is_bound_to_its_id_in_either_case() {
        let expected = [b"warren.mesh.relay.1", &[1; 32][..], &[2; 32], b"ab-12"].concat();
        assert_eq!(relay(&ONE, &OTHER, "AB-12"), expected);
        assert_eq!(relay(&ONE, &OTHER, "ab-12"), expected);
    }
}
