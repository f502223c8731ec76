//! The servers, the workers, and what the servers share.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Mutex as Lock,
    time::Duration,
};

use serde_json::json;
use testkit::{
    Client, Daemon, MockBackend, Random, Serve, Way, WorkerProcess,
    lab::{Patience, http},
    nats::NatsServer,
    postgres::PostgresServer,
};
use tokio::sync::Mutex;

use crate::{
    fleet::{
        faults::Faults,
        judge::{Model, SERVERS, WORKERS, word},
    },
    tokens::{PATHS, Tokens, answer, number_in},
};

const OWNER: &str = "wa_the-owner-of-all";

/// How many requests a worker takes at once.
pub(crate) const SLOTS: u64 = 8;

/// The longest that a backend thinks before each piece of an answer, in milliseconds.
const THINKS: u64 = 80;

pub(crate) const PATIENCE: Patience = Patience {
    queue: Duration::from_secs(20),
    request: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    requeues: 3,
};

pub(crate) struct House {
    pub(crate) servers: Vec<Server>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) nats: Mutex<NatsServer>,
    pub(crate) postgres: Mutex<PostgresServer>,
    pub(crate) faults: Faults,
    /// A consumer's key.
    key: String,
    database: String,
    binary: PathBuf,
}

pub(crate) struct Server {
    pub(crate) daemon: Mutex<Daemon>,
    pub(crate) address: SocketAddr,
    /// From it to NATS.
    pub(crate) way: Way,
}

pub(crate) struct Worker {
    pub(crate) process: Mutex<WorkerProcess>,
    pub(crate) backend: MockBackend,
}

impl House {
    pub(crate) async fn start(binary: &Path) -> Self {
        let (nats, postgres) = (NatsServer::start(), PostgresServer::start());
        let database = postgres.database();
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            servers.push(Server::start(binary, number, &nats, &database).await);
        }
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            workers.push(Worker::start(binary, number, &servers[number % SERVERS]).await);
        }
        let key = servers[0].make_key().await;
        let house = Self {
            servers,
            workers,
            nats: Mutex::new(nats),
            postgres: Mutex::new(postgres),
            faults: Faults::default(),
            key,
            database,
            binary: binary.to_owned(),
        };
        house.is_whole().await;
        house
    }

    /// Waits until each server serves the models of all, to the holder of the key.
    async fn is_whole(&self) {
        for server in &self.servers {
            let client = self.client(server.address);
            let serves = async || {
                let told = client.get("/v1/models").await.text();
                (0..SERVERS).all(|owner| told.contains(&Model::At(owner).name()))
            };
            testkit::eventually("the models of all servers", Duration::from_secs(60), serves).await;
        }
    }

    /// A consumer at a server.
    pub(crate) fn client(&self, address: SocketAddr) -> Client {
        Client::new(address).with_token(&self.key)
    }

    /// Asks PostgreSQL, past the servers.
    pub(crate) async fn sql(&self, sql: &str) -> String {
        self.postgres.lock().await.sql(&self.database, sql)
    }

    /// A new process of a worker that has ended.
    pub(crate) fn worker_process(&self, number: usize) -> WorkerProcess {
        let server = &self.servers[number % SERVERS];
        Worker::process(&self.binary, number, server, &self.workers[number].backend)
    }
}

impl Server {
    async fn start(binary: &Path, number: usize, nats: &NatsServer, database: &str) -> Self {
        let way = Way::new().await;
        way.lead_to(nats.address().parse().expect("an address"));
        let mut serve = Serve::new(binary)
            .set("--database", database)
            .set("--cluster", &format!("nats://{}/soak", way.address()))
            .set("--admin-token", OWNER)
            .set("--server-name", &format!("server-{number}"))
            .set("--max-queue-len", "1000")
            .flag("--require-key");
        for (flag, value) in PATIENCE.flags() {
            serve = serve.set(flag, &value);
        }
        let daemon = serve.start().await;
        let address = daemon.address();
        Self { daemon: Mutex::new(daemon), address, way }
    }

    async fn make_key(&self) -> String {
        let owner = Client::new(self.address).with_token(OWNER);
        let made = owner.post_json("/admin/keys", &json!({"name": "soak"})).await;
        made.json()["key"].as_str().expect("a key").to_owned()
    }

    /// Its report of its health, if it answers.
    pub(crate) async fn health(&self) -> Option<serde_json::Value> {
        let request = Client::new(self.address).request("GET", "/health");
        Some(http::json(self.address, &request).await.ok()?.1)
    }

    /// Its report of its workers, those of other servers among them.
    pub(crate) async fn workers(&self) -> Vec<serde_json::Value> {
        let request = Client::new(self.address).with_token(OWNER).request("GET", "/admin/workers");
        let told =
            http::json(self.address, &request).await.map(|(_, told)| told).unwrap_or_default();
        told["workers"].as_array().cloned().unwrap_or_default()
    }
}

impl Worker {
    async fn start(binary: &Path, number: usize, server: &Server) -> Self {
        let models = [Model::Everywhere, Model::At(number % SERVERS)].map(Model::name);
        let backend = MockBackend::start(&models.each_ref().map(String::as_str)).await;
        script(&backend, number);
        let process = Mutex::new(Self::process(binary, number, server, &backend));
        Self { process, backend }
    }

    fn process(
        binary: &Path,
        number: usize,
        server: &Server,
        backend: &MockBackend,
    ) -> WorkerProcess {
        let (url, slots) = (format!("http://{}", server.address), SLOTS.to_string());
        let (name, args) = (format!("worker-{number}"), ["--max-concurrent", &slots]);
        WorkerProcess::start(binary, &url, &backend.url(), &name, &args)
    }
}

/// Lets a backend answer each request with the tokens of its number, in its own word.
fn script(backend: &MockBackend, worker: usize) {
    backend.answers_only(&PATHS);
    let (word, random) = (word(worker), Lock::new(Random::new(worker as u64)));
    backend.answer_with(move |received| {
        let body = received.json();
        let tokens = Tokens::of(number_in(&body.to_string(), "n=").unwrap_or_default());
        let thinks = random.lock().expect("nobody panics with it").below(THINKS);
        answer(received, &body, tokens, &word).thinking(Duration::from_millis(thinks))
    });
}
