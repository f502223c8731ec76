//! This machine's tokens of rooms: of those that it made and of its participants in others. They are in one
//! file that only its owner can read.

use base::Secret;
use client::room::RoomSummary;
use serde::{Deserialize, Serialize};

use crate::commands::private_file::PrivateFile;

/// The most rooms, and the most participants, that are remembered. The oldest are forgotten first.
const MOST: usize = 1_000;

/// A room that was made on this machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostedRoom {
    pub(super) server: String,
    pub(super) room: String,
    pub(super) codes: Vec<String>,
    pub(super) host_token: String,
}

/// A participant of this machine in a room.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnParticipant {
    pub(super) server: String,
    pub(super) room: String,
    pub(super) codes: Vec<String>,
    /// The backend that it lends.
    pub(super) backend: String,
    pub(super) id: String,
    /// The session token. Stock servers give no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_token: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Book {
    #[serde(default)]
    rooms: Vec<HostedRoom>,
    #[serde(default)]
    participants: Vec<OwnParticipant>,
}

/// The file `rooms.json` in this user's state directory.
#[derive(Debug, Clone)]
pub(super) struct RoomTokens(PrivateFile);

impl RoomTokens {
    /// The file of this user.
    ///
    /// # Errors
    /// When there is no home directory.
    pub(super) fn new() -> anyhow::Result<Self> {
        PrivateFile::of_user("rooms.json", "the tokens of rooms").map(Self)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// The token of a room's host.
    pub(super) fn host_token(
        &self,
        server: &str,
        room: &RoomSummary,
    ) -> anyhow::Result<Option<Secret>> {
        let of_room = |record: &&HostedRoom| record.server == server && record.room == room.room.id;
        Ok(self.read()?.rooms.iter().find(of_room).map(|record| record.host_token.as_str().into()))
    }

    /// This machine's participants in a room, the latest first.
    pub(super) fn participants(
        &self,
        server: &str,
        room: &RoomSummary,
    ) -> anyhow::Result<Vec<OwnParticipant>> {
        let mut all = self.read()?.participants;
        all.retain(|record| record.server == server && record.room == room.room.id);
        all.reverse();
        Ok(all)
    }

    /// The servers on which this machine made or joined a room of this code, or any room.
    pub(super) fn servers(&self, code: Option<&str>) -> anyhow::Result<Vec<String>> {
        let book = self.read()?;
        let rooms = book.rooms.iter().map(|record| (&record.server, &record.codes));
        let joined = book.participants.iter().map(|record| (&record.server, &record.codes));
        let has = |codes: &[String]| {
            code.is_none_or(|code| codes.iter().any(|known| known.eq_ignore_ascii_case(code)))
        };
        let mut servers: Vec<String> = Vec::new();
        for (server, codes) in rooms.chain(joined) {
            if has(codes) && !servers.contains(server) {
                servers.push(server.clone());
            }
        }
        Ok(servers)
    }

    pub(super) async fn keep_room(&self, room: HostedRoom) -> anyhow::Result<()> {
        self.update(|book| {
            book.rooms
                .retain(|record| (&record.server, &record.room) != (&room.server, &room.room));
            book.rooms.push(room);
        })
        .await
    }

    pub(super) async fn keep_participant(&self, who: OwnParticipant) -> anyhow::Result<()> {
        let place = |record: &OwnParticipant| {
            (record.server.clone(), record.room.clone(), record.backend.clone())
        };
        self.update(|book| {
            book.participants.retain(|record| place(record) != place(&who));
            book.participants.push(who);
        })
        .await
    }

    pub(super) async fn forget_room(&self, server: &str, room: &str) -> anyhow::Result<()> {
        self.update(|book| {
            book.rooms.retain(|record| record.server != server || record.room != room);
            book.participants.retain(|record| record.server != server || record.room != room);
        })
        .await
    }

    /// Forgets the token of a participant that has left. Its id stays, for the next join.
    pub(super) async fn forget_session(&self, who: &OwnParticipant) -> anyhow::Result<()> {
        self.update(|book| {
            let same = book.participants.iter_mut().filter(|record| *record == who);
            same.for_each(|record| record.session_token = None);
        })
        .await
    }

    fn read(&self) -> anyhow::Result<Book> {
        self.0.read()
    }

    async fn update(&self, change: impl FnOnce(&mut Book)) -> anyhow::Result<()> {
        let change = |book: &mut Book| {
            change(book);
            book.bound();
        };
        self.0.update(change).await
    }
}

impl Book {
    fn bound(&mut self) {
        let over = |length: usize| length.saturating_sub(MOST);
        self.rooms.drain(..over(self.rooms.len()));
        self.participants.drain(..over(self.participants.len()));
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    fn tokens_in(directory: &Path) -> RoomTokens {
        RoomTokens(PrivateFile::at(directory.join("warren/rooms.json")))
    }

    fn room(server: &str, id: &str) -> HostedRoom {
        HostedRoom {
            server: server.to_owned(),
            room: id.to_owned(),
            codes: vec!["ABC123".to_owned(), "swift-eagle-42".to_owned()],
            host_token: format!("wh_{server}{id}"),
        }
    }

    fn summary(id: &str) -> RoomSummary {
        let json = serde_json::json!({"id": id, "code": "ABC123", "name": "n", "hostId": "h",
            "createdAt": 1, "participantCount": 0});
        serde_json::from_value(json).unwrap()
    }

    fn who(backend: &str, id: &str) -> OwnParticipant {
        OwnParticipant {
            server: "http://a".to_owned(),
            room: "r1".to_owned(),
            codes: vec!["XYZ789".to_owned()],
            backend: backend.to_owned(),
            id: id.to_owned(),
            session_token: Some("wp_1".to_owned()),
        }
    }

    #[tokio::test]
    async fn a_token_is_found_for_its_own_server_only() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens_in(directory.path());
        assert!(tokens.host_token("http://a", &summary("r1")).unwrap().is_none());
        tokens.keep_room(room("http://a", "r1")).await.unwrap();
        tokens.keep_room(room("http://b", "r2")).await.unwrap();
        let token = tokens.host_token("http://a", &summary("r1")).unwrap();
        assert_eq!(token, Some("wh_http://ar1".into()));
        assert!(tokens.host_token("http://b", &summary("r1")).unwrap().is_none());
        assert_eq!(tokens.servers(Some("SWIFT-EAGLE-42")).unwrap(), ["http://a", "http://b"]);
        assert!(tokens.servers(Some("other")).unwrap().is_empty());
        tokens.forget_room("http://a", "r1").await.unwrap();
        assert_eq!(tokens.servers(None).unwrap(), ["http://b"]);
    }

