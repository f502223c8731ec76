//! Teams whose workers run on other members, while members are killed.

use serde_json::{Value, json};
use testkit::{DEADLINE, eventually, workspace::WorkspaceClient};

use super::{
    cluster_kit::{linked, member, peer_address},
    kit::{Viewer, WorkspaceHost, id_of},
    talk::Agents,
};

/// Three members with fake agents. The team is kept on `owner`, its worker runs on `far`, and clients
/// come to `door`, which the others dial: both are found again after a restart.
struct Trio {
    door: WorkspaceHost,
    owner: Agents,
    far: Agents,
    team: String,
    leader: String,
}

impl Trio {
    async fn new() -> Self {
        let door = WorkspaceHost::of(member("door", "secret")).await;
        let peer = peer_address(&door).await;
        let owner = Agents::of(member("owner", "secret").set("--peer", &peer), "").await;
        let far = Agents::of(member("far", "secret").set("--peer", &peer), "").await;
        for host in [&door, &owner.place, &far.place] {
            linked(host, 2).await;
        }
        let create = json!({"type": "create_team", "name": "crew", "provider": "claude",
            "working_dir": owner.place.dir()});
        let made = owner.place.client().await.ask(create, "team_created").await;
        let (team, leader) = (id_of(&made["team"]), id_of(&made["leader_session"]));
        let trio = Self { door, owner, far, team, leader };
        for host in [&trio.door, &trio.far.place] {
            eventually("the team", DEADLINE, async || trio.knows_team(host).await).await;
        }
        trio
    }

    async fn knows_team(&self, host: &WorkspaceHost) -> bool {
        let list = host.client().await.ask(json!({"type": "list_teams"}), "team_list").await;
        list["teams"].as_array().expect("a list").iter().any(|team| team["id"] == self.team)
    }

    fn about(&self, kind: &str, rest: Value) -> Value {
        let mut message = json!({"type": kind, "team_id": self.team});
        let Value::Object(rest) = rest else { panic!("fields") };
        message.as_object_mut().expect("an object").extend(rest);
        message
    }

    /// A worker on `far` with this work, given through the door.
    async fn assign(&self, prompt: &str) -> String {
        let work = json!({"prompt": prompt, "node_id": "far", "working_dir": self.far.place.dir()});
        let mut client = self.door.client().await;
        let assigned = client.ask(self.about("assign", work), "worker_assigned").await;
        assigned["worker_session_id"].as_str().expect("an id").to_owned()
    }

    async fn send(&self, client: &mut WorkspaceClient, worker: &str, payload: &str) {
        let relay = json!({"from_session_id": self.leader, "to_session_id": worker,
            "payload": payload});
        client.ask(self.about("relay_team_message", relay), "team_message_sent").await;
    }

    /// The result of a worker's work, waited for through this member.
    async fn result(&self, host: &WorkspaceHost, worker: &str) -> Value {
        let wait = json!({"for_session_ids": [worker], "timeout_ms": 30_000});
        let mut client = host.client().await;
        let waited = client.ask(self.about("team_wait", wait), "team_wait_result").await;
        assert_eq!(waited["timed_out"], false, "{waited}");
        waited["results"][0].clone()
    }

    async fn runs(&self, worker: &str) {
        self.far.place.is(worker, "running").await;
    }

    /// Waits until the worker's first words are written, and until its machine has stored what it
    /// knows of the turn. Its status is shown a moment earlier.
    async fn has_begun(&self, worker: &str, words: &str) {
        let wrote = async || {
            let past = json!({"type": "get_history", "session_id": worker});
            let past = self.far.place.client().await.ask(past, "history").await;
            past["data"].as_str().is_some_and(|data| data.contains(words))
        };
        eventually("the worker's first words", DEADLINE, wrote).await;
        self.far_has_stored().await;
    }

    /// Waits until `far` has stored what it knows of its workers: it answers about teams in order.
    async fn far_has_stored(&self) {
        self.far.place.client().await.ask(json!({"type": "list_teams"}), "team_list").await;
    }

    /// How many turns the worker has begun, as its own machine counts.
    async fn turns(&self, worker: &str) -> usize {
        let mut viewer = Viewer::of(self.far.place.client().await, worker).await;
        viewer.turn("recall").await.text.split(" | ").count()
    }
}

#[tokio::test]
async fn a_leader_hands_work_to_a_worker_on_another_machine_and_that_one_writes_back() {
    let trio = Trio::new().await;
    let mut leader = Viewer::of(trio.door.client().await, &trio.leader).await;
    let work = json!({"prompt": "mcp send {\"message\": \"say I am far\"}", "node": "far",
        "working_dir": trio.far.place.dir(), "timeout_seconds": 30});
    let said = leader.turn(&format!("mcp handoff {work}")).await;
    assert_eq!(said.outcome, "completed", "{said:?}");
    assert_eq!(
        leader.turn_ends().await.text,
        "I am far",
        "the worker's message is its next prompt"
    );
    let shown = trio.door.cli(&["team", "show"], &["crew"]).await;
    assert!(shown.out.contains("far") && shown.out.contains("owner"), "{shown:?}");
}

