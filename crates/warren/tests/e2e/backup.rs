//! A server's data in one file, made under load, and a server from it elsewhere.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{DEADLINE, Daemon, MockBackend, Reply, WorkerProcess, eventually};
use tokio::task::JoinSet;

use crate::{
    cli::{Ran, make_key, warren, with_key},
    common::{CHAT, ask, lend, serve},
};

/// Clients at once.
const CLIENTS: usize = 4;

/// A server under load, by clients with a key.
struct Load {
    daemon: Daemon,
    key: String,
    asked: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    clients: JoinSet<()>,
    _lent: (MockBackend, WorkerProcess),
}

impl Load {
    async fn start() -> Self {
        let daemon = serve().start().await;
        let backend = MockBackend::start(&["m"]).await;
        let usage = json!({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5});
        let answer = json!({"id": "c", "object": "chat.completion", "choices": [], "usage": usage});
        backend.answer_with(move |_| Reply::json(200, &answer));
        let worker = lend(&daemon, &backend, 8).await;
        let (_, key) = make_key(&daemon, json!({"scopes": ["inference"]})).await;
        let (asked, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let client = with_key(&daemon, &key);
            let (asked, over) = (Arc::clone(&asked), Arc::clone(&over));
            clients.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    asked.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(client.post_json(CHAT, &ask(false)).await.status, 200);
                }
            });
        }
        Self { daemon, key, asked, over, clients, _lent: (backend, worker) }
    }

    /// Waits for this many more rows of usage than there are now, and returns all.
    async fn grows(&self, by: u64) -> u64 {
        let least = requests(&self.daemon).await + by;
        let grown = async || requests(&self.daemon).await >= least;
        eventually("more usage", DEADLINE, grown).await;
        requests(&self.daemon).await
    }

    async fn end(mut self) -> Daemon {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        self.daemon
    }
}

async fn usage(daemon: &Daemon) -> Value {
    daemon.admin().get("/admin/usage?by=model").await.json()["totals"].clone()
}

async fn requests(daemon: &Daemon) -> u64 {
    usage(daemon).await["requests"].as_u64().unwrap()
}

async fn backup(daemon: &Daemon, file: &Path, args: &[&str]) -> Ran {
    let data = daemon.data_dir().to_str().unwrap();
    warren(&[&["backup", file.to_str().unwrap(), "--data-dir", data], args].concat()).await
}

async fn restore(file: &Path, to: &Path, args: &[&str]) -> Ran {
    let (file, to) = (file.to_str().unwrap(), to.to_str().unwrap());
    warren(&[&["restore", file, "--data-dir", to], args].concat()).await
}

/// While requests run, the data is saved; a server from it has the keys, and the usage of one moment between.
#[tokio::test]
async fn a_server_under_load_is_saved_and_one_from_it_has_the_same() {
    let load = Load::start().await;
    let room = TempDir::new().unwrap();
    let file = room.path().join("warren.tar.gz");
    let before = load.grows(20).await;
    let saved = backup(&load.daemon, &file, &["--json"]).await.json();
    let at_most = load.asked.load(Ordering::SeqCst);
    assert_eq!(saved["running"], true, "{saved}");
    load.grows(20).await;
    let (key, former) = (load.key.clone(), load.end().await);
    let refused = restore(&file, former.data_dir(), &["--force"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("warren stop"), "{refused:?}");

    let new = serve();
    let told = restore(&file, new.data_dir(), &[]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    let new = new.start().await;
    let found = usage(&new).await;
    let requests = found["requests"].as_u64().unwrap();
    assert!((before..=at_most).contains(&requests), "{before} <= {requests} <= {at_most}");
    assert_eq!(found["total_tokens"], 5 * requests, "rows are there as a whole: {found}");
    let token = |daemon: &Daemon| std::fs::read_to_string(daemon.data_dir().join("admin.token"));
    assert_eq!(token(&new).unwrap(), token(&former).unwrap());
    let models = with_key(&new, &key).get("/v1/models").await;
    assert_eq!(models.status, 200, "{}", models.text());
    let wrong = with_key(&new, "wk_wrong").get("/v1/models").await;
    assert_eq!(wrong.status, 401);
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&new, &backend, 1).await;
    assert_eq!(with_key(&new, &key).post_json(CHAT, &ask(false)).await.status, 200);
}

/// A backup as people see it, and one that is damaged.
#[tokio::test]
async fn a_backup_is_listed_checked_and_never_half_restored() {
    let daemon = serve().start().await;
    let room = TempDir::new().unwrap();
    let told = backup(&daemon, room.path(), &[]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("a server that runs") && told.out.contains("Not in it"), "{told:?}");
    let file = std::fs::read_dir(room.path()).unwrap().next().unwrap().unwrap().path();
    let again = backup(&daemon, &file, &[]).await;
    assert!(again.code == Some(1) && again.err.contains("--force"), "{again:?}");
    let path = file.to_str().unwrap();
    let listed = warren(&["restore", path, "--list"]).await;
    assert!(
        listed.out.contains("data/warren.db") && listed.out.contains("admin.token"),
        "{listed:?}"
    );
    let checked = warren(&["restore", path, "--check"]).await;
    assert!(checked.code == Some(0) && checked.out.contains("It is whole"), "{checked:?}");

    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = room.path().join("damaged.tar.gz");
    std::fs::write(&damaged, bytes).unwrap();
    let checked = warren(&["restore", damaged.to_str().unwrap(), "--check"]).await;
    assert!(checked.code == Some(1) && checked.err.contains("cannot be restored"), "{checked:?}");
    let to = room.path().join("new");
    assert_eq!(restore(&damaged, &to, &[]).await.code, Some(1));
    let left: Vec<_> = std::fs::read_dir(&to).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    let restored = restore(&file, &to, &["--json"]).await.json();
    assert_eq!(restored["before"], Value::Null);
    assert!(to.join("warren.db").exists());
    let nowhere = backup(&daemon, Path::new("/nowhere/at/all.tar.gz"), &[]).await;
    assert!(nowhere.code == Some(1) && nowhere.err.contains("cannot be written"), "{nowhere:?}");
}
