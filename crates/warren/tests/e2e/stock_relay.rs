//! A real worker at a relay server that is not a Warren.

use testkit::{MockBackend, RelayServer, WorkerProcess, daemon::WORKER_SECRET};

use crate::common::{CHAT, ask, binary};

#[tokio::test]
async fn a_worker_lends_to_it() {
    let server = RelayServer::start().await;
    let backend = MockBackend::start(&["m"]).await;
    let (url, lent) = (server.url(), backend.url());
    let args = ["--models", "m", "--provider", "gpu box"];
    let _worker = WorkerProcess::start(binary(), &url, &lent, "lender", &args);
    let mut link = server.worker().await;
    assert_eq!((link.query.as_str(), link.secret.as_str()), ("provider=gpu+box", WORKER_SECRET));
    for stream in [false, true] {
        assert_eq!(link.ask(CHAT, &ask(stream)).await.status, 200);
    }
}
