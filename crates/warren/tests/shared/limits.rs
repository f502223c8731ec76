//! Limits that hold across servers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{
    Client, DEADLINE, Daemon, Gate, MockBackend, Reply, Response, WorkerProcess, eventually,
    postgres::PostgresServer,
};
use tokio::task::JoinSet;

use crate::servers::{CHAT, binary, owner, sharing};

/// The tokens that each answer here uses.
const TOKENS: u64 = 10;

/// Clients of each server that ask at the same time.
const CLIENTS: usize = 4;

/// Longer than it takes until what a dead server held goes back.
const LONG: Duration = Duration::from_secs(90);

/// A server with a worker that answers everything once its gate is open.
struct Answering {
    daemon: Daemon,
    backend: MockBackend,
    _worker: WorkerProcess,
}

impl Answering {
    async fn start(database: &str) -> Self {
        Self::behind(database, &Gate::opened()).await
    }

    async fn behind(database: &str, gate: &Gate) -> Self {
        let daemon = sharing(database).start().await;
        let backend = MockBackend::start(&["m"]).await;
        let gate = gate.clone();
        backend.answer_with(move |_| answer().after(&gate));
        let worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "w", &[]);
        let has_one = async || owner(&daemon).get("/admin/workers").await.text().contains("\"w\"");
        eventually("the worker", DEADLINE, has_one).await;
        Self { daemon, backend, _worker: worker }
    }

    async fn several<const N: usize>(database: &str) -> [Self; N] {
        let mut servers = Vec::new();
        for _ in 0..N {
            servers.push(Self::start(database).await);
        }
        servers.try_into().ok().unwrap()
    }

    fn client(&self, key: &str) -> Client {
        self.daemon.client().with_token(key)
    }

    async fn ask(&self, key: &str) -> Response {
        ask(&self.client(key)).await
    }

    /// Asks one after the other until it is refused. Returns how many were answered.
    async fn use_up(&self, key: &str) -> u64 {
        let mut answered = 0;
        while self.ask(key).await.status == 200 {
            answered += 1;
        }
        answered
    }

    /// Waits until a key works here.
    async fn knows(&self, key: &str) {
        let works = async || self.client(key).get("/v1/models").await.status == 200;
        eventually("the key", DEADLINE, works).await;
    }
}

