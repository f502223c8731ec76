//! Connections that never say who they are, and such that never read.

use std::time::Duration;

use serde_json::json;
use testkit::workspace::{Knock, Mark, WorkspaceClient};
use tokio::task::JoinSet;

use super::kit::{TOKEN, Viewer, WorkspaceHost, about};

#[tokio::test]
async fn a_thousand_strangers_keep_nobody_out_for_long_and_cost_little() {
    let place = WorkspaceHost::start().await;
    let mut known = place.client().await;
    let before = place.daemon.resident_bytes();
    let mut knocks = JoinSet::new();
    for _ in 0..1_000 {
        knocks.spawn(Knock::at(place.daemon.address()).open());
    }
    let mut strangers = Vec::new();
    while let Some(opened) = knocks.join_next().await {
        strangers.extend(opened.unwrap());
    }
    // Admitted clients stay, and are served.
    known.ask(json!({"type": "list_sessions"}), "session_list").await;
    let more = place.daemon.resident_bytes().saturating_sub(before);
    assert!(more < 100 * 1024 * 1024, "{} strangers cost {more} bytes", strangers.len());
    assert!(strangers.len() <= 256, "{} were let wait", strangers.len());
    let admitted = async || match Knock::at(place.daemon.address()).open().await {
        Ok(mut client) => client.auth(TOKEN).await["success"] == true,
        Err(_) => false,
    };
    testkit::eventually("a place for one who is known", testkit::DEADLINE, admitted).await;
    for stranger in &mut strangers {
        stranger.ends().await;
    }
}

#[tokio::test]
async fn one_who_never_reads_slows_neither_the_program_nor_anybody_else() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let script = "read x; i=0; while [ $i -lt 150 ]; do head -c 100000 /dev/zero | tr '\\0' 'x'; \
        echo; i=$((i+1)); done; echo the end; read x; echo still here; read x";
    let id = place.runs(&mut client, script).await;
    let mut deaf: WorkspaceClient = place.slow_client().await;
    deaf.say(about("attach", &id)).await;
    deaf.hear("session_history").await;
    let mut hears = Viewer::of(place.client().await, &id).await;
    let before = place.daemon.resident_bytes();
    client.say(json!({"type": "send_input", "session_id": id, "input": ""})).await;
    hears.shows("the end").await;
    hears.prompts("").await;
    hears.shows("still here").await;
    let more = place.daemon.resident_bytes().saturating_sub(before);
    assert!(more < 64 * 1024 * 1024, "it cost {more} bytes");
    // When it reads again it is told what happened to it, and is where the others are.
    let told = async {
        loop {
            let notice = deaf.hear("client_notice").await["notice"].clone();
            if notice["code"] == "output_lagged" {
                return notice;
            }
        }
    };
    let notice = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
    assert_eq!((&notice["level"], &notice["session_id"]), (&json!("warning"), &json!(id)));
    deaf.hear("session_snapshot").await;
}

#[tokio::test]
async fn a_client_that_vanishes_leaves_its_session_running_and_nothing_else() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let mark = Mark::new();
    let id = place.runs(&mut client, &format!("sleep {}; :", mark.word())).await;
    for _ in 0..20 {
        let viewer = Viewer::of(place.client().await, &id).await;
        drop(viewer);
    }
    let gone = async || place.listed(&id).await.unwrap()["attached_clients"] == 0;
    testkit::eventually("nobody looking any more", testkit::DEADLINE, gone).await;
    mark.has_processes(2).await;
    client.ask(about("kill_session", &id), "session_killed").await;
    mark.is_gone().await;
}
