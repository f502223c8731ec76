//! A worker with its model server, and how it is lost.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use testkit::{
    ChildProcess, Client, DEADLINE, MockBackend, Story, WorkerProcess, eventually, lab::http,
};

use crate::resume::{Settings, house::MODEL};

/// How long a model server may take to be there.
const LOADED_WITHIN: Duration = Duration::from_secs(60);

/// How long the stand-in takes for a piece of text.
const PACE: Duration = Duration::from_millis(5);

/// A model server.
enum Server {
    /// Ends when it is dropped.
    StandIn {
        _backend: MockBackend,
    },
    Program(Box<ChildProcess>),
}

/// How a node is lost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    ModelServer,
    Worker,
    Drain,
}

pub(crate) const WAYS: [Way; 3] = [Way::ModelServer, Way::Worker, Way::Drain];

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ModelServer => "model servers killed",
            Self::Worker => "workers killed",
            Self::Drain => "workers drained",
        }
    }
}

/// A worker with its model server.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    binary: PathBuf,
    program: Option<(PathBuf, PathBuf)>,
    slots: String,
    server: Option<Server>,
    worker: Option<WorkerProcess>,
}

impl Node {
    /// Starts the model server and the worker.
    pub(crate) async fn start(settings: &Settings, number: usize, warren: &str) -> Self {
        let program = settings.with.clone().zip(settings.model.clone());
        let slots = settings.slots.unwrap_or(if program.is_some() { 1 } else { 4 });
        let mut node = Self {
            name: format!("node-{number}"),
            address: free_port(),
            binary: settings.trial.binary.clone(),
            program,
            slots: slots.to_string(),
            server: None,
            worker: None,
        };
        node.start_server().await;
        node.start_worker(warren);
        node
    }

    /// Loses what is lost in this way. A worker that was drained is gone from its server already.
    pub(crate) async fn lose(&mut self, way: Way) {
        match way {
            Way::ModelServer => match self.server.take() {
                Some(Server::Program(mut program)) => program.kill9().await,
                Some(Server::StandIn { .. }) | None => {}
            },
            Way::Worker | Way::Drain => {
                if let Some(mut worker) = self.worker.take() {
                    worker.kill9().await;
                }
            }
        }
    }

    /// Starts what was lost.
    pub(crate) async fn mend(&mut self, warren: &str) {
        if self.server.is_none() {
            self.start_server().await;
        }
        if self.worker.is_none() {
            self.start_worker(warren);
        }
    }

    async fn start_server(&mut self) {
        self.server = Some(match &self.program {
            None => Server::StandIn { _backend: self.stand_in().await },
            Some((program, model)) => Server::Program(Box::new(self.run(program, model).await)),
        });
    }

    async fn stand_in(&self) -> MockBackend {
        // The one before may still be going.
        let is_free = async || std::net::TcpListener::bind(self.address).is_ok();
        eventually("the port being free", DEADLINE, is_free).await;
        let story = Story::like_llama_cpp().at_pace(PACE);
        story.start_at(self.address, &[MODEL]).await
    }

    async fn run(&self, program: &Path, model: &Path) -> ChildProcess {
        let (port, model) = (self.address.port().to_string(), model.display().to_string());
        let args = ["--model", &model, "--host", "127.0.0.1", "--port", &port, "--alias", MODEL];
        let all =
            [&args[..], &["--ctx-size", "16384", "--parallel", &self.slots, "--threads", "1"]]
                .concat();
        let process = ChildProcess::start(&format!("{}-model", self.name), program, &all);
        let health = Client::new(self.address).request("GET", "/health");
        let loaded = async || {
            http::send(self.address, &health).await.is_ok_and(|answer| answer.status == 200)
        };
        eventually("the model being loaded", LOADED_WITHIN, loaded).await;
        process
    }

    fn start_worker(&mut self, warren: &str) {
        let url = format!("http://{}", self.address);
        let args = ["--models", MODEL, "--max-concurrent", &self.slots];
        self.worker = Some(WorkerProcess::start(&self.binary, warren, &url, &self.name, &args));
    }
}

/// An address that nobody has now.
fn free_port() -> SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("it is bound")
}
