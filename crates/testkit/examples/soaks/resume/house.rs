//! The server and its nodes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use testkit::{DEADLINE, Daemon, Random, Serve, eventually, lab::settles};
use tokio::{
    sync::{Mutex, Semaphore},
    time::sleep,
};

use crate::resume::{
    Settings,
    load::Report,
    node::{Node, WAYS, Way},
};

/// The model of all nodes.
pub(crate) const MODEL: &str = "story";

/// How often it is looked whether a node is busy.
const LOOK: Duration = Duration::from_millis(30);

/// How long the last slots may take to be free.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// All that runs.
pub(crate) struct House {
    daemon: Daemon,
    nodes: Vec<Mutex<Node>>,
    names: Vec<String>,
    addresses: Vec<SocketAddr>,
    /// How many nodes may be lost at a time: one is always there.
    lost: Semaphore,
    kills: AtomicU64,
    /// The longest that a node is left alone between two losses, in milliseconds.
    peace: u64,
    most_kills: u64,
    time: Option<Duration>,
}

impl House {
    pub(crate) async fn start(settings: &Settings) -> Self {
        let daemon = Serve::new(&settings.trial.binary)
            .set("--drain-timeout-secs", "0")
            .set("--max-queue-len", "1000")
            .start()
            .await;
        let mut nodes = Vec::new();
        for number in 0..settings.workers {
            nodes.push(Node::start(settings, number, &daemon.url()).await);
        }
        let house = Self {
            names: nodes.iter().map(|node| node.name.clone()).collect(),
            addresses: nodes.iter().map(|node| node.address).collect(),
            lost: Semaphore::new(settings.workers.saturating_sub(1).max(1)),
            nodes: nodes.into_iter().map(Mutex::new).collect(),
            kills: AtomicU64::new(0),
            peace: settings.peace,
            most_kills: settings.kills,
            time: settings.time,
            daemon,
        };
        for node in 0..house.nodes.len() {
            house.is_there(node).await;
        }
        house
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The address of a model server that nobody kills any more.
    pub(crate) fn model_server(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Loses a node again and again, in the middle of its answers, until there were enough losses.
    pub(crate) async fn kill(
        self: Arc<Self>,
        node: usize,
        mut random: Random,
        begun: Instant,
        report: Report,
    ) {
        loop {
            sleep(Duration::from_millis(random.below(self.peace.max(1)))).await;
            let _lost = self.lost.acquire().await.expect("it is never closed");
            while !self.is_over(begun) && !self.is_busy(node).await {
                sleep(LOOK).await;
            }
            if self.is_over(begun) {
                return;
            }
            self.kills.fetch_add(1, Ordering::Relaxed);
            let way = WAYS[random.below(WAYS.len() as u64) as usize];
            self.lose(node, way).await;
            report.tally(|tally| tally.lost(way.name()));
        }
    }

    async fn lose(&self, number: usize, way: Way) {
        let mut node = self.nodes[number].lock().await;
        if let (Way::Drain, Some(id)) = (way, self.id(number).await) {
            let path = format!("/admin/workers/{id}/drain");
            self.daemon.admin().post_json(&path, &Value::Null).await;
            let gone = async || self.id(number).await.as_deref() != Some(&id);
            eventually("a drained worker being gone", DEADLINE, gone).await;
        }
        node.lose(way).await;
        node.mend(&self.daemon.url()).await;
        drop(node);
        self.is_there(number).await;
    }

    /// Waits until a node's worker is there and goes on with answers.
    async fn is_there(&self, node: usize) {
        let goes_on = async || {
            self.worker(node)
                .await
                .is_some_and(|it| it["model_facts"][MODEL]["continuation"].is_string())
        };
        eventually("a worker that goes on with answers", DEADLINE, goes_on).await;
    }

    async fn worker(&self, node: usize) -> Option<Value> {
        let all = self.daemon.workers().await;
        all.into_iter().find(|worker| worker["worker_name"] == *self.names[node])
    }

    async fn id(&self, node: usize) -> Option<String> {
        Some(self.worker(node).await?["worker_id"].as_str()?.to_owned())
    }

    async fn is_busy(&self, node: usize) -> bool {
        let worker = self.worker(node).await;
        worker.is_some_and(|worker| worker["in_flight_count"].as_u64() > Some(0))
    }

    fn is_over(&self, begun: Instant) -> bool {
        self.kills.load(Ordering::Relaxed) >= self.most_kills
            || self.time.is_some_and(|time| begun.elapsed() > time)
    }

    /// Checks in the end that nothing is held any more, and that the server went on with every answer that broke off.
    pub(crate) async fn settle(&self, report: &Report) {
        let log = self.daemon.log();
        let breaks = log.lines().filter(|line| line.contains("an answer broke off"));
        for line in breaks.filter(|line| line.contains("refused") || line.contains("given_up")) {
            report.wrong(line);
        }
        let busy = async || {
            let health = self.daemon.health().await;
            let queued = health["queue_depth"].as_u64().filter(|depth| *depth > 0);
            let workers = self.daemon.workers().await;
            let held = workers.into_iter().find(|worker| worker["in_flight_count"] != 0);
            queued.map(|depth| format!("{depth} in the queue")).or(held.map(|it| it.to_string()))
        };
        settles(report, "in the end", SETTLED_WITHIN, busy).await;
    }
}
