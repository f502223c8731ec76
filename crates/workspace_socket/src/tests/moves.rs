//! Agents that move from one member to another.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use base::Secret;
use cluster::{
    Settings,
    testing::{Machine, until},
};
use protocol::workspace::SessionId;
use serde_json::{Value, json};
use store::WorkspaceStore;
use testkit::agents::{FakeAgents, program};

use workspace::moving::{ArrivalRecord, ArrivalState};

use super::kit::{Caller, Kit};

/// A machine whose agents are fakes, with a project `p` and conversations of its own.
struct Member {
    kit: Kit,
    machine: Machine,
}

impl Member {
    async fn new(number: u8, peers: &[std::net::SocketAddr]) -> Self {
        let kit = Kit::with(|settings| {
            let dir = settings.dir.parent().unwrap().join("agents");
            settings.agents.programs = FakeAgents::install(&program(), &dir).all();
        })
        .await;
        let store: Arc<dyn WorkspaceStore> = kit.site.store.clone();
        let settings = Settings {
            token: Some(Secret::from("secret".to_owned())),
            peers: peers.iter().map(ToString::to_string).collect(),
            ..Machine::settings(number)
        };
        let machine = Machine::with_store(number, [number; 32], settings, store).await;
        kit.socket.join(&machine.cluster);
        let member = Self { kit, machine };
        member.project().await;
        member
    }

    async fn project(&self) {
        let dir = PathBuf::from(self.kit.dir());
        std::fs::create_dir_all(dir.join("project")).unwrap();
        let env = BTreeMap::from([("CLAUDE_CONFIG_DIR", dir.join("claude"))]);
        let create = json!({"type": "create_project", "name": "p",
            "working_dir": dir.join("project"), "env": env});
        self.kit.client().await.ask(create, "project_saved").await;
    }

    fn id(&self) -> String {
        self.machine.cluster.node_id().to_owned()
    }

    /// An agent in the project, which said something.
    async fn agent(&self) -> String {
        let mut client = self.kit.client().await;
        let list = client.ask(json!({"type": "list_projects"}), "project_list").await;
        let mut projects = list["projects"].as_array().unwrap().iter();
        let own = projects.find(|project| project["node_id"] == self.id()).unwrap();
        let new = json!({"type": "new_session", "mode": "sdk", "provider": "claude", "name": "a",
            "project_id": own["id"]});
        let made = client.ask(new, "session_created").await;
        made["session"]["id"].as_str().unwrap().to_owned()
    }
}

/// Three members that know each other. Agents begin at the first.
struct Three([Member; 3]);

impl Three {
    async fn new() -> Self {
        let one = Member::new(1, &[]).await;
        let two = Member::new(2, &[one.machine.address]).await;
        let three = Member::new(3, &[one.machine.address]).await;
        let all = [one, two, three];
        let knows = |member: &Member| {
            member.machine.cluster.members().iter().filter(|it| it.reachable).count() == 2
        };
        until("they know each other", || all.iter().all(knows)).await;
        Self(all)
    }

    async fn shut_down(self) {
        for member in &self.0 {
            member.kit.shut_down().await;
        }
    }

    /// The members that run a session.
    fn runners(&self, id: &str) -> Vec<String> {
        let id = id.parse().unwrap();
        let running = self.0.iter().filter(|it| it.kit.workspace.sessions.has(id));
        running.map(Member::id).collect()
    }
}

async fn attached(member: &Member, id: &str) -> Caller {
    let mut client = member.kit.client().await;
    client.say(json!({"type": "attach", "session_id": id}));
    client.hear_of("attached").await;
    client.hear_of("session_history").await;
    client
}

/// Gives the agent a prompt, and waits for the end of the turn; its text.
async fn turn(client: &mut Caller, id: &str, prompt: &str) -> String {
    client.say(json!({"type": "send_input", "session_id": id, "input": prompt}));
    turn_ends(client).await
}

async fn turn_ends(client: &mut Caller) -> String {
    loop {
        let heard = client.hear().await;
        assert!(!heard.is_null() && heard["type"] != "error", "{heard}");
        if heard["event"]["kind"] == "turn_ended" {
            return heard["event"]["text"].as_str().unwrap_or_default().to_owned();
        }
    }
}

fn move_to(id: &str, node: &str) -> Value {
    json!({"type": "move_session", "session_id": id, "node_id": node})
}

#[tokio::test]
async fn an_agent_moves_and_every_client_follows_it() {
    let three = Three::new().await;
    let [one, two, other] = &three.0;
    let id = one.agent().await;
    let mut here = attached(one, &id).await;
    assert_eq!(turn(&mut here, &id, "say the first").await, "the first");
    let known = || two.machine.cluster.session_moves(&id).is_some();
    until("it is known", || known() && other.machine.cluster.session_moves(&id).is_some()).await;
    let (mut there, mut third) = (attached(two, &id).await, attached(other, &id).await);
    // Asked at a third member.
    let mut asking = other.kit.client().await;
    let mut dry = move_to(&id, "machine 2");
    dry["dry_run"] = json!(true);
    let would = asking.ask(dry, "session_moved").await;
    assert_eq!(would["dry_run"], true, "{would}");
    assert_eq!(three.runners(&id), [one.id()]);
    let moved = asking.ask(move_to(&id, "machine 2"), "session_moved").await;
    assert_eq!((&moved["node_id"], &moved["stays"]), (&json!(two.id()), &json!([])), "{moved}");
    assert_eq!(three.runners(&id), [two.id()]);
    for client in [&mut here, &mut there, &mut third] {
        loop {
            let changed = client.hear_of("session_status_changed").await;
            if changed["session"]["node_id"] == two.id() {
                break;
            }
        }
        client.hear_of("session_history").await;
    }
    assert_eq!(turn(&mut here, &id, "recall").await, "say the first");
    for client in [&mut there, &mut third] {
        assert_eq!(turn_ends(client).await, "say the first");
    }
    // And back: what it has done there comes along.
    let back = asking.ask(move_to(&id, "machine 1"), "session_moved").await;
    assert_eq!(back["node_id"], one.id(), "{back}");
    assert_eq!(three.runners(&id), [one.id()]);
    let moves = || one.machine.cluster.session_moves(&id);
    assert_eq!(moves(), Some((2, one.id())));
    for client in [&mut here, &mut there, &mut third] {
        client.hear_of("session_history").await;
    }
    assert_eq!(turn(&mut third, &id, "recall").await, "say the first | recall");
    three.shut_down().await;
}

