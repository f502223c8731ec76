//! Sessions, projects, files, git, the cluster.

use std::fs;

use protocol::workspace::base64;
use serde_json::{Value, json};

use super::kit::{Caller, Kit};

const NOBODY: &str = "00000000-0000-4000-8000-000000000001";

async fn cat(kit: &Kit, client: &mut Caller, hidden: bool) -> Value {
    let open = json!({"type": "open_terminal", "working_dir": kit.dir(), "command": "cat",
        "hidden": hidden});
    client.ask(open, "terminal_opened").await["session"]["id"].clone()
}

/// Reads output until it contains these words twice: echoed as input, and written by `cat`.
async fn hear_cat(client: &mut Caller, words: &str) {
    let mut output = String::new();
    while output.matches(words).count() < 2 {
        output += client.hear_of("output").await["data"].as_str().unwrap();
    }
}

#[tokio::test]
async fn a_terminal_is_opened_typed_into_watched_and_killed() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = cat(&kit, &mut client, false).await;
    client.say(json!({"type": "attach", "session_id": id}));
    assert_eq!(client.hear_of("attached").await["session_id"], id);
    let history = client.hear_of("session_history").await;
    assert_eq!(history["session_id"], id);
    for _ in 0..2 {
        // Sent twice, but typed once.
        let keys = json!({"type": "terminal_input", "session_id": id, "data": "hello\r",
            "input_id": "i1"});
        assert_eq!(client.ask(keys, "input_ack").await["input_id"], "i1");
    }
    let last = base64::encode("w\u{f6}rld\r".as_bytes());
    client.say(json!({"type": "terminal_input", "session_id": id, "data": last,
        "encoding": "base64"}));
    hear_cat(&mut client, "w\u{f6}rld\r\n").await;
    let past = client.ask(json!({"type": "get_history", "session_id": id}), "history").await;
    let typed = past["data"].as_str().unwrap();
    assert_eq!(typed.matches("hello").count(), 2, "its echo, and what cat says: {typed:?}");
    client.say(json!({"type": "detach"}));
    assert_eq!(client.hear_of("detached").await["session_id"], id);
    client.say(json!({"type": "kill_session", "session_id": id}));
    client.hear_of("session_killed").await;
    let messages = client.all_until_now().await;
    assert!(!messages.iter().any(|it| it["type"] == "session_killed"), "told once: {messages:?}");
    for message in ["attach", "kill_session", "interrupt", "take_control"] {
        let request = json!({"type": message, "session_id": id});
        assert_eq!(client.ask(request, "session_unknown").await["session_id"], id);
    }
    kit.workspace.audit.flush();
    let noted = store::AuditStore::actions(&*kit.site.store, 100).unwrap();
    let mut noted: Vec<_> = noted.into_iter().map(|it| it.what).collect();
    noted.reverse();
    assert_eq!(noted, ["session.open", "session.attach", "session.type", "session.kill"]);
}

#[tokio::test]
async fn a_connection_follows_one_session_at_a_time() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let (one, other) = (cat(&kit, &mut client, false).await, cat(&kit, &mut client, false).await);
    for id in [&one, &other] {
        client.say(json!({"type": "attach", "session_id": id}));
        let history = client.hear_of("session_history").await;
        assert_eq!(history["session_id"], *id);
    }
    client.say(json!({"type": "terminal_input", "session_id": one, "data": "one\r"}));
    client.say(json!({"type": "terminal_input", "session_id": other, "data": "other\r"}));
    let mut output = String::new();
    while !output.contains("other\r\nother") {
        let heard = client.hear_of("output").await;
        assert_eq!(heard["session_id"], other);
        output += heard["data"].as_str().unwrap();
    }
    client.ask(json!({"type": "attach", "session_id": NOBODY}), "session_unknown").await;
    client.say(json!({"type": "terminal_input", "session_id": other, "data": "still\r"}));
    hear_cat(&mut client, "still").await;
    kit.shut_down().await;
}

