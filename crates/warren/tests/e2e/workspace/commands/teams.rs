//! `warren team`.

use serde_json::json;

use crate::workspace::talk::Agents;

#[tokio::test]
async fn a_team_is_made_given_work_and_heard() {
    let agents = Agents::start().await;
    let place = &agents.place;
    let dir = place.dir();
    let made = place.cli(&["team", "create"], &["review", "--dir", &dir, "--json"]).await.json();
    let team = made["team"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let list = place.cli(&["team", "list"], &["--json"]).await.json();
    assert_eq!(list["teams"][0]["id"], team.as_str(), "{list}");

    let args = ["review", "say handed over", "--name", "explorer", "--timeout", "20"];
    let handed = place.cli(&["team", "handoff"], &args).await;
    assert!(handed.code == Some(0) && handed.out.contains("handed over"), "{handed:?}");
    let args = ["review", "slow 500; say assigned work is done", "--name", "worker"];
    let assigned = place.cli(&["team", "assign"], &args).await;
    assert_eq!(assigned.code, Some(0), "{assigned:?}");
    let waited = place.cli(&["team", "wait"], &["review", "--timeout", "20"]).await;
    assert!(waited.code == Some(0) && waited.out.contains("assigned work is done"), "{waited:?}");

    let spawned = place.cli(&["team", "spawn"], &["review", "--name", "idle"]).await;
    assert_eq!(spawned.code, Some(0), "{spawned:?}");
    let sent =
        place.cli(&["team", "send"], &["review", "say heard", "--to", "idle", "--json"]).await;
    let seq = sent.json()["seq"].as_u64().unwrap();
    let inbox = place.cli(&["team", "inbox"], &["review", "idle", "--json"]).await.json();
    assert_eq!(inbox["seq"], seq, "{inbox}");
    let table = place.cli(&["team", "inbox"], &["review", "idle"]).await;
    assert!(table.out.contains("say heard"), "{table:?}");
    let shown = place.cli(&["team", "show"], &["review", "--json"]).await.json();
    assert_eq!(shown["team"]["worker_session_ids"].as_array().unwrap().len(), 3, "{shown}");
    assert_eq!(shown["sessions"].as_array().unwrap().len(), 4, "{shown}");

    let late = ["review", "slow 60000", "--timeout", "0.05"];
    let late = place.cli(&["team", "handoff"], &late).await;
    assert_eq!(late.code, Some(1), "it goes on, which is no success: {late:?}");
    let removed = place.cli(&["team", "rm"], &["review"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let list = place.cli(&["session", "list"], &["--json", "--all"]).await.json();
    assert_eq!(list, json!({"sessions": []}));
    agents.mark().is_gone().await;
}
