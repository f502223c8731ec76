//! Messages of other members of a cluster: nothing panics, errors stay short and fit for a terminal,
//! and a message that was read is written and read again the same, with each of its names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::workspace::peer::{FromPeer, PeerMessage, SessionObject, decode_peer};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match decode_peer(text) {
        Ok(FromPeer::Message(message)) => again(message),
        Ok(FromPeer::Unknown(kind)) => assert!(kind.len() <= 64),
        Ok(FromPeer::Legacy(_)) => {}
        Err(bad) => {
            let words = bad.to_string();
            assert!(words.len() < 2048 && !words.contains(char::is_control), "{words:?}");
        }
    }
});

fn again(message: PeerMessage) {
    let message = in_order(message);
    for text in message.spellings() {
        assert_eq!(decode_peer(&text), Ok(FromPeer::Message(message.clone())), "{text}");
    }
    if let PeerMessage::SessionUpdate(update) = message {
        let session = update.session;
        let again = SessionObject::from_text(session.text.as_str(), session.generation);
        assert_eq!(again.as_ref(), Ok(&session));
        assert_eq!(session.info().id, session.id);
    }
}

/// A snapshot as it is after it was written: one object for each id, by their ids, and nothing that
/// is only read.
fn in_order(message: PeerMessage) -> PeerMessage {
    let PeerMessage::StateSnapshot(mut snapshot) = message else { return message };
    let state = &mut snapshot.state;
    (state.skipped, state.tombstones) = (0, Vec::new());
    state.sessions.sort_by_key(|session| session.id);
    state.sessions.dedup_by_key(|session| session.id);
    state.projects.sort_by_key(|project| project.id);
    state.projects.dedup_by_key(|project| project.id);
    state.teams.sort_by_key(|team| team.id);
    state.teams.dedup_by_key(|team| team.id);
    PeerMessage::StateSnapshot(snapshot)
}
