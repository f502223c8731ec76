//! Clients that leave: the backend sees the abort, the slot is free.

use testkit::{Connection, Daemon, Gate, MockBackend, Reply, WorkerProcess};

use crate::common::{CHAT, ask, with_lender};

/// A server with one slot, whose backend's next reply is held back.
struct BlockedServer {
    daemon: Daemon,
    backend: MockBackend,
    gate: Gate,
    _worker: WorkerProcess,
}

impl BlockedServer {
    async fn new() -> Self {
        let (daemon, backend, worker) = with_lender(1).await;
        Self { daemon, backend, gate: Gate::closed(), _worker: worker }
    }

    async fn ask(&self, stream: bool) -> Connection {
        self.daemon.client().post(CHAT, &ask(stream)).open().await
    }

    /// The backend has seen the abort, nothing is held, and the next request is answered.
    async fn is_free(&self) {
        self.backend.aborted(1).await;
        self.daemon.is_idle().await;
        assert_eq!(self.backend.counts().in_flight(), 0);
        let next = self.daemon.client().post_json(CHAT, &ask(false)).await;
        assert_eq!(next.status, 200);
    }
}

#[tokio::test]
async fn the_backend_sees_a_stream_being_reset_in_its_middle() {
    let held = BlockedServer::new().await;
    held.backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &held.gate));
    let asked = held.ask(true).await;
    held.gate.open(1);
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    answer.reset();
    held.is_free().await;
}

/// A client that closes its half is not to be told from one that hung up, until something is
/// written to it. It counts as gone, so that a hang-up is seen at once.
#[tokio::test]
async fn half_closing_is_hanging_up() {
    let held = BlockedServer::new().await;
    held.backend.then(Reply::completion("late").after(&held.gate));
    let mut asked = held.ask(false).await;
    held.backend.request().await;
    asked.half_close().await;
    held.is_free().await;
    asked.closed().await;
}
