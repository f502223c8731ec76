//! Agents: their turns, their questions, and that they are found again.

use serde_json::json;
use testkit::{MockBackend, Reply, agents::NAMES};

use super::{
    kit::{Viewer, id_of},
    talk::Agents,
};
use crate::common::assert_fields;

const ASK: [&str; 2] = ["claude", "acp"];

#[tokio::test]
async fn new_session_makes_an_agent_of_each_dialect_that_takes_turns_and_remembers() {
    let agents = Agents::start().await;
    for name in NAMES {
        let mut client = agents.place.client().await;
        let new = json!({
            "type": "new_session", "working_dir": agents.place.dir(), "mode": "sdk",
            "provider": name, "name": "my agent",
        });
        let session = client.ask(new, "session_created").await["session"].clone();
        assert_fields(&session, &json!({"mode": "sdk", "status": "idle"}));
        assert_eq!((&session["provider"], &session["name"]), (&json!(name), &json!("my agent")));
        let kind = match name {
            "claude" => json!({"type": "claude"}),
            other => json!({"type": "agent", "provider": other}),
        };
        assert_eq!(session["kind"], kind);
        let id = id_of(&session);
        let mut viewer = Viewer::of(client, &id).await;

        let said = viewer.turn("say hello there").await;
        assert_eq!((&*said.outcome, &*said.text), ("completed", "hello there"), "{name}: {said:?}");
        assert_eq!(
            (&said.events[0]["kind"], &said.events[0]["turn"]),
            (&json!("turn_started"), &json!(1))
        );
        let usage = viewer.told("usage").await;
        assert_eq!(
            (&usage["turn"], &usage["session_id"]),
            (&json!(1), &json!(id)),
            "{name}: {usage}"
        );
        assert!(
            usage["input_tokens"].is_u64() && usage["output_tokens"].is_u64(),
            "{name}: {usage}"
        );
        let said = viewer.turn("use ls; recall").await;
        assert!(said.text.contains("say hello there"), "{name}: {said:?}");
        let kinds: Vec<&str> =
            said.events.iter().filter_map(|event| event["kind"].as_str()).collect();
        assert!(kinds.contains(&"tool_finished"), "{name}: {kinds:?}");
        agents.place.is(&id, "idle").await;
        // A viewer that comes later gets the agent's output, line by line.
        let lines: Vec<&str> = viewer.follow.text().lines().collect();
        assert!(lines.len() >= 2, "{name}: {lines:?}");
        let late = Viewer::of(agents.place.client().await, &id).await;
        assert_eq!(late.follow.seq(), viewer.follow.seq(), "{name}");
    }
}

#[tokio::test]
async fn permission_response_allows_or_denies_and_the_question_outlives_who_heard_it() {
    let agents = Agents::start().await;
    for name in ASK {
        let mut viewer = agents.talk(name).await;
        for allow in [true, false] {
            viewer.prompts("ask Bash").await;
            let request = viewer.told("permission_request").await;
            assert_eq!(request["tool"], "Bash", "{name}: {request}");
            let id = request["session_id"].as_str().unwrap().to_owned();
            // Who heard it is gone; who comes is asked, too, and answers.
            let mut other = Viewer::of(agents.place.client().await, &id).await;
            drop(viewer);
            let again = other.told("permission_request").await;
            assert_eq!(again["request_id"], request["request_id"], "{name}");
            let respond = json!({
                "type": "permission_response", "request_id": request["request_id"],
                "allow": allow, "message": "because",
            });
            other.client.say(respond.clone()).await;
            let resolved = other.told("permission_resolved").await;
            let outcome = if allow { "allow" } else { "deny" };
            assert_eq!(resolved["outcome"], outcome, "{name}: {resolved}");
            let said = other.turn_ends().await;
            let expected = if allow { "was allowed" } else { "was denied" };
            assert!(said.text.contains(expected), "{name}: {said:?}");
            // Once is enough.
            other.client.say(respond).await;
            other.told("error").await;
            viewer = other;
        }
    }
}

#[tokio::test]
async fn agents_go_on_with_their_conversations_after_the_server_was_killed() {
    let mut agents = Agents::start().await;
    let mut ids = Vec::new();
    for name in NAMES {
        let mut viewer = agents.talk(name).await;
        let said = viewer.turn("say remember me").await;
        assert_eq!(said.outcome, "completed", "{name}: {said:?}");
        let usage = viewer.told("usage").await;
        ids.push((name, viewer.id(), usage["input_tokens"].clone()));
    }
    let mark = agents.mark();
    agents.place.daemon.kill_and_restart().await;
    mark.is_gone().await;
    for (name, id, tokens) in ids {
        agents.place.is(&id, "idle").await;
        let mut viewer = Viewer::of(agents.place.client().await, &id).await;
        let said = viewer.turn("recall").await;
        assert!(said.text.contains("say remember me"), "{name}: {said:?}");
        let turn = said.events.iter().find(|event| event["kind"] == "turn_started").unwrap();
        assert_eq!(turn["turn"], 2, "{name}");
        // One of them counts the whole thread: what it took before is not reported again.
        assert_eq!(viewer.told("usage").await["input_tokens"], tokens, "{name}");
    }
}

#[tokio::test]
async fn an_agent_thinks_with_the_servers_own_models_by_a_key_of_its_own() {
    let agents = Agents::with("use_gateway = true\nmodel = \"warren:m\"").await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&["/v1/chat/completions"]);
    backend.answer_with(|_| Reply::completion("from the gateway"));
    let _worker = crate::common::lend(&agents.place.daemon, &backend, 2).await;
    for name in ["claude", "codex", "opencode"] {
        let mut viewer = agents.talk(name).await;
        let said = viewer.turn("gateway").await;
        assert!(said.text.contains("from the gateway"), "{name}: {said:?}");
        let id = viewer.id();
        let booked = async || {
            let usage = agents.place.daemon.admin().get("/admin/usage?by=key").await.text();
            usage.contains(&format!("session:{id}"))
        };
        testkit::eventually("a row of usage", testkit::DEADLINE, booked).await;
    }
}

#[tokio::test]
async fn get_turns_reads_the_events_of_turns_with_their_prompts() {
    let agents = Agents::start().await;
    let mut talk = agents.talk("claude").await;
    talk.turn("say hello").await;
    let asked = json!({"type": "get_turns", "session_id": talk.id()});
    let turns = talk.client.ask(asked, "turns").await;
    let events = turns["events"].as_array().expect("events");
    assert_eq!(events[0]["event"]["prompt"], "say hello", "{turns}");
    assert_eq!(events[events.len() - 1]["event"]["outcome"], "completed", "{turns}");
    assert_eq!(turns["more"], false);
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_no_agent_that_never_exits() {
    let mut agents = Agents::start().await;
    let mut viewer = agents.talk("claude").await;
    viewer.turn("never exit; say so").await;
    viewer.prompts("hang").await;
    viewer.told_where("agent_event", |told| told["event"]["kind"] == "turn_started").await;
    let mark = agents.mark();
    agents.place.daemon.kill9().await;
    mark.is_gone().await;
}