#[tokio::test]
async fn of_a_hidden_session_only_its_viewers_and_who_killed_it_hear() {
    let kit = Kit::new().await;
    let (mut owner, mut other) = (kit.client().await, kit.client().await);
    let id = cat(&kit, &mut owner, true).await;
    let listed = other.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"], json!([]));
    let request = json!({"type": "list_sessions", "include_hidden": true});
    let listed = other.ask(request, "session_list").await;
    assert_eq!(listed["sessions"][0]["id"], id);
    owner.say(json!({"type": "kill_session", "session_id": id}));
    assert_eq!(owner.hear_of("session_killed").await["session_id"], id);
    assert_eq!(other.all_until_now().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_change_is_announced_once_to_every_client() {
    let kit = Kit::new().await;
    let (mut client, mut other) = (kit.client().await, kit.client().await);
    let id = kit.project(&mut client).await;
    let renamed = json!({"type": "update_project", "project_id": id, "name": "q"});
    let saved = client.ask(renamed, "project_saved").await;
    assert_eq!(saved["project"]["name"], "q");
    let deleted = json!({"type": "delete_project", "project_id": id});
    client.ask(deleted.clone(), "project_removed").await;
    assert_eq!(client.all_until_now().await, Vec::<Value>::new());
    let messages = other.all_until_now().await;
    let kinds: Vec<_> = messages.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["project_saved", "project_saved", "project_removed"]);
    let refused = client.ask(deleted, "error").await;
    assert!(refused["message"].as_str().unwrap().contains(&id), "{refused}");
}

#[tokio::test]
async fn files_are_listed_written_read_and_changed_in_order() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = kit.project(&mut client).await;
    let of = |kind: &str, mut rest: Value| {
        rest["type"] = json!(kind);
        rest["project_id"] = json!(id);
        rest
    };
    let path = "src/a.txt";
    // None of these requests waits for the answer to the one before.
    client.say(of("create_project_directory", json!({"path": "src", "request_id": "r1"})));
    client.say(of("write_project_file", json!({"path": path, "content": "one"})));
    client.say(of("read_project_file", json!({"path": path})));
    client.say(of("list_project_files", json!({"path": "src"})));
    let made = client.hear_of("project_fs_action_result").await;
    assert_eq!((&made["request_id"], &made["path"]), (&json!("r1"), &json!("src")));
    let saved = client.hear_of("project_file_saved").await;
    let read = client.hear_of("project_file_content").await;
    assert_eq!((&read["content"], &read["sha256"]), (&json!("one"), &saved["sha256"]));
    let listed = client.hear_of("project_file_list").await;
    assert_eq!(listed["entries"][0]["path"], path);
    let stale = json!({"path": path, "content": "two", "base_sha256": "00"});
    let conflict = client.ask(of("write_project_file", stale), "project_file_write_conflict").await;
    assert_eq!(conflict["current_sha256"], saved["sha256"]);
    let window = json!({"path": path, "request_id": "d1", "offset": 1, "len": 100});
    let chunk = client.ask(of("read_project_file_chunk", window), "project_file_chunk").await;
    assert_eq!((&chunk["data"], &chunk["eof"]), (&json!(base64::encode(b"ne")), &json!(true)));
    let upload = json!({"path": "b.bin", "data": base64::encode(&[0, 255]), "request_id": "r2"});
    client.ask(of("upload_project_file", upload), "project_fs_action_result").await;
    assert_eq!(fs::read(kit.site.dir.path().join("b.bin")).unwrap(), [0, 255]);
    for (kind, from, to) in
        [("move_project_entry", path, "src/b.txt"), ("copy_project_entry", "src", "copy")]
    {
        let moved = json!({"from": from, "to": to, "request_id": "r3"});
        let moved = client.ask(of(kind, moved), "project_fs_action_result").await;
        assert_eq!(moved["path"], to);
    }
    let gone = json!({"path": "src", "request_id": "r4"});
    client.ask(of("delete_project_entry", gone), "project_fs_action_result").await;
    assert_eq!(fs::read_to_string(kit.site.dir.path().join("copy/b.txt")).unwrap(), "one");
    assert!(!kit.site.dir.path().join("src").exists());
}