    #[tokio::test]
    async fn a_participant_keeps_its_id_for_the_same_backend() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens_in(directory.path());
        for who in [who("x", "p1"), who("y", "p2"), who("x", "p3")] {
            tokens.keep_participant(who).await.unwrap();
        }
        tokens.forget_session(&who("y", "p2")).await.unwrap();
        let all = tokens.participants("http://a", &summary("r1")).unwrap();
        let sessions = all.iter().map(|who| (who.id.as_str(), who.session_token.is_some()));
        assert_eq!(sessions.collect::<Vec<_>>(), [("p3", true), ("p2", false)]);
    }

    #[tokio::test]
    async fn only_the_owner_can_read_the_file_and_it_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens_in(directory.path());
        let rooms = (0..=MOST).map(|id| room("http://a", &id.to_string())).collect();
        tokens.update(|book| book.rooms = rooms).await.unwrap();
        let book = tokens.read().unwrap();
        assert_eq!((book.rooms.len(), book.rooms[0].room.as_str()), (MOST, "1"));
        let mode = fs::metadata(tokens.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(tokens.path(), "{").unwrap();
        let error = tokens.servers(None).unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
    }

    #[tokio::test]
    async fn concurrent_writers_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut writing = tokio::task::JoinSet::new();
        for id in 0..20 {
            let tokens = tokens_in(directory.path());
            writing.spawn(async move { tokens.keep_room(room("http://a", &id.to_string())).await });
        }
        assert!(writing.join_all().await.iter().all(Result::is_ok));
        assert_eq!(tokens_in(directory.path()).read().unwrap().rooms.len(), 20);
    }
}
