//! Changes of a project's files for a plain peer.

use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::OfProject,
    decode_reply,
    peer::{OfSubscriber, PeerMessage, SubscribeProjectFiles},
};
use wire::{Frame, Outbox};

use super::guest::Guest;

/// Tells the peer that files changed, whenever the link has room. Changes while it has none count
/// as one.
pub(super) async fn watch(mut guest: Guest, of: SubscribeProjectFiles, outbox: Outbox) {
    let SubscribeProjectFiles { subscriber_id, project_id } = of;
    guest.ask(ClientMessage::WatchProjectFiles(OfProject { project_id }).encode());
    let changed = PeerMessage::ProjectFilesChanged(OfSubscriber { subscriber_id }).encode();
    let mut is_changed = false;
    loop {
        let frame = tokio::select! {
            frame = guest.next() => frame,
            room = outbox.room(), if is_changed => {
                if room.and_then(|()| outbox.push(changed.clone())).is_err() {
                    return;
                }
                is_changed = false;
                continue;
            }
        };
        let Some(frame) = frame else { return };
        let Frame::Text(text) = frame else { continue };
        match decode_reply(&text) {
            Ok(ServerMessage::ProjectFilesChanged(of)) => is_changed |= of.project_id == project_id,
            Ok(ServerMessage::ProjectFileError(_) | ServerMessage::Error(_)) => return,
            _ => {}
        }
    }
}
