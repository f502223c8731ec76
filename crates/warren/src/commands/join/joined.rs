//! The servers that this machine joined, each with its key: in one file that only its owner can read.

use base::Fingerprint;
use client::invitation::ServerId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commands::private_file::PrivateFile;

/// The most servers that are remembered. The oldest are forgotten first.
const MOST: usize = 100;

/// The most URLs of one server.
const MOST_URLS: usize = 8;

/// A server that this machine joined.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinedServer {
    pub(super) id: ServerId,
    /// The name of its machine.
    pub(super) name: String,
    /// Its URLs, the latest first.
    pub(super) urls: Vec<String>,
    /// The fingerprint of its certificate; `None`: the connection has no TLS.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) key_id: String,
    pub(super) key: String,
    /// This machine's name there.
    pub(super) machine: String,
    pub(super) joined_at: Timestamp,
}

#[derive(Default, Serialize, Deserialize)]
struct Book {
    #[serde(default)]
    servers: Vec<JoinedServer>,
}

/// The file `joined.json` in this user's state directory.
#[derive(Debug, Clone)]
pub(crate) struct JoinedServers(PrivateFile);

impl JoinedServers {
    /// The file of this user.
    ///
    /// # Errors
    /// When there is no home directory.
    pub(crate) fn new() -> anyhow::Result<Self> {
        PrivateFile::of_user("joined.json", "the servers that were joined").map(Self)
    }

    /// All servers, the oldest first.
    pub(crate) fn all(&self) -> anyhow::Result<Vec<JoinedServer>> {
        Ok(self.0.read::<Book>()?.servers)
    }

    /// Remembers a server, in place of its former record.
    pub(super) async fn keep(&self, server: JoinedServer) -> anyhow::Result<()> {
        let keep = |book: &mut Book| {
            book.servers.retain(|known| known.id != server.id);
            book.servers.push(server);
            book.servers.drain(..book.servers.len().saturating_sub(MOST));
        };
        self.0.update(keep).await
    }

    /// Remembers the present URL of a server.
    pub(super) async fn reached(&self, id: ServerId, url: &str) -> anyhow::Result<()> {
        let reached = |book: &mut Book| {
            for server in book.servers.iter_mut().filter(|known| known.id == id) {
                server.urls.retain(|known| known != url);
                server.urls.insert(0, url.to_owned());
                server.urls.truncate(MOST_URLS);
            }
        };
        self.0.update(reached).await
    }

    /// Forgets the servers of an id, a name or a URL. Returns their number.
    pub(super) async fn forget(&self, meant: &str) -> anyhow::Result<usize> {
        let meant = meant.trim_end_matches('/');
        let is_meant = |known: &JoinedServer| {
            known.id.to_string() == meant
                || known.name == meant
                || known.urls.iter().any(|url| url == meant)
        };
        let forget = |book: &mut Book| {
            let before = book.servers.len();
            book.servers.retain(|known| !is_meant(known));
            before - book.servers.len()
        };
        self.0.update(forget).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn server(id: u8, url: &str) -> JoinedServer {
        JoinedServer {
            id: ServerId::new([id; 8]),
            name: format!("box{id}"),
            urls: vec![url.to_owned()],
            fingerprint: None,
            key_id: "k-1".to_owned(),
            key: "wk_1".to_owned(),
            machine: "laptop".to_owned(),
            joined_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn a_server_is_remembered_once_with_its_latest_address_first_until_it_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("warren/joined.json");
        let servers = JoinedServers(PrivateFile::at(path.clone()));
        for one in [server(1, "http://a"), server(2, "http://b"), server(1, "http://c")] {
            servers.keep(one).await.unwrap();
        }
        for number in 0..2 * MOST_URLS {
            servers.reached(ServerId::new([1; 8]), &format!("http://{number}")).await.unwrap();
        }
        servers.reached(ServerId::new([1; 8]), "http://14").await.unwrap();
        let all = servers.all().unwrap();
        assert_eq!(all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["box2", "box1"]);
        assert_eq!(
            (all[1].urls.len(), all[1].urls[..2].join(" ")),
            (MOST_URLS, "http://14 http://15".to_owned())
        );
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(servers.forget("http://b/").await.unwrap(), 1);
        assert_eq!(servers.forget("box2").await.unwrap(), 0);
        assert_eq!(servers.all().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn so_many_servers_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let servers = JoinedServers(PrivateFile::at(directory.path().join("joined.json")));
        for number in 0..=u8::try_from(MOST).unwrap() {
            servers.keep(server(number, "http://a")).await.unwrap();
        }
        let all = servers.all().unwrap();
        assert_eq!((all.len(), all[0].name.as_str()), (MOST, "box1"));
    }
}
