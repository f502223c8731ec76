//! The members, and clients of them.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    Daemon, Random, Serve, eventually,
    workspace::{Knock, ServerMessage, WorkspaceClient},
};
use tokio::{sync::Mutex, time::timeout};

use crate::cluster::{Settings, ways::Ways};

const TOKEN: &str = "the-token-of-this-soak";
const CLUSTER_TOKEN: &str = "the-secret-of-this-cluster";
/// No answer takes longer, however busy the machine is and whatever is stopped.
const ANSWER: Duration = Duration::from_secs(60);

/// All members have links to all others this long after their start.
const LINKED: Duration = Duration::from_secs(60);

pub(crate) struct Members {
    pub(crate) all: Vec<Member>,
    pub(crate) ways: Ways,
    dir: TempDir,
}

pub(crate) struct Member {
    pub(crate) daemon: Mutex<Daemon>,
    pub(crate) address: SocketAddr,
    pub(crate) node_id: String,
    /// How often it was killed. It is counted before it dies.
    kills: AtomicU64,
}

impl Members {
    pub(crate) async fn start(settings: &Settings) -> Self {
        let (ways, dir) =
            (Ways::between(settings.members).await, TempDir::new().expect("a directory"));
        let mut all = Vec::new();
        for number in 0..settings.members {
            let daemon = serve(settings, number, &ways).start().await;
            let address = daemon.address();
            let node_id = node_id(address).await.expect("it answers");
            let (daemon, kills) = (Mutex::new(daemon), AtomicU64::new(0));
            all.push(Member { daemon, address, node_id, kills });
        }
        let members = Self { all, ways, dir };
        for number in 0..settings.members {
            members.is_back(number).await.expect("it answers");
        }
        eventually("that all are linked", LINKED, async || members.are_linked().await).await;
        members
    }

    pub(crate) fn dir(&self) -> String {
        self.dir.path().display().to_string()
    }

    pub(crate) fn any(&self, random: &mut Random) -> usize {
        random.below(self.all.len() as u64) as usize
    }

    /// Any but this one.
    pub(crate) fn any_but(&self, member: usize, random: &mut Random) -> usize {
        let count = self.all.len();
        (member + 1 + random.below(count as u64 - 1) as usize) % count
    }

    pub(crate) fn kills(&self, member: usize) -> u64 {
        self.all[member].kills.load(Ordering::SeqCst)
    }

    pub(crate) async fn kill_and_restart(&self, number: usize) -> Result<(), String> {
        let member = &self.all[number];
        member.kills.fetch_add(1, Ordering::SeqCst);
        member.daemon.lock().await.kill_and_restart().await;
        self.is_back(number).await
    }

    /// The ways lead to its peer port, which is another one in each of its lives.
    async fn is_back(&self, number: usize) -> Result<(), String> {
        let config = self.ask(number, json!({"type": "get_cluster_config"}), "cluster_config");
        let port = config.await?["peer_port"].as_u64().and_then(|port| port.try_into().ok());
        let port = port.ok_or("a member without a peer port")?;
        self.ways.lead_to(number, SocketAddr::new([127, 0, 0, 1].into(), port));
        Ok(())
    }

    async fn are_linked(&self) -> bool {
        for number in 0..self.all.len() {
            let status = self.ask(number, json!({"type": "cluster_status"}), "cluster_status");
            let status = status.await.unwrap_or_default();
            let others = status["cluster"]["peers"].as_array().cloned().unwrap_or_default();
            let linked = others.iter().filter(|other| other["connected"] == true).count();
            if linked + 1 < self.all.len() {
                return false;
            }
        }
        true
    }

    /// An authenticated client; `None` when no connection comes about.
    pub(crate) async fn client(&self, member: usize) -> Option<WorkspaceClient> {
        client(self.all[member].address).await
    }

    /// Asks on a connection of its own.
    ///
    /// # Errors
    /// With words when there is no answer, or another one.
    pub(crate) async fn ask(
        &self,
        member: usize,
        message: Value,
        kind: &str,
    ) -> Result<Value, String> {
        self.ask_where(member, message, kind, |_| true).await
    }

    /// The same, for an answer that is as wished.
    pub(crate) async fn ask_where(
        &self,
        member: usize,
        message: Value,
        kind: &str,
        wished: impl Fn(&Value) -> bool,
    ) -> Result<Value, String> {
        let client = self.client(member).await;
        ask(&mut client.ok_or("no connection came about")?, message, kind, wished).await
    }
}

fn serve(settings: &Settings, number: usize, ways: &Ways) -> Serve {
    let serve = Serve::new(&settings.trial.binary).set("--workspace-token", TOKEN);
    let serve = serve.set("--cluster-token", CLUSTER_TOKEN).flag("--no-peer-discovery");
    let serve = serve.set("--peer-listen", "127.0.0.1:0").set("--node-name", &name(number));
    ways.peers_of(number).fold(serve, |serve, peer| serve.set("--peer", &peer))
}

pub(crate) fn name(number: usize) -> String {
    format!("member {number}")
}

async fn node_id(address: SocketAddr) -> Result<String, String> {
    let mut client = client(address).await.ok_or("no connection came about")?;
    let status = json!({"type": "cluster_status"});
    let status = ask(&mut client, status, "cluster_status", |_| true).await?;
    let id = status["cluster"]["node_id"].as_str();
    Ok(id.ok_or("a member without an id")?.to_owned())
}

async fn client(address: SocketAddr) -> Option<WorkspaceClient> {
    let mut client = Knock::at(address).open().await.ok()?;
    client.say(json!({"type": "auth", "token": TOKEN})).await;
    let told = timeout(ANSWER, client.next_ever()).await.ok()??;
    (told.as_message("auth_result")?["success"] == true).then_some(client)
}

async fn ask(
    client: &mut WorkspaceClient,
    message: Value,
    kind: &str,
    wished: impl Fn(&Value) -> bool,
) -> Result<Value, String> {
    let what = message["type"].clone();
    client.say(message).await;
    let refusals = ["error", "session_unknown"];
    let answered = async {
        loop {
            match client.next_ever().await {
                Some(ServerMessage::Message(told)) if told["type"] == kind && wished(&told) => {
                    return Ok(told);
                }
                Some(told) if refusals.contains(&told.kind()) => {
                    return Err(format!("{what} was answered with {told:?}"));
                }
                Some(_) => {}
                None => return Err(format!("{what}: the connection ended")),
            }
        }
    };
    let late = |_| Err(format!("{what} was not answered in {ANSWER:?}"));
    timeout(ANSWER, answered).await.unwrap_or_else(late)
}
