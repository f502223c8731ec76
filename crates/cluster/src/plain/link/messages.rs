//! Handles the messages of a plain peer.

use std::sync::Arc;

use protocol::workspace::peer::{FromPeer, PeerMessage, State, decode_peer};
use replica::{Key, Kind, Refused};
use tokio::{task, time::Instant};
use wire::Frame;

use super::{PlainEnd, PlainLink, meanwhile};
use crate::plain::{
    complaints,
    merge::{Merged, TOGETHER, Word},
    offer::{Offer, session_key},
    rights::Parties,
};

/// Messages longer than this, in bytes, are decoded on another thread.
const LONG: usize = 64 * 1024;

impl PlainLink {
    pub(super) async fn frame(&mut self, frame: Frame) -> Result<(), PlainEnd> {
        let read = match frame {
            Frame::Text(text) if text.len() > LONG => {
                let reading = task::spawn_blocking(move || decode_peer(&text));
                meanwhile(&mut self.link, reading).await.map_err(|_| PlainEnd::ClosedHere)?
            }
            Frame::Text(text) => decode_peer(&text),
            Frame::Binary(_) => return self.complain("messages are text"),
        };
        match read {
            Ok(FromPeer::Message(message)) => self.message(message).await,
            Ok(FromPeer::Legacy(_) | FromPeer::Unknown(_)) => Ok(()),
            Err(bad) => self.complain(&bad.to_string()),
        }
    }

    fn complain(&mut self, words: &str) -> Result<(), PlainEnd> {
        let counted = self.complaints.add(Instant::now().into_std());
        if self.complaints.is_first() {
            let node = &self.node;
            tracing::warn!(node, error = words, "a plain peer's message cannot be read");
        }
        counted.map_err(|complaints::TooMany| PlainEnd::Unreadable)
    }

    async fn message(&mut self, message: PeerMessage) -> Result<(), PlainEnd> {
        match message {
            PeerMessage::StateSnapshot(snapshot) => self.merge_snapshot(snapshot.state).await,
            PeerMessage::SessionUpdate(of) => self.merge(is(of.session)).await,
            PeerMessage::SessionUnknown(of) => {
                self.router.unknown(of.session_id);
                Ok(())
            }
            PeerMessage::SessionRemoved(of) => self.merge(gone(session_key(of.session_id))).await,
            PeerMessage::ProjectUpserted(of) => self.merge(is(of.project)).await,
            PeerMessage::ProjectDeleted(of) => {
                self.merge(gone(Key::new(Kind::PROJECT, of.project_id.to_string()))).await
            }
            PeerMessage::TeamUpserted(of) => self.merge(is(of.team)).await,
            PeerMessage::TeamRemoved(of) => {
                self.merge(gone(Key::new(Kind::TEAM, of.team_id.to_string()))).await
            }
            PeerMessage::RenameNode(of) => self.renamed_here(of.name).await,
            PeerMessage::DisplayNameUpdate(of) => {
                self.shared.plain.rename(&self.node, of.name);
                self.shared.plain_changed();
                Ok(())
            }
            other => {
                self.forwarding(other);
                Ok(())
            }
        }
    }

    fn forwarding(&mut self, message: PeerMessage) {
        match message {
            PeerMessage::ForwardedRequest(of) => self.inbound.request(of),
            PeerMessage::SubscribeOutput(of) => self.inbound.subscribe(of),
            PeerMessage::SubscribeProjectFiles(of) => self.inbound.watch(of),
            PeerMessage::UnsubscribeOutput(of) | PeerMessage::UnsubscribeProjectFiles(of) => {
                self.inbound.unsubscribe(&of);
            }
            PeerMessage::ForwardedResponse(of) => self.router.respond(of.request_id, of.payload),
            PeerMessage::SessionOutput(of) => self.router.output(of.session_id, of.seq, &of.data),
            PeerMessage::ProjectFilesChanged(of) => self.router.files_changed(of.subscriber_id),
            _ => {}
        }
    }

    async fn renamed_here(&mut self, name: String) -> Result<(), PlainEnd> {
        let shared = Arc::clone(&self.shared);
        let renaming = async move { shared.rename(name).await };
        if let Err(error) = meanwhile(&mut self.link, renaming).await {
            let error = base::error::chain(&error);
            tracing::warn!(node = self.node, error, "a plain peer's name for this machine is lost");
        }
        Ok(())
    }

    async fn merge_snapshot(&mut self, state: State) -> Result<(), PlainEnd> {
        if state.skipped > 0 {
            let (node, skipped) = (&self.node, state.skipped);
            tracing::warn!(node, skipped, "objects of a plain peer cannot be read");
        }
        let mut words = words(state);
        while !words.is_empty() {
            let rest = words.split_off(words.len().min(TOGETHER));
            self.merge_words(std::mem::replace(&mut words, rest), true).await?;
        }
        Ok(())
    }

    async fn merge(&mut self, word: Word) -> Result<(), PlainEnd> {
        self.merge_words(vec![word], false).await
    }

    async fn merge_words(&mut self, words: Vec<Word>, in_snapshot: bool) -> Result<(), PlainEnd> {
        let parties = Parties { me: &self.shared.this.node_id, peer: &self.node };
        let now = Instant::now().into_std();
        let merging = self.merge.take(now, parties, words, in_snapshot);
        let Merged { tell, renames, refused } = meanwhile(&mut self.link, merging).await?;
        tell.into_iter().for_each(|key| self.news.tell(key));
        renames.into_iter().for_each(|(session, name)| self.inbound.rename(session, name));
        self.log_refused(&refused);
        Ok(())
    }

    /// Logs one line a minute, since a peer may repeat what is refused without end.
    fn log_refused(&mut self, refused: &[(Key, Refused)]) {
        let Some((key, reason)) = refused.first() else { return };
        // A refused object does not end the link, however many there are.
        let _any_number = self.refusals.add(Instant::now().into_std());
        if self.refusals.is_first() {
            let (node, id, others) = (&self.node, &*key.id, refused.len() - 1);
            tracing::warn!(node, id, %reason, others, "a plain peer's object is not taken over");
        }
    }
}

/// The claims of a snapshot, one for each object. A session that the snapshot lists is not gone, even
/// if the snapshot has a tombstone for it.
fn words(state: State) -> Vec<Word> {
    let mut gone: Vec<_> = state.tombstones.iter().map(|of| of.session_id).collect();
    gone.retain(|id| state.sessions.iter().all(|session| session.id != *id));
    let gone = gone.into_iter().map(|id| Word::Gone(session_key(id)));
    let sessions = state.sessions.into_iter().map(is);
    let projects = state.projects.into_iter().map(is);
    let teams = state.teams.into_iter().map(is);
    gone.chain(sessions).chain(projects).chain(teams).collect()
}

fn is(object: impl Into<Offer>) -> Word {
    Word::Is(object.into())
}

fn gone(key: Key) -> Word {
    Word::Gone(key)
}
