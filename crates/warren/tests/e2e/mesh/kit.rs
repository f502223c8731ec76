//! Machines of a mesh, and what they see of each other.

use std::{net::SocketAddr, path::Path};

use serde_json::{Value, json};
use testkit::{
    ChildProcess, Client, DEADLINE, Daemon, Gate, MockBackend, Reply, Response, Serve, Way,
    WorkerProcess,
    chat::{FINISH, delta},
    eventually,
};

use super::servers::{identity, lan_address, mesh, peers};
use crate::{
    cli::Ran,
    common::{CHAT, binary, lend, serve},
};

/// Makes of each function that takes a [`LinkKind`] two tests, one for each.
macro_rules! both_ways {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn lan() {
                super::$name(crate::mesh::kit::LinkKind::Lan).await;
            }

            #[tokio::test]
            async fn relay() {
                super::$name(crate::mesh::kit::LinkKind::Relay).await;
            }
        }
    )+};
}
pub(super) use both_ways;

/// How two machines are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    Lan,
    Relay,
}

impl LinkKind {
    /// As `/admin/mesh/peers` has it.
    pub(super) fn link(self) -> &'static str {
        match self {
            Self::Lan => "lan",
            Self::Relay => "relay",
        }
    }
}

/// A server that takes part in the mesh, and what it lends.
pub(super) struct Machine {
    pub(super) daemon: Daemon,
    /// The backend that answers for it, if it has a worker.
    pub(super) mock: MockBackend,
    worker: Option<WorkerProcess>,
    pub(super) id: String,
}

/// Settings of a machine that listens on the LAN and answers anyone.
pub(super) fn listening() -> Serve {
    serve().set("--mesh-listen", "127.0.0.1:0").set("--mesh-share", "anyone")
}

/// Settings with a file beside them.
pub(super) fn with_file(settings: Serve, toml: &str) -> Serve {
    let path = settings.data_dir().join("settings.toml");
    std::fs::write(&path, toml).expect("a file");
    settings.set("--config", path.to_str().expect("a path of text"))
}

impl Machine {
    /// A machine without models.
    pub(super) async fn start(settings: Serve) -> Self {
        let daemon = settings.start().await;
        let id = identity(&daemon).await["id"].as_str().expect("an id").to_owned();
        let mock = MockBackend::start(&["m"]).await;
        Self { daemon, mock, worker: None, id }
    }

    /// A machine that lends the model `m`, for `slots` requests at once.
    pub(super) async fn lending(settings: Serve, slots: u32) -> Self {
        let mut machine = Self::start(settings).await;
        machine.lend(slots).await;
        machine
    }

    /// Lends the model `m` from now on.
    pub(super) async fn lend(&mut self, slots: u32) {
        self.worker = Some(lend(&self.daemon, &self.mock, slots).await);
    }

    /// The server's description of itself in the mesh.
    pub(super) async fn told(&self) -> Value {
        identity(&self.daemon).await
    }

    /// Where peers on the LAN connect to.
    pub(super) async fn lan(&self) -> String {
        lan_address(&self.daemon).await
    }

    /// The same, for fakes.
    pub(super) async fn lan_address(&self) -> SocketAddr {
        self.lan().await.parse().expect("an address")
    }

    /// Its knowledge of its peers.
    pub(super) async fn peers(&self) -> Vec<Value> {
        peers(&self.daemon).await
    }

    /// Its knowledge of a peer, if it has any.
    pub(super) async fn peer(&self, id: &str) -> Option<Value> {
        self.peers().await.into_iter().find(|peer| peer["id"] == id)
    }

    /// Waits until what it knows of a peer is as wished, and returns it.
    #[track_caller]
    pub(super) fn sees(&self, id: &str, wished: fn(&Value) -> bool) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let sees = async || self.peer(id).await.is_some_and(|peer| wished(&peer));
            eventually(&format!("a peer as wished at {caller}"), DEADLINE, sees).await;
            self.peer(id).await.expect("it was there just now")
        }
    }

    /// Waits until there is a link to a peer that serves `m`.
    pub(super) async fn is_linked(&self, id: &str) -> Value {
        self.sees(id, |peer| peer["status"] == "ok" && serves(peer)).await
    }

    /// Waits until there is no link to a peer.
    pub(super) async fn is_parted(&self, id: &str) {
        let parted = async || match self.peer(id).await {
            None => true,
            Some(peer) => ["none", "listed"].contains(&peer["link"].as_str().expect("text")),
        };
        eventually("the end of a link", DEADLINE, parted).await;
    }

    /// Waits until it is registered at all its relays.
    pub(super) async fn is_registered(&self) {
        let registered = async || {
            let relays = self.told().await["relays"].clone();
            relays.as_array().is_some_and(|all| all.iter().all(|relay| relay["connected"] == true))
        };
        eventually("a registration at the relay", DEADLINE, registered).await;
    }

    /// The problems that have to be put right there.
    pub(super) async fn problems(&self) -> String {
        self.told().await["problems"].to_string()
    }

    /// Asks it for an answer of the model `m`.
    pub(super) async fn ask(&self, body: &Value) -> Response {
        self.daemon.client().post_json(CHAT, body).await
    }

    /// The same for another route than its own.
    pub(super) async fn ask_by(&self, route: &str, body: &Value) -> Response {
        let client = self.daemon.client().with_header("x-warren-route", route);
        client.post_json(CHAT, body).await
    }

    pub(super) fn client(&self) -> Client {
        self.daemon.client()
    }

    /// Runs `warren mesh` against it.
    pub(super) async fn cli(&self, args: &[&str]) -> Ran {
        mesh(&self.daemon, args).await
    }

    /// Whether it answers, and is well.
    pub(super) async fn is_healthy(&self) {
        assert_eq!(self.daemon.health().await["ok"], true);
    }
}

