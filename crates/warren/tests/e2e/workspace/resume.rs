//! A session that is looked at over connections that are cut again and again.

use std::time::Duration;

use testkit::workspace::{Cutter, Follow, Knock, WorkspaceClient};

use super::kit::{TOKEN, WorkspaceHost};

/// How often the connection is cut. The soak cuts it more often.
const CUTS: u64 = 100;
/// The most bytes that come over one connection.
const MOST: u64 = 6_000;
const SEED: u64 = 20_261_122;

/// Numbered lines, a few at a time, until it is told to stop.
const NUMBERS: &str = "stty -echo; echo ready; read x; i=0; \
    while ! [ -e stop ]; do j=0; \
    while [ $j -lt 20 ]; do echo \"line $i of many\"; i=$((i+1)); j=$((j+1)); done; \
    sleep 0.01; done; echo the end; read x";

/// A connection over a way that may be cut at any byte of it.
async fn connect(cutter: &Cutter) -> Option<WorkspaceClient> {
    let mut client = Knock::at(cutter.address()).open().await.ok()?;
    client.say(serde_json::json!({"type": "auth", "token": TOKEN})).await;
    let result = client.next().await?;
    let result = result.as_message("auth_result").unwrap_or_else(|| panic!("{result:?}"));
    assert_eq!(result["success"], true, "{result}");
    Some(client)
}

/// Looks at it until the connection is cut; whether the end was seen.
async fn look(client: &mut WorkspaceClient, follow: &mut Follow) -> bool {
    client.say(follow.attach()).await;
    while let Some(heard) = client.next().await {
        if let Err(wrong) = follow.take(&heard) {
            panic!("seed {SEED}: {wrong}");
        }
        if follow.text().ends_with("the end\r\n") {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn output_over_connections_that_are_cut_at_any_byte_is_whole_and_comes_once() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.runs(&mut client, NUMBERS).await;
    let mut watched = super::kit::Viewer::of(client, &id).await;
    watched.shows("ready").await;
    let mut follow = watched.follow.clone();
    let cutter = Cutter::to(place.daemon.address(), SEED, MOST).await;
    watched.types("\n").await;
    let all = async {
        while cutter.cuts() < CUTS {
            if let Some(mut client) = connect(&cutter).await {
                look(&mut client, &mut follow).await;
            }
        }
        cutter.calm_down();
        std::fs::write(place.path().join("stop"), "").unwrap();
        let mut client = connect(&cutter).await.expect("nothing is cut any more");
        assert!(look(&mut client, &mut follow).await, "the end comes");
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.expect("it ends");

    assert_eq!(follow.snapshots(), 1, "seed {SEED}: it was never too far behind");
    let text = follow.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" of many")).collect();
    for (number, line) in lines.iter().enumerate() {
        let at = line.find("line ").unwrap_or_default();
        assert_eq!(line[at..], format!("line {number} of many"), "seed {SEED}");
    }
    assert!(lines.len() > 1_000, "seed {SEED}: only {} lines", lines.len());
}
