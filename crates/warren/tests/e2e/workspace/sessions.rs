//! Sessions: found, looked at, renamed, ended, and taken in.

use serde_json::{Value, json};
use testkit::workspace::{Mark, WorkspaceClient, samples::NOBODY};

use super::kit::{Viewer, WorkspaceHost, about, id_of, listed};

/// The ids of the sessions that a plain list has.
async fn ids(client: &mut WorkspaceClient) -> Vec<String> {
    let list = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    list["sessions"].as_array().unwrap().iter().map(id_of).collect()
}

#[tokio::test]
async fn list_sessions_tells_all_but_those_that_are_hidden() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let none = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(none["sessions"], json!([]));
    let id = place.runs(&mut client, "read x").await;
    let hidden = json!({
        "type": "open_terminal", "working_dir": place.dir(), "command": "sh",
        "args": ["-c", "read x"], "name": "behind", "hidden": true, "tags": ["a"],
    });
    let hidden = client.ask(hidden, "terminal_opened").await["session"].clone();
    assert_eq!((&hidden["hidden"], &hidden["tags"]), (&json!(true), &json!(["a"])), "{hidden}");
    assert_eq!(ids(&mut client).await, std::slice::from_ref(&id));
    let all: Vec<String> = listed(&mut client).await.iter().map(id_of).collect();
    assert!(all.contains(&id) && all.contains(&id_of(&hidden)) && all.len() == 2, "{all:?}");
    let mut other = place.client().await;
    assert_eq!(ids(&mut other).await, [id]);
}

#[tokio::test]
async fn attach_shows_the_screen_then_the_output_and_counts_who_looks() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.runs(&mut client, "echo before; read x; echo after; read x").await;
    let mut first = Viewer::of(place.client().await, &id).await;
    first.shows("before").await;
    let session = place.listed(&id).await.unwrap();
    assert_eq!((&session["status"], &session["attached_clients"]), (&json!("running"), &json!(1)));
    assert_eq!((&session["reachable"], &session["node_id"]), (&json!(true), &Value::Null));
    let mut second = Viewer::of(place.client().await, &id).await;
    assert!(second.follow.text().contains("before"), "{:?}", second.follow.text());
    assert_eq!(place.listed(&id).await.unwrap()["attached_clients"], 2);
    first.types("\n").await;
    first.shows("after").await;
    second.shows("after").await;
    assert_eq!((first.follow.seq(), first.follow.snapshots()), (second.follow.seq(), 1));

    // Going on where it was: nothing is sent again, and nothing is missing.
    let (seq, follow) = (first.follow.seq(), first.follow.clone());
    drop(first.client);
    second.types("\n").await;
    let mut again = place.client().await;
    let mut follow = follow;
    let attach = json!({"type": "attach", "session_id": id, "after_seq": seq});
    assert_eq!(follow.attach(), attach);
    again.say(attach).await;
    let history = again.hear("session_history").await;
    assert_eq!((&history["last_seq"], &history["snapshot"]), (&json!(seq), &Value::Null));
    let unknown = again.ask(about("attach", NOBODY), "session_unknown").await;
    assert_eq!(unknown["session_id"], NOBODY);
}

#[tokio::test]
async fn health_counts_sessions_and_clients() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let ended = place.runs(&mut client, "true").await;
    place.is(&ended, "exited").await;
    place.runs(&mut client, "read x").await;
    let counts = json!({"clients": 1, "sessions": 2, "live_sessions": 1, "keep_sessions_secs": 0});
    // Those who asked whether it had ended may not be gone yet.
    let counted = async || place.daemon.health().await["workspace"] == counts;
    testkit::eventually("the counts", testkit::DEADLINE, counted).await;
    let none = crate::common::serve().flag("--workspace=false");
    let none = WorkspaceHost::of(none).await;
    assert_eq!(none.daemon.health().await.get("workspace"), None);
}

#[tokio::test]
async fn a_server_without_a_workspace_says_so_with_and_without_an_upgrade() {
    let daemon = crate::common::serve().flag("--workspace=false").start().await;
    let plain = || daemon.client().request("GET", "/ws");
    let upgrade = plain()
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    for request in [plain(), upgrade] {
        let answer = request.send().await;
        assert_eq!(answer.status, 501, "{}", answer.text());
        let words = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(words.contains("no workspace") && words.contains("--workspace=false"), "{words}");
    }
    let has_one = WorkspaceHost::start().await;
    assert_eq!(has_one.daemon.client().get("/ws").await.status, 426);
}

