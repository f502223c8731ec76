//! This machine's tokens of rooms: of those that it made and of its participants in others. They are in one
//! file that only its owner can read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use base::Secret;
use client::room::RoomSummary;
use daemon::options::home_directory;
use serde::{Deserialize, Serialize};

/// The most rooms, and the most participants; the oldest are forgotten.
const MOST: usize = 1_000;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// How often, and how long apart, the lock is tried while another process holds it.
const TRIES: (u32, Duration) = (100, Duration::from_millis(20));

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
    /// Stock servers give none.
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

/// The file.
#[derive(Debug, Clone)]
pub(super) struct RoomTokens {
    path: PathBuf,
}

impl RoomTokens {
    /// The file of this user: `$XDG_STATE_HOME/warren/rooms.json`, or below `~/.local/state`.
    ///
    /// # Errors
    /// When there is no home directory.
    pub(super) fn new() -> anyhow::Result<Self> {
        let directory = home_directory("XDG_STATE_HOME", ".local/state").context(
            "there is no home directory to keep the tokens of rooms in: set XDG_STATE_HOME",
        )?;
        Ok(Self { path: directory.join("rooms.json") })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The token of a room's host.
    pub(super) fn host_token(
        &self,
        server: &str,
        room: &RoomSummary,
    ) -> anyhow::Result<Option<Secret>> {
        let of_room = |kept: &&HostedRoom| kept.server == server && kept.room == room.room.id;
        Ok(self.read()?.rooms.iter().find(of_room).map(|kept| kept.host_token.as_str().into()))
    }

    /// This machine's participants in a room, the latest first.
    pub(super) fn participants(
        &self,
        server: &str,
        room: &RoomSummary,
    ) -> anyhow::Result<Vec<OwnParticipant>> {
        let mut all = self.read()?.participants;
        all.retain(|kept| kept.server == server && kept.room == room.room.id);
        all.reverse();
        Ok(all)
    }

    /// The servers on which this machine made or joined a room of this code, or any room.
    pub(super) fn servers(&self, code: Option<&str>) -> anyhow::Result<Vec<String>> {
        let book = self.read()?;
        let rooms = book.rooms.iter().map(|kept| (&kept.server, &kept.codes));
        let joined = book.participants.iter().map(|kept| (&kept.server, &kept.codes));
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
            book.rooms.retain(|kept| (&kept.server, &kept.room) != (&room.server, &room.room));
            book.rooms.push(room);
        })
        .await
    }

    pub(super) async fn keep_participant(&self, who: OwnParticipant) -> anyhow::Result<()> {
        let place =
            |kept: &OwnParticipant| (kept.server.clone(), kept.room.clone(), kept.backend.clone());
        self.update(|book| {
            book.participants.retain(|kept| place(kept) != place(&who));
            book.participants.push(who);
        })
        .await
    }

    pub(super) async fn forget_room(&self, server: &str, room: &str) -> anyhow::Result<()> {
        self.update(|book| {
            book.rooms.retain(|kept| kept.server != server || kept.room != room);
            book.participants.retain(|kept| kept.server != server || kept.room != room);
        })
        .await
    }

    /// Forgets the token of a participant that has left. Its id stays, for the next join.
    pub(super) async fn forget_session(&self, who: &OwnParticipant) -> anyhow::Result<()> {
        self.update(|book| {
            let same = book.participants.iter_mut().filter(|kept| *kept == who);
            same.for_each(|kept| kept.session_token = None);
        })
        .await
    }

    fn read(&self) -> anyhow::Result<Book> {
        let shown = self.path.display();
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Book::default()),
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
        };
        let mut text = String::new();
        let read = file.take(LONGEST).read_to_string(&mut text);
        read.with_context(|| format!("{shown} cannot be read"))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{shown} is not as Warren wrote it: move it away"))
    }

    async fn update(&self, change: impl FnOnce(&mut Book)) -> anyhow::Result<()> {
        let shown = self.path.display();
        let cannot = || format!("{shown} cannot be written");
        let directory = self.path.parent().context("it has no directory")?;
        let _lock = lock(directory).await.with_context(cannot)?;
        let mut book = self.read()?;
        change(&mut book);
        book.bound();
        let temporary = directory.join("rooms.json.new");
        let mut file = private().truncate(true).open(&temporary).with_context(cannot)?;
        file.write_all(&serde_json::to_vec_pretty(&book)?).with_context(cannot)?;
        fs::rename(&temporary, &self.path).with_context(cannot)
    }
}

impl Book {
    fn bound(&mut self) {
        let over = |length: usize| length.saturating_sub(MOST);
        self.rooms.drain(..over(self.rooms.len()));
        self.participants.drain(..over(self.participants.len()));
    }
}

/// Locks the file for writing. The lock is a file of its own, because the file itself is replaced.
async fn lock(directory: &Path) -> anyhow::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let lock = private().truncate(false).open(directory.join("rooms.lock"))?;
    for _ in 0..TRIES.0 {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(TRIES.1).await,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    bail!("another Warren has held it for too long")
}

/// Opens a file for writing; a new one is readable by its owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn kept(directory: &Path) -> RoomTokens {
        RoomTokens { path: directory.join("warren/rooms.json") }
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
        let kept = kept(directory.path());
        assert!(kept.host_token("http://a", &summary("r1")).unwrap().is_none());
        kept.keep_room(room("http://a", "r1")).await.unwrap();
        kept.keep_room(room("http://b", "r2")).await.unwrap();
        let token = kept.host_token("http://a", &summary("r1")).unwrap();
        assert_eq!(token, Some("wh_http://ar1".into()));
        assert!(kept.host_token("http://b", &summary("r1")).unwrap().is_none());
        assert_eq!(kept.servers(Some("SWIFT-EAGLE-42")).unwrap(), ["http://a", "http://b"]);
        assert!(kept.servers(Some("other")).unwrap().is_empty());
        kept.forget_room("http://a", "r1").await.unwrap();
        assert_eq!(kept.servers(None).unwrap(), ["http://b"]);
    }

    #[tokio::test]
    async fn a_participant_keeps_its_id_for_the_same_backend() {
        let directory = tempfile::tempdir().unwrap();
        let kept = kept(directory.path());
        for who in [who("x", "p1"), who("y", "p2"), who("x", "p3")] {
            kept.keep_participant(who).await.unwrap();
        }
        kept.forget_session(&who("y", "p2")).await.unwrap();
        let all = kept.participants("http://a", &summary("r1")).unwrap();
        let told = all.iter().map(|who| (who.id.as_str(), who.session_token.is_some()));
        assert_eq!(told.collect::<Vec<_>>(), [("p3", true), ("p2", false)]);
    }

    #[tokio::test]
    async fn only_the_owner_can_read_the_file_and_it_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let kept = kept(directory.path());
        let rooms = (0..=MOST).map(|id| room("http://a", &id.to_string())).collect();
        kept.update(|book| book.rooms = rooms).await.unwrap();
        let book = kept.read().unwrap();
        assert_eq!((book.rooms.len(), book.rooms[0].room.as_str()), (MOST, "1"));
        let mode = fs::metadata(kept.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(kept.path(), "{").unwrap();
        let error = kept.servers(None).unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
    }

    #[tokio::test]
    async fn concurrent_writers_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut writing = tokio::task::JoinSet::new();
        for id in 0..20 {
            let kept = kept(directory.path());
            writing.spawn(async move { kept.keep_room(room("http://a", &id.to_string())).await });
        }
        assert!(writing.join_all().await.iter().all(Result::is_ok));
        assert_eq!(kept(directory.path()).read().unwrap().rooms.len(), 20);
    }
}
