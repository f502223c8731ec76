//! Agents of one member that think with the models of another.

use serde_json::{Value, json};
use testkit::{Client, DEADLINE, Gate, MockBackend, Reply, WorkerProcess, eventually};

use super::{
    cluster_kit::{linked, member, peer_address},
    kit::{Viewer, WorkspaceHost, id_of},
    talk::Agents,
};
use crate::common::{CHAT, MESSAGES, ask, lend};

/// Agents on `one`, and a backend with the model `m` at `two`.
struct Pair {
    one: Agents,
    two: WorkspaceHost,
    backend: MockBackend,
    worker: WorkerProcess,
}

impl Pair {
    async fn start() -> Self {
        let one = Agents::of(member("one", "secret").flag("--require-key"), "").await;
        // It dials, so that it finds the other again after a restart.
        let two = member("two", "secret").set("--peer", &peer_address(&one.place).await);
        let two = WorkspaceHost::of(two).await;
        let backend = MockBackend::start(&["m"]).await;
        backend.answers_only(&[CHAT]);
        backend.answer_with(|_| Reply::completion("from afar"));
        let worker = lend(&two.daemon, &backend, 2).await;
        linked(&one.place, 1).await;
        linked(&two, 1).await;
        Self { one, two, backend, worker }
    }

    /// A session on `one` with the model `m`.
    async fn talk(&self, provider: &str) -> Viewer {
        let mut client = self.one.place.client().await;
        let id = id_of(
            &client.ask(self.new_session(provider, "warren:m"), "session_created").await["session"],
        );
        Viewer::of(client, &id).await
    }

    fn new_session(&self, provider: &str, model: &str) -> Value {
        json!({
            "type": "new_session", "working_dir": self.one.place.dir(), "mode": "sdk",
            "provider": provider, "model": model,
        })
    }

    /// A client of `one` with the key of a new session.
    async fn session_key(&self) -> (Viewer, Client) {
        let mut viewer = self.talk("claude").await;
        let key = viewer.turn("env ANTHROPIC_AUTH_TOKEN").await.text;
        assert!(key.starts_with("ws_"), "{key}");
        let client = Client::new(self.one.place.daemon.address()).with_token(&key);
        (viewer, client)
    }
}

/// The rows of the ledger, by key.
async fn ledger(host: &WorkspaceHost) -> String {
    host.daemon.admin().get("/admin/usage?by=key").await.text()
}

#[tokio::test]
async fn an_agent_thinks_with_the_model_of_another_member_whose_ledger_has_its_usage() {
    let pair = Pair::start().await;
    for name in ["claude", "codex", "opencode"] {
        let mut viewer = pair.talk(name).await;
        let said = viewer.turn("gateway").await;
        assert!(said.text.contains("from afar"), "{name}: {said:?}");
        let key = format!("session:{}@one", viewer.id());
        let booked = async || ledger(&pair.two).await.contains(&key);
        eventually("a row of usage", DEADLINE, booked).await;
    }
    let here = ledger(&pair.one.place).await;
    assert!(!here.contains("session:"), "{here}");
}

#[tokio::test]
async fn the_key_of_a_killed_session_is_for_nothing_at_either_member() {
    let pair = Pair::start().await;
    let (mut viewer, client) = pair.session_key().await;
    let streamed = |gate: &Gate| Reply::stream(["data: 1\n\n", "data: 2\n\n"], gate);
    let gate = Gate::closed();
    pair.backend.then(streamed(&gate));
    let mut answer = client.post(CHAT, &ask(true)).start().await;
    gate.open(1);
    answer.expect("data: 1\n\n").await;
    viewer.says("kill_session").await;
    // The other member has ended the job, and tells its worker.
    pair.backend.aborted(1).await;
    pair.two.daemon.is_idle().await;
    let refused = client.post_json(CHAT, &ask(false)).await;
    assert_eq!(refused.status, 401, "{}", refused.text());
}

#[tokio::test]
async fn a_model_that_no_member_has_is_refused_with_a_list_of_what_there_is() {
    let mut pair = Pair::start().await;
    let mut client = pair.one.place.client().await;
    let refused = client.ask(pair.new_session("claude", "warren:big"), "error").await;
    let words = refused["message"].as_str().unwrap();
    assert!(words.contains("no machine of this cluster has the model big"), "{words}");
    assert!(words.contains("this machine has none; two has m"), "{words}");
    // For a session that is there already, it is an error of the API.
    let (_viewer, client) = pair.session_key().await;
    pair.worker.kill9().await;
    pair.two.daemon.has_workers(0).await;
    let answer = client.post_json(MESSAGES, &ask(false)).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    let error = &answer.json()["error"];
    assert_eq!(error["type"], "not_found_error", "{error}");
    assert!(error["message"].as_str().unwrap().contains("two has none"), "{error}");
}

#[tokio::test]
async fn a_member_that_is_killed_in_the_middle_of_an_answer_ends_it_with_the_apis_error_event() {
    let mut pair = Pair::start().await;
    let (_viewer, client) = pair.session_key().await;
    let gate = Gate::closed();
    let text = |text: &str| {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {chunk}\n\n")
    };
    pair.backend.then(Reply::stream([text("begun"), text("never")], &gate));
    let mut answer = client.post(MESSAGES, &ask(true)).start().await;
    gate.open(1);
    let mut told = String::new();
    while !told.contains("begun") {
        let chunk = answer.next_chunk().await.expect("more of the answer");
        told.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    pair.two.daemon.kill_and_restart().await;
    let rest = answer.finish().await.text();
    let last = rest.trim_end().rsplit("\n\n").next().unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap_or_else(|| panic!("{rest}"));
    let error: Value = serde_json::from_str(data).unwrap();
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("two, which has the model m: the answer broke off"), "{words}");
}