#[tokio::test]
async fn work_that_ends_with_its_machine_has_failed_and_messages_wait_for_that_machine() {
    let mut trio = Trio::new().await;
    let worker = trio.assign("say begun; wait").await;
    trio.has_begun(&worker, "begun").await;
    trio.far.place.daemon.kill9().await;
    let unreachable = async || {
        let session = trio.door.listed(&worker).await;
        session.is_some_and(|session| session["reachable"] == false)
    };
    eventually("a worker that is out of reach", DEADLINE, unreachable).await;
    let shown = trio.door.cli(&["team", "show"], &["crew"]).await;
    assert!(shown.out.contains("not reachable"), "{shown:?}");
    let mut client = trio.door.client().await;
    let work = trio.about("assign", json!({"prompt": "x", "node_id": "far"}));
    let words = client.refused(work).await;
    assert!(words.contains("far cannot be reached"), "{words}");
    trio.send(&mut client, &worker, "say second").await;
    trio.far.place.daemon.start_again().await;
    assert_eq!(trio.result(&trio.door, &worker).await["result"], "second");
    // What began before the death failed, and did not begin again.
    let inbox = trio.about("get_team_inbox", json!({"session_id": worker}));
    let inbox = client.ask(inbox, "team_inbox").await;
    assert_eq!(inbox["messages"].as_array().expect("a list").len(), 2, "{inbox}");
}

#[tokio::test]
async fn the_owner_is_killed_while_a_worker_elsewhere_works_and_has_the_result_once() {
    let mut trio = Trio::new().await;
    let worker = trio.assign("slow 1500; say survived").await;
    trio.runs(&worker).await;
    trio.owner.place.daemon.kill9().await;
    trio.far.place.is(&worker, "idle").await;
    // Nobody keeps the team meanwhile, and a request about it says so.
    let mut client = trio.door.client().await;
    let words = client.refused(trio.about("get_team", json!({}))).await;
    assert!(words.contains("owner, which runs it, cannot be reached"), "{words}");
    trio.owner.place.daemon.start_again().await;
    linked(&trio.owner.place, 2).await;
    let result = trio.result(&trio.owner.place, &worker).await;
    assert_eq!((&result["success"], &result["result"]), (&json!(true), &json!("survived")));
    // Once: a later message has a result of its own, and the first work did not begin again.
    trio.send(&mut trio.owner.place.client().await, &worker, "say next").await;
    assert_eq!(trio.result(&trio.owner.place, &worker).await["result"], "next");
    assert_eq!(trio.turns(&worker).await, 2);
}

#[tokio::test]
async fn a_result_that_was_never_told_survives_the_death_of_both_machines() {
    let mut trio = Trio::new().await;
    let worker = trio.assign("slow 1000; say kept").await;
    trio.runs(&worker).await;
    trio.owner.place.daemon.kill9().await;
    trio.far.place.is(&worker, "idle").await;
    trio.far_has_stored().await;
    trio.far.place.daemon.kill_and_restart().await;
    trio.owner.place.daemon.start_again().await;
    linked(&trio.owner.place, 2).await;
    let result = trio.result(&trio.owner.place, &worker).await;
    assert_eq!((&result["success"], &result["result"]), (&json!(true), &json!("kept")));
    assert_eq!(trio.turns(&worker).await, 1, "the work did not begin again");
}

#[tokio::test]
async fn a_wait_goes_on_at_another_member_when_the_one_that_it_was_asked_on_is_killed() {
    let mut trio = Trio::new().await;
    let worker = trio.assign("wait").await;
    trio.runs(&worker).await;
    let wait = trio.about("team_wait", json!({"for_session_ids": [worker], "timeout_ms": 100}));
    let waited = trio.door.client().await.ask(wait, "team_wait_result").await;
    assert_eq!(waited["timed_out"], true, "{waited}");
    trio.door.daemon.kill9().await;
    let mut elsewhere = trio.far.place.client().await;
    let on = trio.about("team_wait", json!({"wait_id": waited["wait_id"], "timeout_ms": 30_000}));
    elsewhere.say(on).await;
    let interrupt = json!({"type": "interrupt", "session_id": worker});
    trio.far.place.client().await.say(interrupt).await;
    let waited = elsewhere.hear("team_wait_result").await;
    assert_eq!(waited["timed_out"], false, "{waited}");
    assert_eq!(waited["completed_workers"], json!([worker]), "{waited}");
}

#[tokio::test]
async fn a_team_that_is_deleted_while_a_machine_is_away_ends_its_sessions_there_afterwards() {
    for owner_is_away in [false, true] {
        let mut trio = Trio::new().await;
        let worker = trio.assign("say ready").await;
        trio.result(&trio.door, &worker).await;
        trio.far.place.daemon.kill9().await;
        let delete = trio.about("delete_team", json!({}));
        trio.owner.place.client().await.ask(delete, "team_deleted").await;
        let forgotten = async || !trio.knows_team(&trio.door).await;
        eventually("the door has heard of it", DEADLINE, forgotten).await;
        if owner_is_away {
            trio.owner.place.daemon.kill9().await;
        }
        trio.far.place.daemon.start_again().await;
        let ended = async || trio.far.place.listed(&worker).await.is_none();
        eventually("the worker's session has ended", DEADLINE, ended).await;
    }
}