pub(super) fn serves(peer: &Value) -> bool {
    peer["models"].as_array().is_some_and(|models| models.iter().any(|model| model == "m"))
}

/// `warren mesh relay`.
pub(super) struct RelayProcess {
    pub(super) process: ChildProcess,
    pub(super) address: SocketAddr,
    directory: tempfile::TempDir,
}

impl RelayProcess {
    pub(super) async fn start(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (process, address) = Self::run(directory.path(), "127.0.0.1:0", args).await;
        Self { process, address, directory }
    }

    async fn run(directory: &Path, listen: &str, more: &[&str]) -> (ChildProcess, SocketAddr) {
        let directory = directory.display().to_string();
        let mut args = vec!["mesh", "relay", "--listen", listen, "--data-dir", &directory];
        args.extend(more);
        let process = ChildProcess::start("relay", binary(), &args);
        let address = process.listening("ws").await;
        (process, address)
    }

    pub(super) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Kills it and starts it again at the same address.
    pub(super) async fn kill_and_restart(&mut self) {
        self.process.kill9().await;
        let listen = self.address.to_string();
        (self.process, self.address) = Self::run(self.directory.path(), &listen, &[]).await;
    }
}

/// One machine that lends `m`, and one that asks it.
pub(super) struct Pair {
    pub(super) asker: Machine,
    pub(super) lender: Machine,
    pub(super) relay: Option<RelayProcess>,
    /// On the LAN from who asks to who lends, else from who lends to the relay.
    pub(super) wire: Way,
}

impl Pair {
    /// The two, once the one that asks knows what the other one lends.
    pub(super) async fn new(way: LinkKind, slots: u32) -> Self {
        Self::of(way, serve().set("--mesh-share", "anyone"), serve(), slots).await
    }

    /// The same with settings of their own.
    pub(super) async fn of(way: LinkKind, lender: Serve, asker: Serve, slots: u32) -> Self {
        match way {
            LinkKind::Lan => Self::on_lan(lender, asker, slots).await,
            LinkKind::Relay => Self::at_relay(lender, asker, slots).await,
        }
    }

    async fn on_lan(lender: Serve, asker: Serve, slots: u32) -> Self {
        let lender = Machine::lending(lender.set("--mesh-listen", "127.0.0.1:0"), slots).await;
        let wire = Way::to(lender.lan_address().await).await;
        let asker = Machine::start(asker.set("--mesh-peer", &wire.address().to_string())).await;
        asker.is_linked(&lender.id).await;
        Self { asker, lender, relay: None, wire }
    }

    async fn at_relay(lender: Serve, asker: Serve, slots: u32) -> Self {
        let relay = RelayProcess::start(&[]).await;
        // It is let to the relay only when it has something to tell there.
        let wire = Way::new().await;
        let lender = lender.set("--mesh-relay", &format!("ws://{}", wire.address()));
        let lender = Machine::lending(lender, slots).await;
        wire.lead_to(relay.address);
        lender.is_registered().await;
        let asker = Machine::start(asker.set("--mesh-relay", &relay.url())).await;
        asker.sees(&lender.id, serves).await;
        Self { asker, lender, relay: Some(relay), wire }
    }

    /// Kills the machine that lends, and starts it again.
    pub(super) async fn restart_lender(&mut self) {
        self.wire.cut();
        self.lender.daemon.kill_and_restart().await;
        self.lender.daemon.has_workers(1).await;
        if self.relay.is_none() {
            self.wire.lead_to(self.lender.lan_address().await);
        }
        self.wire.mend();
    }
}

/// A request for `m` with this text.
pub(super) fn saying(text: &str, stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]})
}

pub(super) fn sse(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An answer of a backend that says these words, one for each opening of the gate, of which its end
/// needs one more.
pub(super) fn words(words: &[&str], gate: &Gate) -> Reply {
    let mut chunks: Vec<String> = words.iter().map(|word| delta(word)).collect();
    chunks.last_mut().expect("a word").push_str(FINISH);
    Reply::stream(chunks, gate)
}

/// Has a backend answer every request with this text, in the form that is asked for.
pub(super) fn always(mock: &MockBackend, text: &'static str) {
    mock.answer_with(move |received| match received.json()["stream"] == true {
        true => words(&[text], &Gate::opened()),
        false => Reply::completion(text),
    });
}

/// The data of the events of a stream.
pub(super) fn events(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// The text of a whole answer.
#[track_caller]
pub(super) fn whole(response: &Response) -> String {
    assert_eq!(response.status, 200, "{}", response.text());
    let json = response.json();
    json["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}
