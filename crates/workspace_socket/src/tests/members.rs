//! Clients of one member, served by another.

use std::{fs, time::Duration};

use base::KeyScope;
use cluster::{
    Settings,
    testing::{Machine, until},
};
use serde_json::{Value, json};

use super::kit::{Caller, Kit};

/// Two machines in one cluster. The objects are on `owner`, the clients come to `entry`.
pub(super) struct Pair {
    pub(super) owner: Kit,
    pub(super) entry: Kit,
    pub(super) machines: (Machine, Machine),
}

impl Pair {
    async fn new() -> Self {
        Self::of(Kit::new().await, Kit::new().await).await
    }

    pub(super) async fn of(owner: Kit, entry: Kit) -> Self {
        let one = Machine::new(1, "secret", &[]).await;
        let two = Machine::new(2, "secret", &[one.address]).await;
        owner.socket.join(&one.cluster);
        entry.socket.join(&two.cluster);
        let knows = |machine: &Machine| machine.cluster.members().iter().any(|it| it.reachable);
        until("they know each other", || knows(&one) && knows(&two)).await;
        Self { owner, entry, machines: (one, two) }
    }

    /// A terminal on the owner, opened there, with a client of the other machine attached to it.
    async fn cat(&self) -> (Caller, Value) {
        self.attached("cat", &[]).await
    }

    /// A terminal of the owner that runs this command, with a client of the entry member attached to it.
    async fn attached(&self, command: &str, args: &[&str]) -> (Caller, Value) {
        let mut there = self.owner.client().await;
        let open = json!({"type": "open_terminal", "working_dir": self.owner.dir(),
            "command": command, "args": args});
        let id = there.ask(open, "terminal_opened").await["session"]["id"].clone();
        let mut client = self.entry.client().await;
        client.say(json!({"type": "attach", "session_id": id}));
        assert_eq!(client.hear_of("attached").await["session_id"], id);
        (client, id)
    }

    pub(super) async fn shut_down(self) {
        self.entry.shut_down().await;
        self.owner.shut_down().await;
        drop(self.machines);
    }
}

/// Reads output until it contains these words this often.
async fn hear_words(client: &mut Caller, words: &str, times: usize) {
    let mut output = String::new();
    while output.matches(words).count() < times {
        output += client.hear_of("output").await["data"].as_str().unwrap();
    }
}

/// A session's history, once it has these words.
async fn history_with(client: &mut Caller, id: &Value, words: &str) -> String {
    loop {
        let request = json!({"type": "get_history", "session_id": id});
        let past = client.ask(request, "history").await;
        let data = past["data"].as_str().unwrap();
        if data.contains(words) {
            break data.to_owned();
        }
    }
}

#[tokio::test]
async fn a_terminal_of_another_member_is_used_like_an_own_one() {
    let pair = Pair::new().await;
    let (mut client, id) = pair.cat().await;
    let keys = json!({"type": "terminal_input", "session_id": id, "data": "hello\r",
        "input_id": "i1"});
    for _ in 0..2 {
        assert_eq!(client.ask(keys.clone(), "input_ack").await["input_id"], "i1");
    }
    client.say(json!({"type": "terminal_input", "session_id": id, "data": "again\r"}));
    hear_words(&mut client, "again", 2).await;
    let listed = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["node_id"], "node-1", "{listed}");
    assert_eq!(listed["sessions"][0]["reachable"], true);
    client.say(json!({"type": "rename_session", "session_id": id, "name": "other"}));
    loop {
        let changed = client.hear_of("session_status_changed").await;
        if changed["session"]["name"] == "other" {
            break;
        }
    }
    let past = client.ask(json!({"type": "get_history", "session_id": id}), "history").await;
    assert_eq!(past["data"].as_str().unwrap().matches("hello").count(), 2);
    client.say(json!({"type": "detach"}));
    assert_eq!(client.hear_of("detached").await["session_id"], id);
    client.say(json!({"type": "kill_session", "session_id": id}));
    client.hear_of("session_killed").await;
    // Nothing is left to detach from.
    let open = json!({"type": "open_terminal", "working_dir": pair.owner.dir(),
        "command": "cat", "node_id": "node-1"});
    let next = client.ask(open, "terminal_opened").await["session"]["id"].clone();
    client.ask(json!({"type": "attach", "session_id": next}), "attached").await;
    let messages = client.all_until_now().await;
    assert!(!messages.iter().any(|it| it["type"] == "error"), "{messages:?}");
    client.ask(json!({"type": "kill_session", "session_id": next}), "session_killed").await;
    until("both have forgotten it", || {
        let gone =
            |machine: &Machine| machine.cluster.directory().list(replica::Kind::SESSION).is_empty();
        gone(&pair.machines.0) && gone(&pair.machines.1)
    })
    .await;
    let messages = client.all_until_now().await;
    assert!(!messages.iter().any(|it| it["type"] == "session_killed"), "told once: {messages:?}");
    let request = json!({"type": "interrupt", "session_id": id});
    assert_eq!(client.ask(request, "session_unknown").await["session_id"], id);
    pair.shut_down().await;
}

