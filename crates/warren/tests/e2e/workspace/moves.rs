//! Agents that move from one machine to another, and machines that are killed meanwhile.

use std::{cell::Cell, collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    DEADLINE,
    agents::{FakeAgents, program},
    eventually,
};

use super::{
    cluster_kit::{as_member, cluster, linked, peer_address},
    kit::{Viewer, WorkspaceHost, id_of, listed, serving},
};

/// A machine whose agents are fakes, with a project `p` and conversations of its own.
pub(super) struct Machine {
    pub(super) host: WorkspaceHost,
    id: String,
    project: String,
    _bin: TempDir,
}

impl Machine {
    async fn new(name: &str, peer: Option<&str>) -> Self {
        let bin = TempDir::new().expect("a directory");
        let fakes = FakeAgents::install(&program(), &bin.path().join("bin"));
        let config = bin.path().join("warren.toml");
        let text = format!("[workspace.agents.programs]\nclaude = {:?}\n", fakes.path("claude"));
        std::fs::write(&config, text).expect("it can be written");
        let serve = serving().set("--config", config.to_str().expect("text"));
        let mut serve = as_member(serve, name, "secret");
        if let Some(peer) = peer {
            serve = serve.set("--peer", peer);
        }
        let host = WorkspaceHost::of(serve).await;
        let id = cluster(&host).await["node_id"].as_str().expect("an id").to_owned();
        let project = project(&host, bin.path()).await;
        Self { host, id, project, _bin: bin }
    }

    /// The session, as this machine lists it; how often it does so.
    async fn lists(&self, id: &str) -> Vec<Value> {
        let all = listed(&mut self.host.client().await).await.into_iter();
        all.filter(|session| session["id"] == id).collect()
    }

    async fn runs(&self, id: &str) -> bool {
        self.lists(id).await.iter().any(|session| session["node_id"] == self.id)
    }
}

async fn project(host: &WorkspaceHost, state: &Path) -> String {
    let env = BTreeMap::from([("CLAUDE_CONFIG_DIR", state.join("claude"))]);
    let dir = host.dir();
    let create = json!({"type": "create_project", "name": "p", "working_dir": dir, "env": env});
    id_of(&host.client().await.ask(create, "project_saved").await["project"])
}

/// Two machines between which an agent moves, and the hub, where the clients are. The hub is never
/// killed, so the others find each other again.
pub(super) struct Moving {
    pub(super) hub: Machine,
    pub(super) pair: [Machine; 2],
}

impl Moving {
    pub(super) async fn new() -> Self {
        let hub = Machine::new("hub", None).await;
        let address = peer_address(&hub.host).await;
        let pair =
            [Machine::new("one", Some(&address)).await, Machine::new("two", Some(&address)).await];
        let moving = Self { hub, pair };
        moving.linked().await;
        moving
    }

    /// Waits until each is linked to both others.
    async fn linked(&self) {
        for machine in self.pair.iter().chain([&self.hub]) {
            linked(&machine.host, 2).await;
        }
    }

    /// An agent in the first machine's project; its id.
    pub(super) async fn agent(&self) -> String {
        let new = json!({"type": "new_session", "mode": "sdk", "provider": "claude",
            "name": "reviewer", "project_id": self.pair[0].project});
        let client = &mut self.pair[0].host.client().await;
        let id = id_of(&client.ask(new, "session_created").await["session"]);
        self.settled(&id).await;
        id
    }

    /// Waits until exactly one of the two runs the session, and all list it so; its place.
    async fn settled(&self, id: &str) -> usize {
        let owner = Cell::new(0);
        let settled = async || {
            let runs = [self.pair[0].runs(id).await, self.pair[1].runs(id).await];
            let running = usize::from(runs[1]);
            owner.set(running);
            if runs[0] == runs[1] {
                return false;
            }
            for machine in self.pair.iter().chain([&self.hub]) {
                let lists = machine.lists(id).await;
                let [session] = &lists[..] else { return false };
                if session["node_id"] != self.pair[running].id || session["reachable"] != true {
                    return false;
                }
            }
            true
        };
        eventually("one machine that runs it", DEADLINE, settled).await;
        owner.get()
    }

    async fn viewer(&self, id: &str) -> Viewer {
        Viewer::of(self.hub.host.client().await, id).await
    }

    /// Waits until the session may move: what is left of an earlier move is over.
    async fn movable(&self, id: &str, to: usize) {
        let may_move = async || {
            let mut client = self.hub.host.client().await;
            let mut request = self.request(id, to);
            request["dry_run"] = json!(true);
            client.say(request).await;
            loop {
                let heard = client.next().await.expect("the connection stays");
                if heard.as_message("session_moved").is_some() {
                    return true;
                }
                if heard.as_message("error").is_some() {
                    return false;
                }
            }
        };
        eventually("a session that may move", DEADLINE, may_move).await;
    }

    fn request(&self, id: &str, to: usize) -> Value {
        json!({"type": "move_session", "session_id": id, "node_id": self.pair[to].id})
    }
}

