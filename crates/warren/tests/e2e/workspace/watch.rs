//! Projects that are watched.

use std::fs;

use serde_json::{Value, json};
use testkit::workspace::samples::NOBODY;

use super::kit::{WorkspaceHost, id_of};

const CHANGED: &str = "project_files_changed";

#[tokio::test]
async fn watch_project_files_tells_of_changes_and_unwatching_ends_it() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    fs::create_dir(place.path().join("src")).unwrap();
    let project = place.project(&mut client).await;
    client.say(json!({"type": "watch_project_files", "project_id": project})).await;
    // The watch is not acknowledged: it is there when it tells.
    let (mut number, path) = (0, place.path().join("src/lib.rs"));
    let told = async {
        loop {
            number += 1;
            fs::write(&path, number.to_string()).unwrap();
            let heard = client.so_far().await;
            if heard.iter().any(|heard| heard.as_message(CHANGED).is_some()) {
                return;
            }
        }
    };
    testkit::within("a change being told", told).await;
    fs::create_dir(place.path().join("new")).unwrap();
    client.hear(CHANGED).await;
    fs::write(place.path().join("new/file"), "x").unwrap();
    assert_eq!(client.hear(CHANGED).await["project_id"], project.as_str());
}

#[tokio::test]
async fn watch_project_files_takes_the_place_of_what_was_watched_before() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let first = place.project(&mut client).await;
    let second = tempfile::tempdir().unwrap();
    let create = json!({
        "type": "create_project", "name": "second", "working_dir": second.path().display().to_string(),
    });
    let other = id_of(&client.ask(create, "project_saved").await["project"]);
    for project in [&first, &other] {
        client.say(json!({"type": "watch_project_files", "project_id": project})).await;
    }
    let mut number = 0;
    let told = async {
        loop {
            number += 1;
            fs::write(second.path().join("file"), number.to_string()).unwrap();
            let heard = client.so_far().await;
            if let Some(told) = heard.iter().find_map(|heard| heard.as_message(CHANGED)) {
                return told["project_id"].clone();
            }
        }
    };
    assert_eq!(testkit::within("a change being told", told).await, other.as_str());
    // Changes of a project that is not watched any more are not reported.
    fs::write(place.path().join("file"), "x").unwrap();
    fs::write(second.path().join("last"), "x").unwrap();
    let told = client.hear(CHANGED).await;
    assert_eq!(told["project_id"], other.as_str());
}

#[tokio::test]
async fn unwatch_project_files_ends_it_and_is_no_error_without_a_watch() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let project = place.project(&mut client).await;
    let unwatch = json!({"type": "unwatch_project_files", "project_id": project});
    client.say(unwatch.clone()).await;
    let watch = json!({"type": "watch_project_files", "project_id": project});
    client.say(watch.clone()).await;
    other.say(watch).await;
    client.say(unwatch).await;
    let mut number = 0;
    let told = async {
        loop {
            number += 1;
            fs::write(place.path().join("file"), number.to_string()).unwrap();
            if other.so_far().await.iter().any(|heard| heard.as_message(CHANGED).is_some()) {
                return;
            }
        }
    };
    testkit::within("a change being told to the other", told).await;
    let is_changed =
        |heard: &testkit::workspace::ServerMessage| heard.as_message(CHANGED).is_some();
    assert!(!client.so_far().await.iter().any(is_changed));
    client.say(json!({"type": "unwatch_project_files", "project_id": NOBODY})).await;
    client.say(json!({"type": "watch_project_files", "project_id": NOBODY})).await;
    let error: Value = client.hear("project_file_error").await;
    assert!(error["message"].as_str().unwrap().contains("no project"), "{error}");
}
