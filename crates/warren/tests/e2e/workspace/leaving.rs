//! Requests that a client sends before it closes the connection are done.

use serde_json::json;
use testkit::{DEADLINE, eventually};

use super::kit::{WorkspaceHost, about};

#[tokio::test]
async fn a_session_is_killed_forty_times_by_who_says_so_and_closes() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    for round in 0..40 {
        let id = place.runs(&mut client, "exec cat").await;
        let mut other = place.client().await;
        if round % 2 == 1 {
            other.say(about("attach", &id)).await;
            other.say(json!({"type": "detach"})).await;
        }
        other.say(about("kill_session", &id)).await;
        other.close().await;
        let is_gone = async || place.listed(&id).await.is_none();
        eventually(&format!("the end of session {round}"), DEADLINE, is_gone).await;
    }
}

#[tokio::test]
async fn files_that_wait_for_their_turn_are_written_though_their_client_has_gone() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let project = place.project(&mut client).await;
    for round in 0..10 {
        let mut other = place.client().await;
        for number in 0..20 {
            let write = json!({"type": "write_project_file", "project_id": project,
                "path": format!("{round}-{number}"), "content": "x".repeat(10_000)});
            other.say(write).await;
        }
        other.close().await;
    }
    let written = async || std::fs::read_dir(place.path()).unwrap().count() == 200;
    eventually("200 files", DEADLINE, written).await;
}
