//! Agents: their turns, their questions, and that they are found again.

use serde_json::{Value, json};
use testkit::{MockBackend, Reply, agents::NAMES, workspace::samples::NOBODY};

use super::{
    kit::{Viewer, about, id_of},
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
async fn send_input_to_an_agent_is_one_turn_and_prompts_wait_in_order_32_at_most() {
    let agents = Agents::start().await;
    let mut viewer = agents.talk("claude").await;
    viewer.prompts("wait").await;
    viewer.told_where("agent_event", |told| told["event"]["kind"] == "turn_started").await;
    for number in 0..32 {
        viewer.prompts(&format!("say number {number}")).await;
    }
    assert!(viewer.client.so_far().await.iter().all(|heard| heard.as_message("error").is_none()));
    let session = viewer.id();
    let more = json!({"type": "send_input", "session_id": session, "input": "say too much"});
    viewer.client.say(more).await;
    let error = viewer.told("error").await;
    assert!(error["message"].as_str().unwrap().contains("32"), "{error}");
    viewer.says("interrupt").await;
    assert_eq!(viewer.turn_ends().await.outcome, "interrupted");
    for number in 0..32 {
        let said = viewer.turn_ends().await;
        assert_eq!(said.text, format!("number {number}"), "{said:?}");
    }
}

#[tokio::test]
async fn interrupt_ends_a_turn_of_each_agent_and_the_next_one_goes_on() {
    let agents = Agents::start().await;
    for name in NAMES {
        let mut viewer = agents.talk(name).await;
        let said = viewer.turn("say before").await;
        assert_eq!(said.outcome, "completed", "{name}: {said:?}");
        viewer.prompts("wait").await;
        viewer.told_where("agent_event", |told| told["event"]["kind"] == "turn_started").await;
        let id = viewer.id();
        agents.place.is(&id, "running").await;
        viewer.client.say(json!({"type": "interrupt", "session_id": id})).await;
        let said = viewer.turn_ends().await;
        assert_eq!(said.outcome, "interrupted", "{name}: {said:?}");
        let said = viewer.turn("recall").await;
        assert!(said.text.contains("say before"), "{name}: {said:?}");
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
async fn a_question_that_nobody_answers_expires() {
    let agents = Agents::with("permission_secs = 1").await;
    let mut viewer = agents.talk("claude").await;
    viewer.prompts("ask Bash").await;
    viewer.told("permission_request").await;
    assert_eq!(viewer.told("permission_resolved").await["outcome"], "expired");
    let said = viewer.turn_ends().await;
    assert!(said.text.contains("was denied"), "{said:?}");
    let respond = json!({"type": "permission_response", "request_id": NOBODY, "allow": true});
    viewer.client.say(respond).await;
    viewer.told("error").await;
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
async fn a_prompt_before_the_history_still_shows_its_turn() {
    let agents = Agents::start().await;
    for _ in 0..10 {
        let mut client = agents.place.client().await;
        let id = agents.agent(&mut client, "claude").await;
        client.say(about("attach", &id)).await;
        let prompt = json!({"type": "send_input", "session_id": id, "input": "say hello"});
        client.say(prompt).await;
        let mut kinds = Vec::new();
        while kinds.last() != Some(&json!("turn_ended")) {
            kinds.push(client.hear("agent_event").await["event"]["kind"].clone());
        }
        assert_eq!(kinds[0], "turn_started", "{kinds:?}");
    }
}

#[tokio::test]
async fn an_agents_own_terminal_is_a_session_of_mode_pty() {
    let agents = Agents::start().await;
    let mut client = agents.place.client().await;
    let new = json!({
        "type": "new_session", "working_dir": agents.place.dir(), "mode": "pty", "provider": "claude",
    });
    let session = client.ask(new, "session_created").await["session"].clone();
    assert_eq!((&session["mode"], &session["kind"]), (&json!("pty"), &json!({"type": "claude"})));
    client.ask(about("kill_session", &id_of(&session)), "session_killed").await;
    agents.mark().is_gone().await;
}

#[tokio::test]
async fn events_come_after_the_line_that_they_are_read_from_and_only_once() {
    let agents = Agents::start().await;
    let mut viewer = agents.talk("claude").await;
    let id = viewer.id();
    viewer.turn("say one; use ls; say two").await;
    let follow = viewer.follow.clone();
    viewer.turn("say three").await;
    // From the end of the first turn on: nothing of that comes again.
    let mut client = agents.place.client().await;
    let mut follow = follow;
    client.say(follow.attach()).await;
    client.hear("session_history").await;
    let (mut seq, mut events) = (follow.seq(), Vec::new());
    while events.last().is_none_or(|event: &Value| event["event"]["kind"] != "turn_ended") {
        let heard = client.next().await.unwrap();
        match &heard {
            testkit::workspace::ServerMessage::Output(output) => seq = output.seq,
            testkit::workspace::ServerMessage::Message(message)
                if message["type"] == "agent_event" =>
            {
                assert_eq!((&message["seq"], &message["session_id"]), (&json!(seq), &json!(id)));
                events.push(message.clone());
            }
            testkit::workspace::ServerMessage::Message(_) => {}
        }
    }
    let text: String =
        events.iter().filter_map(|event| event["event"]["text"].as_str()).take(9).collect();
    assert!(text.contains("three") && !text.contains("one") && !text.contains("two"), "{events:?}");
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
