//! Terminals: opened, typed into, sized, and read again.

use serde_json::{Value, json};
use testkit::workspace::samples::NOBODY;

use super::kit::{Viewer, WorkspaceHost, about, id_of};
use crate::common::assert_fields;

/// Prints its size whenever that changes.
const SIZES: &str =
    "trap 'echo size $(stty size) end' WINCH; echo ready; while :; do sleep 0.02; done";

#[tokio::test]
async fn open_terminal_runs_a_command_with_its_arguments_in_its_directory() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let script = "pwd; stty size; echo \"$0 $1\"; echo TERM=$TERM; tty; read x";
    let open = json!({
        "type": "open_terminal", "working_dir": place.dir(), "command": "sh",
        "args": ["-c", script, "zero", "with space"], "name": "my shell", "cols": 100, "rows": 30,
    });
    let session = client.ask(open, "terminal_opened").await["session"].clone();
    assert_eq!((&session["mode"], &session["name"]), (&json!("pty"), &json!("my shell")));
    assert_eq!(
        (&session["kind"]["type"], &session["kind"]["command"]),
        (&json!("shell"), &json!("sh"))
    );
    assert_eq!(session["kind"]["args"].as_array().unwrap().len(), 4, "{session}");
    assert_fields(&session, &json!({"working_dir": place.dir(), "status": "running"}));
    let mut viewer = Viewer::of(client, &id_of(&session)).await;
    for text in [&*place.dir(), "30 100", "zero with space", "TERM=", "/dev/pts/"] {
        viewer.shows(text).await;
    }
}

#[tokio::test]
async fn terminal_input_is_applied_once_for_each_id_and_acknowledged_every_time() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let script = "stty -echo; echo ready; while read x; do echo \"<$x>\"; done";
    let id = place.runs(&mut client, script).await;
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("ready").await;
    let input = |data: &str, encoding: &str, input_id: &str| {
        json!({
            "type": "terminal_input", "session_id": id, "data": data, "encoding": encoding,
            "input_id": input_id,
        })
    };
    for message in [
        input("one\n", "text", "1"),
        input("one\n", "text", "1"),
        input("dHdvCg==", "base64", "2"),
        input("one\n", "text", "1"),
        input("dHdvCg==", "base64", "2"),
        input("end\n", "text", "3"),
    ] {
        let input_id = message["input_id"].as_str().unwrap().to_owned();
        viewer.client.say(message).await;
        viewer.told_where("input_ack", |ack| ack["input_id"] == input_id.as_str()).await;
    }
    viewer.shows("<end>").await;
    let said = viewer.follow.text().matches(['<', '>']).count();
    assert_eq!(said, 6, "{:?}", viewer.follow.text());
    for bad in [
        input("no base64", "base64", "4"),
        input("x", "hex", "5"),
        json!({"type": "terminal_input", "session_id": id}),
    ] {
        viewer.client.say(bad).await;
        viewer.told("error").await;
    }
    viewer.client.say(json!({"type": "terminal_input", "session_id": NOBODY, "data": "x"})).await;
    viewer.told("session_unknown").await;
}

#[tokio::test]
async fn send_input_to_a_terminal_is_the_text_and_one_enter() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place
        .runs(&mut client, "stty -echo; echo ready; while read x; do echo \"<$x>\"; done")
        .await;
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("ready").await;
    let input = json!({"type": "send_input", "session_id": id, "input": "explain this"});
    viewer.client.say(input).await;
    viewer.prompts("ünd das").await;
    viewer.shows("<explain this>").await;
    viewer.shows("<ünd das>").await;
    assert!(!viewer.follow.text().contains("<>"), "{:?}", viewer.follow.text());
}

#[tokio::test]
async fn interrupt_of_a_terminal_is_its_key() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let script = "trap 'echo caught; exit' INT; echo ready; while :; do sleep 0.02; done";
    let id = place.runs(&mut client, script).await;
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("ready").await;
    viewer.client.say(json!({"type": "interrupt", "session_id": id})).await;
    viewer.shows("caught").await;
    place.is(&id, "exited").await;
}