#[tokio::test]
async fn detach_ends_the_output_and_nothing_else() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.runs(&mut client, "while read x; do echo got $x; done").await;
    let mut viewer = Viewer::of(place.client().await, &id).await;
    viewer.client.say(json!({"type": "detach"})).await;
    assert_eq!(viewer.told("detached").await["session_id"], id.as_str());
    place.is(&id, "detached").await;
    let mut other = Viewer::of(client, &id).await;
    other.prompts("it").await;
    other.shows("got it").await;
    let heard = viewer.client.so_far().await;
    assert!(heard.iter().all(|heard| heard.kind() != "output"), "{heard:?}");
}

#[tokio::test]
async fn rename_session_tells_everybody() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let id = place.runs(&mut client, "read x").await;
    let rename = json!({"type": "rename_session", "session_id": id, "name": "new name"});
    let is_it = |told: &Value| told["session"]["name"] == "new name";
    client.say(rename).await;
    let told = client.hear_where("session_status_changed", is_it).await;
    assert_eq!(told["session"]["id"], id.as_str());
    other.hear_where("session_status_changed", is_it).await;
    assert_eq!(place.listed(&id).await.unwrap()["name"], "new name");
    for bad in [json!(""), json!("x".repeat(1_000)), json!(7), json!("a\u{1b}[2J"), Value::Null] {
        let rename = json!({"type": "rename_session", "session_id": id, "name": bad});
        client.refused(rename).await;
    }
    let unknown = json!({"type": "rename_session", "session_id": NOBODY, "name": "n"});
    client.ask(unknown, "session_unknown").await;
}

#[tokio::test]
async fn kill_session_leaves_no_process_and_tells_everybody() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let mark = Mark::new();
    // The shell; one in the foreground, one in the background, one that hides, one that does not want to go.
    let word = mark.word();
    let script = format!(
        "sleep {word} & (setsid sleep {word} >/dev/null 2>&1 &) ; \
         sh -c 'trap \"\" HUP TERM; sleep {word}; sleep {word}; :' & sleep {word}; :"
    );
    let id = place.runs(&mut client, &script).await;
    mark.has_processes(6).await;
    client.say(about("kill_session", &id)).await;
    assert_eq!(client.hear("session_killed").await["session_id"], id.as_str());
    other.hear_where("session_killed", |killed| killed["session_id"] == id.as_str()).await;
    mark.is_gone().await;
    assert!(place.listed(&id).await.is_none());
    client.ask(about("kill_session", &id), "session_unknown").await;
    client.ask(about("attach", &id), "session_unknown").await;
}

#[tokio::test]
async fn adopt_session_watches_a_process_of_somebody_else_and_ends_it() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let mark = Mark::new();
    let mut process =
        tokio::process::Command::new("sleep").arg(mark.word()).kill_on_drop(true).spawn().unwrap();
    let pid = process.id().unwrap();
    let adopt = json!({
        "type": "adopt_session", "pid": pid, "name": "taken in", "working_dir": place.dir(),
    });
    let session = client.ask(adopt, "session_created").await["session"].clone();
    assert_eq!((&session["mode"], &session["adopted_pid"]), (&json!("adopted"), &json!(pid)));
    assert_eq!((&session["name"], &session["status"]), (&json!("taken in"), &json!("running")));
    let id = id_of(&session);
    client.say(about("kill_session", &id)).await;
    let ended = testkit::within("the end of the process", process.wait()).await.unwrap();
    assert!(!ended.success());
    client.hear("session_killed").await;

    let mut process =
        tokio::process::Command::new("sleep").arg(mark.word()).kill_on_drop(true).spawn().unwrap();
    let adopt = json!({"type": "adopt_session", "pid": process.id().unwrap()});
    let id = id_of(&client.ask(adopt, "session_created").await["session"]);
    process.start_kill().unwrap();
    process.wait().await.unwrap();
    place.is(&id, "exited").await;

    // Nobody has this number; the server itself is nobody's session.
    for pid in [0x7fff_fff0, place.daemon.pid()] {
        client.refused(json!({"type": "adopt_session", "pid": pid})).await;
    }
}