fn answer() -> Reply {
    let message = json!({"role": "assistant", "content": "hello"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 4, "completion_tokens": 6});
    Reply::json(
        200,
        &json!({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}

async fn ask(client: &Client) -> Response {
    let message = json!({"role": "user", "content": "hi"});
    client.post_json(CHAT, &json!({"model": "m", "max_tokens": 6, "messages": [message]})).await
}

/// A key with these limits: its id and text.
async fn limited(daemon: &Daemon, limits: Value) -> (String, String) {
    let asked = json!({"name": "limited", "limits": limits});
    let made = owner(daemon).post_json("/admin/keys", &asked).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let text = |name: &str| made.json()[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

/// Asks all servers at once until every client is refused. Returns how many requests were answered.
async fn hammer(servers: &[Answering], key: &str) -> u64 {
    let mut asking = JoinSet::new();
    for server in servers {
        server.knows(key).await;
        for _ in 0..CLIENTS {
            let client = server.client(key);
            asking.spawn(async move {
                let mut answered = 0;
                loop {
                    match ask(&client).await.status {
                        200 => answered += 1,
                        429 => return answered,
                        other => panic!("{other}"),
                    }
                }
            });
        }
    }
    asking.join_all().await.into_iter().sum()
}

/// Waits until the ledger has `requests` requests of a key.
async fn ledger_has(daemon: &Daemon, id: &str, requests: u64) {
    crate::servers::tells_requests(daemon, id, requests).await;
}

#[tokio::test]
async fn a_budget_of_tokens_holds_for_all_servers_and_is_used_whole() {
    let servers = Answering::several::<3>(&PostgresServer::shared().database()).await;
    let budget = json!({"budget": {"tokens": 1_000, "per": "month"}});
    let (id, key) = limited(&servers[0].daemon, budget).await;
    let mut answered = hammer(&servers, &key).await;
    let most = 1_000 / TOKENS + (servers.len() * CLIENTS) as u64;
    assert!((1..=most).contains(&answered), "{answered}");
    // What was expected of jobs in flight and not used has come back.
    let until = Instant::now() + LONG;
    while answered < 1_000 / TOKENS {
        assert!(Instant::now() < until, "{answered} of the budget");
        answered += servers[1].use_up(&key).await;
    }
    assert!(answered <= most, "{answered}");
    for server in &servers {
        let refused = server.ask(&key).await;
        assert_eq!((refused.status, refused.header("x-should-retry")), (429, Some("false")));
        assert_eq!(refused.header("x-ratelimit-remaining-tokens"), Some("0"));
    }
    ledger_has(&servers[2].daemon, &id, answered).await;
    for server in servers {
        let mut server = server;
        server.daemon.stop_and_restart().await;
        assert_eq!(server.ask(&key).await.status, 429, "also after a restart");
    }
}

#[tokio::test]
async fn what_one_server_has_left_another_uses_to_the_last_token() {
    let [one, other] = Answering::several(&PostgresServer::shared().database()).await;
    let budget = json!({"budget": {"tokens": 600, "per": "month"}});
    let (_, key) = limited(&one.daemon, budget).await;
    for _ in 0..20 {
        assert_eq!(one.ask(&key).await.status, 200);
    }
    other.knows(&key).await;
    assert_eq!(other.use_up(&key).await, 40);
}

#[tokio::test]
async fn requests_at_the_same_time_hold_for_all_servers_and_a_dead_ones_go_back() {
    let database = PostgresServer::shared().database();
    let gate = Gate::closed();
    let servers =
        [Answering::behind(&database, &gate).await, Answering::behind(&database, &gate).await];
    let (_, key) = limited(&servers[0].daemon, json!({"concurrent": 3})).await;
    let mut asking = JoinSet::new();
    for server in &servers {
        server.knows(&key).await;
        for _ in 0..CLIENTS {
            let client = server.client(&key);
            asking.spawn(async move { ask(&client).await.status });
        }
    }
    for _ in 0..2 * CLIENTS - 3 {
        assert_eq!(asking.join_next().await.unwrap().unwrap(), 429);
    }
    let in_flight = |server: &Answering| server.backend.counts().in_flight();
    let all = async || servers.iter().map(in_flight).sum::<u64>() == 3;
    eventually("three requests in flight", DEADLINE, all).await;
    gate.open(3);
    while let Some(status) = asking.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    // One server holds all places and dies.
    let [mut one, other] = servers;
    for _ in 0..3 {
        let client = one.client(&key);
        // A place that another server has just left is not known of at once.
        asking.spawn(async move {
            while client.post(CHAT, &crate::servers::ask(false)).open().await.answer().await.status
                == 429
            {}
            0
        });
    }
    eventually("three at one", DEADLINE, async || in_flight(&one) == 3).await;
    assert_eq!(other.ask(&key).await.status, 429);
    one.daemon.kill9().await;
    gate.open(100);
    eventually("a place", LONG, async || other.ask(&key).await.status == 200).await;
}

#[tokio::test]
async fn an_outage_neither_stops_nor_overspends() {
    let mut postgres = PostgresServer::start();
    let servers = Answering::several::<2>(&postgres.database()).await;
    let budget = json!({"budget": {"tokens": 1_000, "per": "month"}});
    let (id, key) = limited(&servers[0].daemon, budget).await;
    let mut answered = 0;
    for server in &servers {
        server.knows(&key).await;
        assert_eq!(server.ask(&key).await.status, 200);
        answered += 1;
    }
    postgres.kill();
    let told = async || servers[0].daemon.health().await["status"] == "degraded";
    eventually("the outage", DEADLINE, told).await;
    for server in &servers {
        assert_eq!(server.ask(&key).await.status, 200, "it goes on");
        answered += 1;
    }
    answered += hammer(&servers, &key).await;
    // All slices, and the shares of what was free; the first to be heard of knew not what the other then took.
    let most = 1_000 / TOKENS + (servers.len() * CLIENTS) as u64 + 10;
    assert!((60..=most).contains(&answered), "{answered} of {most}");
    postgres.run();
    ledger_has(&servers[1].daemon, &id, answered).await;
    let until = Instant::now() + LONG;
    while answered < 1_000 / TOKENS {
        assert!(Instant::now() < until, "{answered} of the budget");
        answered += servers[0].use_up(&key).await;
    }
    assert!(answered <= most, "{answered} of {most}");
    for server in &servers {
        eventually("the end", LONG, async || server.ask(&key).await.status == 429).await;
    }
}