#[tokio::test]
async fn a_terminal_is_opened_on_the_member_that_its_maker_names() {
    let pair = Pair::new().await;
    let mut client = pair.entry.client().await;
    for node in ["machine 1", "node-1"] {
        let open = json!({"type": "open_terminal", "working_dir": pair.owner.dir(),
            "command": "cat", "node_id": node});
        let id = client.ask(open, "terminal_opened").await["session"]["id"].clone();
        // At once, before its owner may have announced it.
        let keys = json!({"type": "terminal_input", "session_id": id, "data": "x",
            "input_id": "i"});
        client.ask(keys, "input_ack").await;
        let mut there = pair.owner.client().await;
        let listed = there.ask(json!({"type": "list_sessions"}), "session_list").await;
        let own = listed["sessions"].as_array().unwrap().iter().any(|it| it["id"] == id);
        assert!(own, "{listed}");
    }
    let open = json!({"type": "open_terminal", "working_dir": "/", "command": "cat",
        "node_id": "nowhere"});
    let refused = client.ask(open, "error").await;
    assert!(refused["message"].as_str().unwrap().contains("nowhere"), "{refused}");
    pair.shut_down().await;
}

#[tokio::test]
async fn files_of_a_project_are_reached_from_another_member() {
    let pair = Pair::new().await;
    let mut there = pair.owner.client().await;
    let id = pair.owner.project(&mut there).await;
    let mut client = pair.entry.client().await;
    let project = loop {
        let listed = client.ask(json!({"type": "list_projects"}), "project_list").await;
        if let Some(project) = listed["projects"].get(0) {
            break project.clone();
        }
    };
    assert_eq!((&project["id"], &project["node_id"]), (&json!(id), &json!("node-1")));
    client.say(json!({"type": "watch_project_files", "project_id": id}));
    let write = json!({"type": "write_project_file", "project_id": id, "path": "a.txt",
        "content": "from afar"});
    client.ask(write, "project_file_saved").await;
    assert_eq!(fs::read_to_string(pair.owner.site.dir.path().join("a.txt")).unwrap(), "from afar");
    assert_eq!(client.hear_of("project_files_changed").await["project_id"], json!(id));
    let read = json!({"type": "read_project_file", "project_id": id, "path": "missing"});
    client.ask(read, "project_file_error").await;
    let rename = json!({"type": "update_project", "project_id": id, "name": "renamed"});
    assert_eq!(client.ask(rename, "project_saved").await["project"]["name"], "renamed");
    assert_eq!(there.hear_of("project_saved").await["project"]["name"], "renamed");
    client.ask(json!({"type": "delete_project", "project_id": id}), "project_removed").await;
    there.hear_of("project_removed").await;
    pair.shut_down().await;
}

