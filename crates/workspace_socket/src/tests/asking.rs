//! Messages to clients about the open questions of agents.

use serde_json::{Value, json};

use super::{kit::Caller, members::Pair, remote_teams};

#[tokio::test]
async fn clients_of_other_members_hear_how_many_questions_of_an_agent_are_open() {
    let pair = Pair::of(remote_teams::kit().await, remote_teams::kit().await).await;
    let mut there = pair.owner.client().await;
    let new = json!({"type": "new_session", "mode": "sdk", "working_dir": pair.owner.dir()});
    let id = there.ask(new, "session_created").await["session"]["id"].clone();
    let mut client = pair.entry.client().await;
    client.ask(json!({"type": "attach", "session_id": id}), "attached").await;
    client.say(json!({"type": "send_input", "session_id": id, "input": "ask Bash"}));
    hear_asks(&mut client, &id, 1).await;
    let listed = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["asks"], 1, "{listed}");
    client.say(json!({"type": "interrupt", "session_id": id}));
    hear_asks(&mut client, &id, 0).await;
    pair.shut_down().await;
}

/// Waits for the word that a session of the first member has this many open questions.
async fn hear_asks(client: &mut Caller, id: &Value, asks: u32) {
    loop {
        let session = client.hear_of("session_status_changed").await["session"].take();
        if session["id"] == *id && session["asks"] == asks {
            assert_eq!(session["node_id"], "node-1");
            break;
        }
    }
}
