//! A server, a worker, and what the worker lends.

use std::path::Path;

use testkit::{
    ChatScript, ChildProcess, Client, DEADLINE, Daemon, MockBackend, Serve, daemon::WORKER_SECRET,
    eventually,
};

/// The key that the clients show. Without it, even local ones are refused.
pub(crate) const KEY: &str = "sk-dummy";

/// A server with one worker.
pub(crate) struct House {
    pub(crate) daemon: Daemon,
    _worker: ChildProcess,
}

impl House {
    /// A server, and a worker with these arguments that lends `model`.
    pub(crate) async fn lending(backend: &[&str], model: &str) -> Self {
        Self::of(serve(), backend, model).await
    }

    /// The same, of a server with further flags.
    pub(crate) async fn of(serve: Serve, backend: &[&str], model: &str) -> Self {
        let daemon = serve.start().await;
        let worker = worker(&daemon, backend);
        let house = Self { daemon, _worker: worker };
        house.offers(model).await;
        house
    }

    /// A server and a worker that lends the built-in demo, which serves every API natively.
    pub(crate) async fn demo() -> Self {
        Self::lending(&["--demo", "--demo-pace", "0"], "warren-demo").await
    }

    /// A server and a worker that lends a backend which has Chat Completions only.
    pub(crate) async fn chat_only(script: ChatScript) -> (Self, MockBackend) {
        let backend = script.start().await;
        let house = Self::lending(&["--backend", &backend.url()], "chat").await;
        (house, backend)
    }

    /// A client of the tests' own, with the key.
    pub(crate) fn client(&self) -> Client {
        self.daemon.client().with_token(KEY)
    }

    /// Waits until it offers a model.
    pub(crate) async fn offers(&self, model: &str) {
        let offered = async || {
            let list = self.client().get("/v1/models").await.json();
            let mut models = list["data"].as_array().into_iter().flatten();
            models.any(|one| one["id"] == model)
        };
        eventually("the model being offered", DEADLINE, offered).await;
    }
}

/// A server that wants to see [`KEY`], to be started.
pub(crate) fn serve() -> Serve {
    let serve = Serve::new(binary()).set("--client-token", KEY).flag("--require-key");
    serve.set("--node-token", WORKER_SECRET)
}

fn worker(daemon: &Daemon, backend: &[&str]) -> ChildProcess {
    let url = daemon.url();
    let lent = ["worker", "--server", &url, "--secret", WORKER_SECRET, "--max-concurrent", "8"];
    ChildProcess::start("worker", binary(), &[&lent[..], backend].concat())
}

/// The real binary.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_warren"))
}
