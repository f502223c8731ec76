//! The mesh relay's shell: from an HTTP request to a node's link.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use http::{HeaderValue, Request, Response, header};
use protocol::mesh::relay::{SUBPROTOCOL, SUBPROTOCOL_HEADER, SUBPROTOCOL_VERSION, relay_host};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::task::TaskTracker;
use wire::{Limits, Link, Outbox, Upgrade, UpgradeError};

use crate::{
    counts::{Counts, Summary},
    port::{Delivery, Goodbye, Port},
    remember::Remember,
    settings::Settings,
    socket,
    switchboard::{
        Challenge, Connection, Now, Output, ReceivedMessage, Standing, Switchboard, close,
    },
};

/// The longest message of a connection that has not registered, in bytes.
pub(crate) const MAX_OF_A_STRANGER: usize = 64 * 1024;

/// Buffers are small, because a mesh relay keeps those of thousands of links that are mostly idle.
const LIMITS: Limits = Limits {
    max_message: MAX_OF_A_STRANGER,
    read_buffer: 8 * 1024,
    write_buffer: 16 * 1024,
    fragment: 16 * 1024,
};

/// The mesh relay: nodes connect to it, and what they say to each other passes through it.
#[derive(Clone)]
pub struct MeshRelay {
    pub(crate) shared: Arc<Shared>,
    links: TaskTracker,
}

pub(crate) struct Shared {
    board: Mutex<Board>,
    hosts: Vec<String>,
    pub(crate) patience: std::time::Duration,
    pub(crate) waits: AtomicU64,
}

struct Board {
    switchboard: Switchboard,
    ports: HashMap<Connection, Port>,
}

impl MeshRelay {
    /// A mesh relay without nodes. `memory` knows which nodes must answer a challenge.
    pub fn new(settings: Settings, memory: Box<dyn Remember>) -> Self {
        let (hosts, patience) = (settings.hosts.clone(), settings.patience);
        let switchboard = Switchboard::new(settings, seal::verify_hex, memory);
        let board = Mutex::new(Board { switchboard, ports: HashMap::new() });
        let shared = Arc::new(Shared { board, hosts, patience, waits: AtomicU64::new(0) });
        Self { shared, links: TaskTracker::new() }
    }

    /// This mesh relay, with the tasks of its links in `links`, so that the caller can wait for
    /// their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }

    /// Answers a request for an upgrade with `101`, and serves the link in a task of its own. A request that is no valid
    /// upgrade is refused.
    pub fn connect<B>(&self, request: &mut Request<B>) -> Response<String> {
        let upgrade = match Upgrade::new(request, &[SUBPROTOCOL]) {
            Ok(upgrade) => upgrade,
            Err(error) => return refuse(error),
        };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = relay_host(host.unwrap_or_default());
        // A node signs this name with its answer. If any name were accepted, another relay could
        // pass this relay's challenges on to its own nodes, and register here with their
        // signatures.
        let challenge = upgrade.subprotocol().map(|_| host);
        if challenge.as_ref().is_some_and(|host| !self.shared.is_own(host)) {
            return misdirected();
        }
        let mut response = upgrade.response();
        if challenge.is_some() {
            let version = HeaderValue::from_static(SUBPROTOCOL_VERSION);
            response.headers_mut().insert(SUBPROTOCOL_HEADER, version);
        }
        let relay = self.clone();
        self.links.spawn(async move {
            match upgrade.link_within(LIMITS).await {
                Ok((link, outbox)) => relay.serve(link, outbox, challenge).await,
                Err(error) => tracing::debug!(%error, "a node left before its link stood"),
            }
        });
        response
    }

    /// Serves a link until it ends. If the client has offered [`SUBPROTOCOL`], `challenge` is the
    /// name by which the mesh relay was dialled.
    pub async fn serve(&self, link: Link, outbox: Outbox, challenge: Option<String>) {
        socket::run(&self.shared, link, outbox, challenge.map(a_challenge)).await;
    }

    /// Its counts.
    pub fn counts(&self) -> Counts {
        let waits = self.shared.waits.load(Ordering::Relaxed);
        Counts { waits, ..self.shared.lock().switchboard.counts() }
    }

    /// Closes every link with 1001. Nodes connect again when they find the mesh relay again.
    pub fn shut_down(&self) {
        // Taken out, so that the lock is free when the links end: the task of each link takes it.
        let ports = std::mem::take(&mut self.shared.lock().ports);
        for port in ports.into_values() {
            port.close((1001, "the relay is stopping"));
        }
    }

    /// The registered nodes, for `/peers`.
    pub fn peers(&self) -> Vec<Summary> {
        self.shared.lock().switchboard.peers()
    }
}

impl std::fmt::Debug for MeshRelay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeshRelay").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn connected(
        &self,
        outbox: Outbox,
        challenge: Option<Challenge>,
    ) -> Result<(Connection, oneshot::Receiver<Goodbye>), Goodbye> {
        let mut board = self.lock();
        let connection = board.switchboard.connected(now(), challenge).ok_or(close::FULL)?;
        let (port, closing) = Port::new(outbox);
        board.ports.insert(connection, port);
        board.carry_out();
        Ok((connection, closing))
    }

    pub(crate) fn heard(
        &self,
        connection: Connection,
        heard: ReceivedMessage<'_>,
    ) -> (Standing, Option<Delivery>) {
        let mut board = self.lock();
        let standing = board.switchboard.heard(now(), connection, heard);
        (standing, board.carry_out())
    }

    pub(crate) fn give_up(&self, from: Connection, to: Connection, session: &str) {
        let mut board = self.lock();
        board.switchboard.give_up(from, to, session);
        board.carry_out();
    }

    pub(crate) fn sweep(&self) {
        let mut board = self.lock();
        board.switchboard.sweep(now());
        board.carry_out();
    }

    pub(crate) fn gone(&self, connection: Connection) {
        let mut board = self.lock();
        board.ports.remove(&connection);
        board.switchboard.gone(now(), connection);
        board.carry_out();
    }

    fn is_own(&self, host: &String) -> bool {
        !host.is_empty() && (self.hosts.is_empty() || self.hosts.contains(host))
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// Carries out the outputs under the lock, so that they leave in the order in which they were
    /// decided. At most one output has to wait for room: it is returned for the sender's task.
    fn carry_out(&mut self) -> Option<Delivery> {
        let mut waiting = None;
        while let Some(output) = self.switchboard.poll_output() {
            match output {
                Output::Send { to, text, waits } => match self.ports.get(&to) {
                    Some(port) if waits => waiting = Some(port.delivery(to, text)),
                    Some(port) => port.push(text),
                    None => {}
                },
                Output::Close { connection, code, reason } => {
                    if let Some(port) = self.ports.remove(&connection) {
                        port.close((code, reason));
                    }
                }
            }
        }
        waiting
    }
}

fn now() -> Now {
    Now { instant: Instant::now().into_std(), unix_ms: base::unix_ms(SystemTime::now()) }
}

fn a_challenge(host: String) -> Challenge {
    Challenge { nonce: format!("{:032x}", rand::random::<u128>()), host }
}

fn refuse(error: UpgradeError) -> Response<String> {
    let mut response = Response::new(error.to_string());
    *response.status_mut() = error.status();
    plain(response)
}

fn misdirected() -> Response<String> {
    let words = "this relay is not known by the name that you dialled";
    let mut response = Response::new(words.to_owned());
    *response.status_mut() = http::StatusCode::MISDIRECTED_REQUEST;
    plain(response)
}

fn plain(mut response: Response<String>) -> Response<String> {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}