#[tokio::test]
async fn resize_follows_who_typed_last_and_tells_the_others() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.runs(&mut client, SIZES).await;
    let mut one = Viewer::of(place.client().await, &id).await;
    let mut two = Viewer::of(place.client().await, &id).await;
    one.shows("ready").await;
    let resize = |cols: u16, rows: u16, visible: bool| json!({"type": "resize", "session_id": id, "cols": cols, "rows": rows, "visible": visible});
    one.client.say(resize(100, 30, true)).await;
    one.shows("size 30 100 end").await;
    let told = two.told_where("terminal_size", |size| size["cols"] == 100).await;
    assert_eq!((&told["rows"], &told["session_id"]), (&json!(30), &json!(id)));
    one.type_until_applied("x").await;
    // Who types decides; who is hidden does not count.
    two.client.say(resize(60, 20, true)).await;
    two.type_until_applied("y").await;
    one.told_where("terminal_size", |size| size["cols"] == 60 && size["rows"] == 20).await;
    one.shows("size 20 60 end").await;
    two.client.say(resize(60, 20, false)).await;
    one.shows("size 30 100 end").await;
    // Too small, and nobody's.
    one.resizes(19, 10).await;
    one.told("error").await;
    one.client
        .say(json!({
            "type": "resize", "session_id": NOBODY, "cols": 80, "rows": 24, "visible": true,
        }))
        .await;
    one.told("session_unknown").await;
}

#[tokio::test]
async fn take_control_makes_the_size_ones_own() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.runs(&mut client, SIZES).await;
    let mut one = Viewer::of(place.client().await, &id).await;
    let mut two = Viewer::of(place.client().await, &id).await;
    one.shows("ready").await;
    one.resizes(90, 25).await;
    one.shows("size 25 90 end").await;
    one.type_until_applied("x").await;
    two.resizes(70, 15).await;
    two.client.say(json!({"type": "take_control", "session_id": id})).await;
    two.shows("size 15 70 end").await;
    one.told_where("terminal_size", |size| size["cols"] == 70).await;
    one.says("take_control").await;
    one.shows("size 25 90 end").await;
}

#[tokio::test]
async fn get_history_goes_back_piece_by_piece_to_the_beginning() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let script =
        "i=0; while [ $i -lt 2000 ]; do echo \"line $i.\"; i=$((i+1)); done; echo the end; read x";
    let id = place.runs(&mut client, script).await;
    let mut viewer = Viewer::of(place.client().await, &id).await;
    viewer.shows("the end").await;
    let (mut before, mut text) = (Value::Null, String::new());
    loop {
        let ask = json!({
            "type": "get_history", "session_id": id, "before_seq": before, "max_bytes": 6_000,
        });
        let history = client.ask(ask, "history").await;
        let (from, to) =
            (history["from_seq"].as_u64().unwrap(), history["to_seq"].as_u64().unwrap());
        assert!(from >= 1 && to >= from, "{from} {to}");
        assert!(before.is_null() || before == json!(to + 1), "{before} {to}");
        text.insert_str(0, history["data"].as_str().unwrap());
        before = json!(from);
        if history["more"] == false {
            assert_eq!(from, 1);
            break;
        }
    }
    let expected: String = (0..2000).map(|line| format!("line {line}.\r\n")).collect();
    assert_eq!(text, expected + "the end\r\n");
    client.ask(about("get_history", NOBODY), "session_unknown").await;
}

#[tokio::test]
async fn terminal_output_is_clean() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let project = place.project(&mut client).await;
    let env = json!({
        "type": "update_project", "project_id": project, "env": {"OF_THE_PROJECT": "yes"},
    });
    client.ask(env, "project_saved").await;
    let open = json!({
        "type": "open_terminal", "command": "sh", "project_id": project,
        "args": ["-c", "stty -echo; echo ready; read x; env | sed 's/^/|/'; pwd; ls -l /proc/self/fd | grep -c 'socket\\|data'; echo over; read x"],
    });
    let session = client.ask(open, "terminal_opened").await["session"].clone();
    assert_eq!(session["project_id"], project.as_str());
    let mut viewer = Viewer::of(client, &id_of(&session)).await;
    viewer.shows("ready").await;
    viewer.types("\n").await;
    viewer.shows("over").await;
    let text = viewer.follow.text();
    assert!(
        text.contains("|OF_THE_PROJECT=yes") && text.contains("|TERM=xterm-256color"),
        "{text}"
    );
    assert!(text.contains(&format!("\n{}\r\n0\r\nover", place.dir())), "{text}");
    for secret in [super::kit::TOKEN, "LD_PRELOAD", "CARGO", "RUST_"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
