//! What all connections share, and the way from an HTTP request to a connection.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use access::{Keys, LockOut, LockOutSettings, Token, WorkspaceRules};
use files::{Git, Watches};
use http::{Request, Response, StatusCode};
use protocol::workspace::{Role, limits::MAX_BEFORE_AUTH};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;
use wire::{Io, Limits, Link, Upgrade, UpgradeError, link};

use super::{
    client::Client,
    gate,
    greeting::{self, Refused},
    places::Places,
    shares,
    strangers::{Stranger, Strangers},
};
use crate::{sessions::ClientId, settings::Settings, work::Shared};

/// How long the response to the upgrade may take to be out.
const UPGRADE: Duration = Duration::from_secs(10);
/// How long clients may take to hear a goodbye.
const FAREWELL: Duration = Duration::from_secs(5);
/// So many requests about files are worked on at the same time, for all clients.
const FILES_AT_ONCE: usize = 64;
/// So many projects are watched at the same time, for all clients.
pub(super) const WATCHES: usize = 256;
/// The file of the node's id.
const NODE_ID: &str = "node.id";

/// There are thousands of idle links, and most of what comes is short.
const LIMITS: Limits = Limits {
    max_message: MAX_BEFORE_AUTH,
    read_buffer: 16 * 1024,
    write_buffer: 128 * 1024,
    fragment: 15 * 1024 * 1024,
};

/// What all connections share.
pub(crate) struct Door {
    pub(super) rules: WorkspaceRules,
    lock_out: Mutex<LockOut>,
    strangers: Strangers,
    pub(super) clients: Arc<Semaphore>,
    pub(super) most_clients: usize,
    /// For messages that are large, and for answers.
    large: Places,
    pub(super) answers: Arc<Semaphore>,
    pub(super) files: Arc<Semaphore>,
    pub(super) git: Git,
    pub(super) watches: Arc<Watches>,
    pub(super) watchers: Arc<Semaphore>,
    pub(super) node_id: String,
    last_client: AtomicU64,
    pub(super) closing: CancellationToken,
    links: TaskTracker,
}

impl Door {
    /// An open one. It reads and writes a small file.
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Self {
        let token = settings.token.as_ref().map(Token::new);
        let administrator = settings.administrator.as_ref().map(Token::new);
        Self {
            rules: WorkspaceRules { token, administrator, keys: keys.clone() },
            lock_out: Mutex::new(LockOut::new(LockOutSettings::default())),
            strangers: Strangers::new(settings.max_strangers),
            clients: semaphore(settings.max_clients),
            most_clients: settings.max_clients,
            large: Places::default(),
            answers: semaphore(shares::IN_ALL),
            files: semaphore(FILES_AT_ONCE),
            git: Git::default(),
            watches: Arc::default(),
            watchers: semaphore(WATCHES),
            node_id: node_id(&settings.dir),
            last_client: AtomicU64::new(0),
            closing: CancellationToken::new(),
            links: TaskTracker::new(),
        }
    }

    /// Says goodbye to all, and takes nobody any more.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.links.close();
        if timeout(FAREWELL, self.links.wait()).await.is_err() {
            tracing::debug!("some clients are not done yet");
        }
    }

    pub(super) fn lock_out(&self) -> MutexGuard<'_, LockOut> {
        self.lock_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next_client(&self) -> ClientId {
        ClientId(self.last_client.fetch_add(1, Ordering::Relaxed))
    }
}

/// Answers a request for an upgrade, and serves who sent it.
pub(crate) fn connect<B>(
    shared: &Arc<Shared>,
    request: &mut Request<B>,
    from: IpAddr,
) -> Response<String> {
    if !shared.local.takes_socket(from, request.uri(), request.headers()) {
        let words = "the workspace takes no pages of other origins, nor such that were led here \
                     by a name that is not the server's: see --allow-origin and --allow-host";
        return refuse(StatusCode::FORBIDDEN, words.to_owned());
    }
    if shared.door.closing.is_cancelled() {
        let words = "the server is stopping".to_owned();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    }
    let Some(stranger) = shared.door.strangers.admit(from) else {
        let words = "too many connections have not said who they are: try again".to_owned();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    };
    let upgrade = match Upgrade::new(request, &[]) {
        Ok(upgrade) => upgrade,
        Err(error) => return no_upgrade(error),
    };
    let response = upgrade.response();
    let serving = Arc::clone(shared);
    shared.door.links.spawn(async move {
        match timeout(UPGRADE, upgrade.stream()).await {
            Ok(Ok(io)) => serve(&serving, io, from, stranger).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client left before its link stood"),
            Err(_) => tracing::debug!("a client did not take the response to its upgrade"),
        }
    });
    response
}

/// Serves a link, from its first byte to its end.
pub(super) async fn serve(shared: &Arc<Shared>, io: Io, from: IpAddr, stranger: Stranger) {
    let (io, gate) = gate::gated(io);
    let (mut link, outbox) = Link::within(io, link::Role::Server, LIMITS);
    let greeted = tokio::select! {
        greeted = greeting::greet(shared, &mut link, &outbox, from) => greeted,
        () = shared.door.closing.cancelled() => Err(Refused::Goodbye(1001, "the server is stopping")),
    };
    match greeted {
        Ok(admitted) => {
            let is_administrator = admitted.me.role == Role::Admin;
            gate.admit(shared.door.large.claim(&admitted.me.who, is_administrator));
            drop(stranger);
            Client::new(shared, admitted, link, outbox, gate).run().await;
        }
        Err(Refused::Goodbye(code, reason)) => link.close(code, reason).await,
        Err(Refused::Left) => {}
    }
}

fn no_upgrade(error: UpgradeError) -> Response<String> {
    refuse(error.status(), error.to_string())
}

fn refuse(status: StatusCode, words: String) -> Response<String> {
    let mut response = Response::new(words);
    *response.status_mut() = status;
    response
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

/// Who this machine is among others: the same after a restart.
fn node_id(dir: &Path) -> String {
    let path = dir.join(NODE_ID);
    let kept = fs::read_to_string(&path).ok();
    if let Some(id) = kept.and_then(|text| Uuid::try_parse(text.trim()).ok()) {
        return id.to_string();
    }
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
    if let Err(error) = write_private(&path, &id) {
        tracing::warn!(%error, "the id of this node cannot be kept: it is another after a restart");
    }
    id
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_who_it_was_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let id = node_id(dir.path());
        assert_eq!(node_id(dir.path()), id);
        assert!(Uuid::try_parse(&id).is_ok());
        fs::write(dir.path().join(NODE_ID), "nonsense").unwrap();
        let other = node_id(dir.path());
        assert_ne!(other, id);
        assert_eq!(node_id(dir.path()), other);
    }
}