#[tokio::test]
async fn a_project_that_another_member_changes_in_its_absence_is_changed() {
    let pair = Pair::new().await;
    let mut there = pair.owner.client().await;
    let id = pair.owner.project(&mut there).await;
    let directory = pair.machines.1.cluster.directory();
    until("it is known", || directory.get(replica::Kind::PROJECT, &id).is_some()).await;
    let entry = directory.get(replica::Kind::PROJECT, &id).unwrap();
    let mut project: Value = serde_json::from_str(&entry.value).unwrap();
    project["name"] = json!("renamed elsewhere");
    project["updated_at"] = json!("2100-01-01T00:00:00Z");
    let cluster = &pair.machines.1.cluster;
    cluster.write_for("node-1", replica::Kind::PROJECT, &id, project.to_string()).await.unwrap();
    loop {
        let saved = there.hear_of("project_saved").await;
        if saved["project"]["name"] == "renamed elsewhere" {
            break;
        }
    }
    cluster.delete(replica::Kind::PROJECT, &id).await.unwrap();
    there.hear_of("project_removed").await;
    pair.shut_down().await;
}

#[tokio::test]
async fn keys_and_output_arrive_once_however_often_the_link_is_cut() {
    let pair = Pair::new().await;
    // The kernel echoes keys in the middle of what `cat` writes.
    let (mut client, id) = pair.attached("sh", &["-c", "stty -echo; echo ready; exec cat"]).await;
    let mut there = pair.owner.client().await;
    history_with(&mut there, &id, "ready").await;
    for line in 100..160 {
        let data = format!("line {line}\r");
        client.say(json!({"type": "terminal_input", "session_id": id, "data": data}));
        if line % 20 == 5 {
            until("they are linked", || pair.machines.1.cluster.is_reachable("node-1")).await;
            // The client's end writes only while it is read.
            client.ask(json!({"type": "keepalive"}), "keepalive_ack").await;
            pair.machines.0.cut();
        }
    }
    let end = json!({"type": "terminal_input", "session_id": id, "data": "end\r",
        "input_id": "i"});
    client.ask(end, "input_ack").await;
    let written = history_with(&mut there, &id, "end").await;
    let lines: Vec<&str> = written.lines().filter(|it| it.starts_with("line")).collect();
    let typed: Vec<String> = (100..160).map(|line| format!("line {line}")).collect();
    assert_eq!(lines, typed, "{written}");
    pair.shut_down().await;
}

#[tokio::test]
async fn a_key_that_may_only_read_types_nowhere() {
    let pair = Pair::new().await;
    let (_client, id) = pair.cat().await;
    let (_, key) = pair.entry.key(KeyScope::WorkspaceRead);
    let mut reader = pair.entry.client_with(&key).await;
    reader.ask(json!({"type": "attach", "session_id": id}), "attached").await;
    let keys = json!({"type": "terminal_input", "session_id": id, "data": "x"});
    let refused = reader.ask(keys, "error").await;
    assert!(refused["message"].as_str().unwrap().contains("workspace:write"), "{refused}");
    pair.shut_down().await;
}

#[tokio::test]
async fn a_member_that_is_lost_ends_what_waits_for_it_and_is_shown_so() {
    let pair = Pair::new().await;
    let (mut client, id) = pair.cat().await;
    pair.machines.0.cluster.shut_down();
    client.say(json!({"type": "get_history", "session_id": id}));
    let refused = client.hear_of("error").await;
    let words = refused["message"].as_str().unwrap();
    assert!(words.contains("machine 1, which runs it, cannot be reached"), "{words}");
    let notice = client.hear_of("client_notice").await;
    assert_eq!(notice["notice"]["code"], "owner_unreachable", "{notice}");
    let listed = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["reachable"], false, "{listed}");
    pair.shut_down().await;
}

/// A machine that dials only these others.
async fn only_linked_to(number: u8, peers: &[&Machine]) -> Machine {
    let settings = Settings {
        token: Some("secret".to_owned().into()),
        peers: peers.iter().map(|peer| peer.address.to_string()).collect(),
        discovery: false,
        heartbeat: Duration::from_millis(100),
        ..Settings::default()
    };
    Machine::start(number, [number; 32], settings).await
}

