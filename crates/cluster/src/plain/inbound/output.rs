//! A session's output for a plain peer.

use bytes::Bytes;
use protocol::workspace::{
    ClientMessage, ServerMessage, SessionId,
    client::{Attach, OfSession, SessionSnapshot},
    decode_reply, frame,
    peer::{PeerMessage, SessionOutput},
};
use wire::{Frame, Outbox};

use super::guest::Guest;

/// Resets a terminal, before text that repaints it.
const RESET: &str = "\x1bc";

/// Sends a session's output whenever the link has room. While it has none, nothing is taken from
/// the guest. So the session notices that its client is slow, and sends the screen instead of the
/// output that was missed.
pub(super) async fn send(
    mut guest: Guest,
    session_id: SessionId,
    after_seq: Option<u64>,
    outbox: Outbox,
) {
    guest.ask(ClientMessage::Attach(Attach { session_id, after_seq }).encode());
    loop {
        if outbox.room().await.is_err() {
            return;
        }
        let message = match guest.next().await {
            Some(Frame::Binary(bytes)) => output(bytes),
            Some(Frame::Text(text)) => match decode_reply(&text) {
                Ok(reply) => said(session_id, reply),
                Err(_) => Said::Nothing,
            },
            None => return,
        };
        let (message, is_last) = match message {
            Said::Nothing => continue,
            Said::Message(message) => (message, false),
            Said::Last(message) => (message, true),
            Said::End => return,
        };
        if outbox.push(message.encode()).is_err() || is_last {
            return;
        }
    }
}

/// The consequence of a message of the workspace.
enum Said {
    Nothing,
    Message(PeerMessage),
    /// A message after which no other follows.
    Last(PeerMessage),
    End,
}

fn output(bytes: Bytes) -> Said {
    let Ok(frame) = frame::decode(bytes) else { return Said::Nothing };
    let frame = frame.into_message();
    let (session_id, seq, data) = (frame.session_id, frame.seq, frame.data);
    Said::Message(PeerMessage::SessionOutput(SessionOutput { session_id, seq, data }))
}

fn said(session_id: SessionId, reply: ServerMessage) -> Said {
    match reply {
        ServerMessage::SessionHistory(history) => {
            let snapshot = history.snapshot.filter(|_| history.session_id == session_id);
            snapshot.map_or(Said::Nothing, repaint)
        }
        ServerMessage::SessionSnapshot(snapshot) => repaint(snapshot),
        ServerMessage::SessionKilled(of) if of.session_id == session_id => Said::End,
        ServerMessage::SessionUnknown(of) if of.session_id == session_id => unknown(session_id),
        // Only the attachment can fail, since nothing else was requested.
        ServerMessage::Error(_) => unknown(session_id),
        _ => Said::Nothing,
    }
}

fn repaint(snapshot: SessionSnapshot) -> Said {
    let SessionSnapshot { session_id, seq, data, .. } = snapshot;
    let data = format!("{RESET}{data}");
    Said::Message(PeerMessage::SessionOutput(SessionOutput { session_id, seq, data }))
}

fn unknown(session_id: SessionId) -> Said {
    Said::Last(PeerMessage::SessionUnknown(OfSession { session_id }))
}