#[tokio::test]
async fn move_session_takes_an_agent_and_its_conversation_along_and_it_outlives_restarts() {
    let mut moving = Moving::new().await;
    let id = moving.agent().await;
    let mut viewer = moving.viewer(&id).await;
    assert_eq!(viewer.turn("say the first").await.text, "the first");
    let mut client = moving.hub.host.client().await;
    let request = json!({"type": "move_session", "session_id": id, "node_id": "two"});
    let moved = client.ask(request, "session_moved").await;
    assert_eq!(moved["node_id"], moving.pair[1].id.as_str(), "{moved}");
    assert_eq!(moved["working_dir"], moving.pair[1].host.dir(), "{moved}");
    assert_eq!(moving.settled(&id).await, 1);
    // The same client goes on with the same session.
    assert_eq!(viewer.turn("recall").await.text, "say the first");
    assert_eq!(viewer.follow.snapshots(), 1, "no output was missed");
    for machine in &mut moving.pair {
        machine.host.daemon.kill_and_restart().await;
    }
    moving.linked().await;
    assert_eq!(moving.settled(&id).await, 1);
    let mut viewer = moving.viewer(&id).await;
    assert!(viewer.follow.text().contains("the first"), "its history came along");
    assert_eq!(viewer.turn("recall").await.text, "say the first | recall");
}

/// When a machine is killed.
#[derive(Debug, Clone, Copy)]
enum When {
    /// At once after the request.
    Asked,
    /// When the hub shows the session as the other machine's.
    Left,
    /// When the client has its answer.
    Answered,
}

#[tokio::test]
async fn a_machine_that_is_killed_during_a_move_leaves_one_owner_and_loses_no_turn() {
    let mut moving = Moving::new().await;
    let id = moving.agent().await;
    let mut prompts = Vec::new();
    for when in [When::Asked, When::Left, When::Answered] {
        for kills_former in [true, false] {
            let prompt = format!("say {when:?} {kills_former}");
            let mut viewer = moving.viewer(&id).await;
            let said = viewer.turn(&prompt).await;
            assert_eq!(said.outcome, "completed", "{said:?}");
            drop(viewer);
            prompts.push(prompt);
            let from = moving.settled(&id).await;
            let to = 1 - from;
            moving.movable(&id, to).await;
            let mut client = moving.hub.host.client().await;
            client.say(moving.request(&id, to)).await;
            let other = moving.pair[to].id.clone();
            match when {
                When::Asked => {}
                When::Left => {
                    let has_left = |changed: &Value| changed["session"]["node_id"] == *other;
                    client.hear_where("session_status_changed", has_left).await;
                }
                When::Answered => drop(client.hear("session_moved").await),
            }
            let killed = if kills_former { from } else { to };
            moving.pair[killed].host.daemon.kill_and_restart().await;
            moving.linked().await;
            let owner = moving.settled(&id).await;
            if matches!(when, When::Left | When::Answered) {
                assert_eq!(owner, to, "{when:?}: it had left");
            }
        }
    }
    let mut viewer = moving.viewer(&id).await;
    assert_eq!(viewer.turn("recall").await.text, prompts.join(" | "));
}

#[tokio::test]
async fn a_session_whose_new_owner_lost_what_it_had_got_is_its_former_owners_again() {
    let mut moving = Moving::new().await;
    let id = moving.agent().await;
    let mut viewer = moving.viewer(&id).await;
    assert_eq!(viewer.turn("say the first").await.text, "the first");
    // A file where the history belongs: nothing can be put in its place.
    let data = moving.pair[1].host.daemon.data_dir().join("workspace/history");
    std::fs::create_dir_all(&data).expect("it can be made");
    std::fs::write(data.join(&id), "in the way").expect("it can be written");
    let mut client = moving.hub.host.client().await;
    client.say(moving.request(&id, 1)).await;
    let other = moving.pair[1].id.clone();
    let has_left = |changed: &Value| changed["session"]["node_id"] == *other;
    client.hear_where("session_status_changed", has_left).await;
    moving.pair[1].host.daemon.kill9().await;
    let staged = moving.pair[1].host.daemon.data_dir().join("workspace/moves");
    assert_eq!(staged.read_dir().expect("it is there").count(), 1);
    std::fs::remove_dir_all(&staged).expect("it can be lost");
    moving.pair[1].host.daemon.start_again().await;
    moving.linked().await;
    let error = client.hear("error").await;
    let words = error["message"].as_str().expect("words");
    assert!(words.contains("the session is here again"), "{words}");
    assert_eq!(moving.settled(&id).await, 0);
    let mut viewer = moving.viewer(&id).await;
    assert_eq!(viewer.turn("recall").await.text, "say the first");
    // The next move succeeds.
    std::fs::remove_file(data.join(&id)).expect("it can be removed");
    moving.movable(&id, 1).await;
    let moved = client.ask(moving.request(&id, 1), "session_moved").await;
    assert_eq!(moved["node_id"], other.as_str(), "{moved}");
    assert_eq!(moving.settled(&id).await, 1);
}