#[tokio::test]
async fn a_session_whose_member_has_no_link_here_is_shown_as_out_of_reach_when_it_comes_and_changes()
 {
    let far = only_linked_to(1, &[]).await;
    let middle = only_linked_to(2, &[&far]).await;
    let machine = only_linked_to(3, &[&middle]).await;
    let entry = Kit::new().await;
    entry.socket.join(&machine.cluster);
    let mut client = entry.client().await;
    let open = json!({"type": "open_terminal", "working_dir": entry.dir(), "command": "cat"});
    let mut info = client.ask(open, "terminal_opened").await["session"].clone();
    let id = "00000000-0000-4000-8000-000000000009";
    info["id"] = json!(id);
    for name in ["one", "other"] {
        info["name"] = json!(name);
        far.cluster.write(replica::Kind::SESSION, id, info.to_string()).await.unwrap();
        loop {
            let changed = client.hear_of("session_status_changed").await;
            let session = &changed["session"];
            if session["id"] == id && session["name"] == name {
                assert_eq!(session["reachable"], false, "{changed}");
                break;
            }
        }
    }
    entry.shut_down().await;
    drop(middle);
}

/// A session that cannot be made on another machine is refused with its name, and on the own one without.
#[tokio::test]
async fn what_fails_on_another_member_names_it() {
    let pair = Pair::new().await;
    let mut client = pair.entry.client().await;
    let open = |node: Option<&str>| json!({"type": "open_terminal", "working_dir": "/nope", "command": "cat", "node_id": node});
    let there = client.ask(open(Some("node-1")), "error").await;
    let words = there["message"].as_str().unwrap();
    let name = pair.machines.0.cluster.name_of("node-1");
    assert!(words.starts_with(&format!("on {name}: the working directory /nope")), "{words}");
    let here = client.ask(open(None), "error").await;
    let words = here["message"].as_str().unwrap();
    assert!(words.starts_with("the working directory /nope"), "{words}");
    pair.shut_down().await;
}

#[tokio::test]
async fn the_end_of_a_hidden_session_is_told_to_its_viewer_at_another_member() {
    let pair = Pair::new().await;
    let mut there = pair.owner.client().await;
    let open = json!({"type": "open_terminal", "working_dir": pair.owner.dir(), "command": "cat",
        "hidden": true});
    let id = there.ask(open, "terminal_opened").await["session"]["id"].clone();
    let mut client = pair.entry.client().await;
    client.ask(json!({"type": "attach", "session_id": id}), "attached").await;
    there.ask(json!({"type": "kill_session", "session_id": id}), "session_killed").await;
    assert_eq!(client.hear_of("session_killed").await["session_id"], id);
    pair.shut_down().await;
}

#[tokio::test]
async fn a_client_whose_attach_is_refused_stays_attached_at_the_other_member() {
    let pair = Pair::new().await;
    let (mut client, id) = pair.cat().await;
    let unknown = "00000000-0000-4000-8000-000000000009";
    client.ask(json!({"type": "attach", "session_id": unknown}), "session_unknown").await;
    client.say(json!({"type": "terminal_input", "session_id": id, "data": "hello\r"}));
    hear_words(&mut client, "hello", 2).await;
    pair.shut_down().await;
}

#[tokio::test]
async fn what_a_machine_runs_has_no_node_id_once_it_has_left() {
    let pair = Pair::new().await;
    let mut client = pair.entry.client().await;
    let open = json!({"type": "open_terminal", "working_dir": pair.entry.dir(), "command": "cat"});
    let opened = client.ask(open, "terminal_opened").await;
    assert_eq!(opened["session"]["node_id"], "node-2", "{opened}");
    pair.entry.socket.leave();
    let listed = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["node_id"], Value::Null, "{listed}");
    pair.shut_down().await;
}