#[tokio::test]
async fn a_running_turn_ends_before_the_move_and_what_waits_goes_along() {
    let three = Three::new().await;
    let [one, two, _] = &three.0;
    let id = one.agent().await;
    let mut client = attached(one, &id).await;
    for prompt in ["slow 400; say one", "say two"] {
        client.say(json!({"type": "send_input", "session_id": id, "input": prompt}));
    }
    let mut asking = one.kit.client().await;
    asking.say(move_to(&id, "machine 2"));
    assert_eq!(turn_ends(&mut client).await, "one");
    asking.hear_of("session_moved").await;
    assert_eq!(three.runners(&id), [two.id()]);
    let mut there = attached(two, &id).await;
    let recalled = turn(&mut there, &id, "recall").await;
    // It may have begun before this client was attached.
    let recalled = if recalled == "two" { turn_ends(&mut there).await } else { recalled };
    assert_eq!(recalled, "slow 400; say one | say two");
    three.shut_down().await;
}

#[tokio::test]
async fn what_speaks_against_a_move_is_said_and_nothing_happens() {
    let three = Three::new().await;
    let [one, two, _] = &three.0;
    let id = one.agent().await;
    let mut client = one.kit.client().await;
    let refused = async |client: &mut Caller, request: Value| {
        let error = client.ask(request, "error").await;
        error["message"].as_str().unwrap().to_owned()
    };
    let words = refused(&mut client, move_to(&id, "machine 1")).await;
    assert!(words.contains("already"), "{words}");
    let words = refused(&mut client, move_to(&id, "nowhere")).await;
    assert!(words.contains("no node"), "{words}");
    std::fs::remove_dir_all(PathBuf::from(two.kit.dir()).join("project")).unwrap();
    let words = refused(&mut client, move_to(&id, "machine 2")).await;
    assert!(words.contains("cannot be used"), "{words}");
    let open = json!({"type": "open_terminal", "working_dir": one.kit.dir(), "command": "cat"});
    let terminal = client.ask(open, "terminal_opened").await["session"]["id"].clone();
    let words = refused(&mut client, move_to(terminal.as_str().unwrap(), "machine 2")).await;
    assert!(words.contains("a program in a terminal cannot"), "{words}");
    assert_eq!(three.runners(&id), [one.id()]);
    let mut client = attached(one, &id).await;
    assert_eq!(turn(&mut client, &id, "say still here").await, "still here");
    three.shut_down().await;
}

#[test]
fn both_crates_mean_the_same_facts() {
    assert_eq!(cluster::ARRIVAL, workspace::moving::ARRIVAL);
}

/// The conversations that a machine's agents keep.
fn conversations(member: &Member) -> Vec<PathBuf> {
    let projects = PathBuf::from(member.kit.dir()).join("claude/projects");
    let folders = projects.read_dir().into_iter().flatten().flatten();
    folders
        .flat_map(|folder| folder.path().read_dir().unwrap())
        .map(|it| it.unwrap().path())
        .collect()
}

#[tokio::test]
async fn a_conversation_of_many_pieces_arrives_whole() {
    use std::io::Write as _;
    let three = Three::new().await;
    let [one, two, _] = &three.0;
    let id = one.agent().await;
    let mut client = attached(one, &id).await;
    turn(&mut client, &id, "say the first").await;
    let [path] = &conversations(one)[..] else { panic!("one conversation") };
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    // The agent skips it: it is no JSON.
    let line: Vec<u8> = (0..10_000_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    file.write_all(&line).unwrap();
    file.write_all(b"\n").unwrap();
    let mut asking = one.kit.client().await;
    asking.ask(move_to(&id, "machine 2"), "session_moved").await;
    let [there] = &conversations(two)[..] else { panic!("one conversation") };
    assert_eq!(std::fs::read(there).unwrap(), std::fs::read(path).unwrap());
    let mut there = attached(two, &id).await;
    assert_eq!(turn(&mut there, &id, "recall").await, "say the first");
    three.shut_down().await;
}

#[tokio::test]
async fn no_more_sessions_come_at_a_time_than_the_bound_and_one_above_stays() {
    let three = Three::new().await;
    let [one, two, _] = &three.0;
    let services = &two.kit.socket.0.services;
    for number in 1..=32 {
        let record = ArrivalRecord {
            session_id: SessionId::from_random(number),
            move_id: 7,
            moves: 1,
            from: "nobody".to_owned(),
            state: ArrivalState::Staged,
        };
        services.sessions.keep_arrival(&record).await.unwrap();
    }
    crate::moving::restore(services, &two.machine.cluster).await;
    let id = one.agent().await;
    let mut client = attached(one, &id).await;
    let error = client.ask(move_to(&id, "machine 2"), "error").await;
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("32 sessions on their way"), "{words}");
    assert_eq!(three.runners(&id), [one.id()]);
    assert_eq!(turn(&mut client, &id, "say still here").await, "still here");
    three.shut_down().await;
}
