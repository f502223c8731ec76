//! Messages that nobody should send: each gets a refusal, and the connection goes on.

use serde_json::{Value, json};
use testkit::workspace::{ServerMessage, WorkspaceClient, client_messages, sample};

use super::kit::{Viewer, WorkspaceHost, about};

/// Values of every sort, of which any is wrong in most places.
fn values() -> [Value; 9] {
    [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!("\u{0}"),
        json!([]),
        json!({}),
        json!("x".repeat(70_000)),
        json!([[[[]]]]),
    ]
}

/// The answer to what is wrong: something that says so, in one family or another.
fn is_refusal(heard: &ServerMessage) -> bool {
    matches!(
        heard.kind(),
        "error"
            | "session_unknown"
            | "project_file_error"
            | "project_file_chunk_error"
            | "project_fs_action_error"
            | "git_error"
    )
}

/// Says something; what comes back until a refusal, or nothing when none comes before a sign of life.
async fn answers(client: &mut WorkspaceClient, text: &str) -> Vec<ServerMessage> {
    client.say_text(text).await;
    client.so_far().await
}

#[tokio::test]
async fn every_message_with_any_field_wrong_leaves_the_connection_and_the_server_as_they_were() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    for name in client_messages().iter().filter(|name| **name != "auth") {
        let good = sample(name);
        let fields: Vec<String> = good.as_object().unwrap().keys().cloned().collect();
        for field in fields.iter().filter(|field| *field != "type") {
            for value in values() {
                let mut bad = good.clone();
                bad[field] = value;
                answers(&mut client, &bad.to_string()).await;
            }
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(field);
            answers(&mut client, &bad.to_string()).await;
        }
    }
    client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(super::kit::listed(&mut client).await.len(), 0);
    assert_eq!(place.daemon.health().await["ok"], true);
}

#[tokio::test]
async fn a_bad_message_gets_an_error_and_the_connection_stays() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, words) in [
        ("", ""),
        ("hello", ""),
        ("{", ""),
        ("[]", ""),
        ("null", ""),
        ("{}", "type"),
        (r#"{"type":7}"#, "type"),
        (r#"{"type":"no_such_message"}"#, "no_such_message"),
        (r#"{"type":"attach"}"#, "session_id"),
        (r#"{"type":"attach","session_id":"550e"}"#, "session_id"),
        (
            r#"{"type":"send_input","session_id":"550e8400-e29b-41d4-a716-446655440000","input":7}"#,
            "input",
        ),
        (r#"{"type":"auth","token":"again"}"#, ""),
        (&deep, ""),
    ] {
        client.say_text(text).await;
        let error = client.hear("error").await;
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(words) && said.len() < 2_000, "{text:.80}: {said}");
    }
    client.say_bytes(b"\x01 this is not for servers").await;
    client.hear("error").await;
    client.ask(json!({"type": "list_sessions"}), "session_list").await;
}

#[tokio::test]
async fn every_message_about_what_is_not_there_is_refused() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let no_ids = [
        "auth",
        "keepalive",
        "detach",
        "list_sessions",
        "list_projects",
        "list_teams",
        "cluster_status",
        "get_cluster_config",
        "force_election",
        "trigger_sync",
        "update_cluster_config",
        "rename_node",
        "promote_node",
        "cluster_invite",
        "cluster_invites",
        "cluster_leave",
        "unwatch_project_files",
    ];
    for name in client_messages().iter().filter(|name| !no_ids.contains(*name)) {
        client.say(sample(name)).await;
        let heard = client.next().await.unwrap_or_else(|| panic!("{name} ended it"));
        assert!(is_refusal(&heard), "{name} was answered with {heard:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_its_connection_and_no_other() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let long =
        json!({"type": "send_input", "session_id": "x", "input": "x".repeat(49 * 1024 * 1024)});
    client.say(long).await;
    client.ends().await;
    assert!(other.so_far().await.is_empty());
    // Just as long as may be is only an error of its own.
    let long = json!({
        "type": "upload_project_file", "project_id": "00000000-0000-4000-8000-000000000000",
        "path": "a", "request_id": "r", "data": "x".repeat(40 * 1024 * 1024),
    });
    other.say(long).await;
    other.hear("project_fs_action_error").await;
    assert!(other.so_far().await.is_empty());
}

#[tokio::test]
async fn a_flood_of_messages_is_answered_whole_and_in_order() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place
        .runs(&mut client, "stty -echo; echo ready; while read x; do echo \"<$x>\"; done")
        .await;
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("ready").await;
    for number in 0..3_000 {
        let input = json!({
            "type": "terminal_input", "session_id": id, "data": format!("{number}\n"),
            "input_id": number.to_string(),
        });
        viewer.client.say(input).await;
        // The terminal holds no more than its line discipline has room for.
        if number % 100 == 99 {
            viewer.shows(&format!("<{number}>")).await;
        }
    }
    let text = viewer.follow.text();
    let shown: Vec<&str> =
        text.split('<').skip(1).filter_map(|rest| rest.split('>').next()).collect();
    let expected: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    assert!(shown.ends_with(&expected.iter().map(String::as_str).collect::<Vec<_>>()), "{text}");
    viewer.client.say(about("kill_session", &id)).await;
    viewer.told("session_killed").await;
}