#[tokio::test]
async fn errors_of_files_use_their_familys_message() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = kit.project(&mut client).await;
    for (message, kind) in [
        (json!({"type": "read_project_file", "path": "../etc/passwd"}), "project_file_error"),
        (json!({"type": "list_project_files", "path": "/etc"}), "project_file_error"),
        (
            json!({"type": "write_project_file", "path": "a/../..", "content": ""}),
            "project_file_error",
        ),
        (
            json!({"type": "read_project_file_chunk", "path": "gone", "request_id": "r", "offset": 0,
                "len": 1}),
            "project_file_chunk_error",
        ),
        (
            json!({"type": "delete_project_entry", "path": "gone", "request_id": "r"}),
            "project_fs_action_error",
        ),
        (
            json!({"type": "upload_project_file", "path": "a", "data": "!", "request_id": "r"}),
            "project_fs_action_error",
        ),
        (json!({"type": "git_diff", "path": "a"}), "git_error"),
    ] {
        for project in [id.as_str(), NOBODY] {
            let mut message = message.clone();
            message["project_id"] = json!(project);
            let answer = client.ask(message.clone(), kind).await;
            let same = ["project_id", "request_id", "path"];
            for field in same.iter().filter(|field| !answer[**field].is_null()) {
                assert_eq!(answer[*field], message[*field], "{answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_project_in_no_repository_has_a_status_that_says_so() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = kit.project(&mut client).await;
    let request = json!({"type": "git_status", "project_id": id});
    let status = client.ask(request, "git_status_result").await;
    assert_eq!((&status["is_repo"], &status["staged"]), (&json!(false), &json!([])));
}

#[tokio::test]
async fn changes_of_a_project_that_is_watched_are_told_until_it_is_not() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = kit.project(&mut client).await;
    let dir = kit.site.dir.path().join("p");
    fs::create_dir(&dir).unwrap();
    let moved = json!({"type": "update_project", "project_id": id, "working_dir": dir});
    client.ask(moved, "project_saved").await;
    client.say(json!({"type": "watch_project_files", "project_id": id}));
    // Requests about files are done in order: after this answer the watch has begun.
    let list = json!({"type": "list_project_files", "project_id": id});
    client.ask(list.clone(), "project_file_list").await;
    fs::write(dir.join("new"), "").unwrap();
    assert_eq!(client.hear_of("project_files_changed").await["project_id"], id);
    client.say(json!({"type": "unwatch_project_files", "project_id": id}));
    client.ask(list, "project_file_list").await;
    fs::write(dir.join("newer"), "").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(client.all_until_now().await, Vec::<Value>::new());
    let refused = json!({"type": "watch_project_files", "project_id": NOBODY});
    client.ask(refused, "project_file_error").await;
}

#[tokio::test]
async fn alone_the_cluster_is_this_machine_and_nothing_of_it_can_be_changed() {
    let kit = Kit::new().await;
    kit.workspace.set_gateway(workspace::Gateway { url: "http://127.0.0.1:9178".to_owned() });
    let mut client = kit.client().await;
    let status = client.ask(json!({"type": "cluster_status"}), "cluster_status").await;
    let cluster = &status["cluster"];
    assert_eq!((&cluster["role"], &cluster["term"]), (&json!("leader"), &json!(0)));
    assert_eq!(cluster["leader_id"], cluster["node_id"]);
    assert_eq!(cluster["leader_address"], "127.0.0.1:9178");
    assert_eq!(cluster["peers"], json!([]));
    let config = client.ask(json!({"type": "get_cluster_config"}), "cluster_config").await;
    let timeouts = (&config["election_timeout_min_ms"], &config["election_timeout_max_ms"]);
    assert_eq!(timeouts, (&json!(3000), &json!(5000)));
    assert_eq!((&config["min_quorum"], &config["node_id"]), (&Value::Null, &cluster["node_id"]));
    for (message, ok) in [
        (json!({"type": "force_election"}), true),
        (json!({"type": "promote_node", "node_id": "n"}), true),
        (json!({"type": "trigger_sync"}), true),
        (json!({"type": "rename_node", "node_id": "n", "name": "m"}), false),
        (json!({"type": "update_cluster_config", "peers": []}), false),
    ] {
        let ack = client.ask(message.clone(), "cluster_action_ack").await;
        assert_eq!((&ack["action"], &ack["ok"]), (&message["type"], &json!(ok)));
    }
    let elsewhere = json!({"type": "new_session", "working_dir": "/", "node_id": "other"});
    assert!(client.ask(elsewhere, "error").await["message"].as_str().unwrap().contains("cluster"));
}
