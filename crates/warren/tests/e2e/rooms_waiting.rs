//! Requests in a room that wait, share a participant, or lose it or their client.

use serde_json::json;

use crate::{
    common::{ask_for, serve},
    rooms_kit::{
        Events, answering, assert_answers, assert_text, chat, completion, delta, friend, open_room,
        say, tunnel, with_room,
    },
};

#[tokio::test]
async fn requests_wait_for_a_busy_participant_instead_of_being_refused() {
    let (daemon, client, room) = with_room().await;
    answering(&daemon, &room, "p1").await;
    answering(&daemon, &room, "p2").await;
    let selectors = ["*", "m", "p1", "model:m"];
    let asked: Vec<_> = (0..16).map(|n| chat(&client, &room, selectors[n % 4])).collect();
    for one in asked {
        let answer = one.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_full_queue_is_told_in_these_very_bytes() {
    let daemon = serve().set("--max-queue-len", "2").start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut participant = friend(&daemon, &room, "p1").await;
    let first = chat(&client, &room, "*");
    let ask = participant.expect_request().await;
    let second = chat(&client, &room, "*");
    daemon.has_queued(1).await;
    let full = client.post_json(&room.chat(), &ask_for("*", false)).await;
    assert_text(&full, 429, r#"{"error":"queue full"}"#);
    let after: u64 = full.header("retry-after").unwrap().parse().unwrap();
    assert!(after >= 1);
    say(&mut participant, &ask, "one").await;
    let ask = participant.expect_request().await;
    say(&mut participant, &ask, "two").await;
    for asked in [first, second] {
        assert_eq!(asked.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_participant_that_allows_it_has_several_at_once() {
    let (daemon, client, room) = with_room().await;
    let mut participant = tunnel(room.put(&daemon, "p1").field("maxConcurrent", json!(3))).await;
    let asked: Vec<_> = (0..4).map(|_| chat(&client, &room, "*")).collect();
    let mut asks = Vec::new();
    for _ in 0..3 {
        asks.push(participant.expect_request().await);
    }
    daemon.has_queued(1).await;
    // The last first, each in the others' midst.
    for ask in asks.iter().rev() {
        participant.start(ask, 200, "application/json").await;
    }
    for ask in &asks {
        participant.chunk(ask, completion(&ask.id).to_string()).await;
        participant.end(ask).await;
    }
    let ask = participant.expect_request().await;
    say(&mut participant, &ask, "4").await;
    for one in asked {
        assert_eq!(one.await.unwrap().status, 200);
    }
}

/// There is no message to cancel: the rest of the answer is ignored, and the slot is free when the
/// participant says that it has finished.
#[tokio::test]
async fn a_hang_up_harms_nobody_and_frees_the_slot_when_the_participant_ends() {
    let (daemon, client, room) = with_room().await;
    let mut events = Events::open(&client, &room.plane("/events")).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    for streaming in [true, false] {
        let gone = client.post(&room.chat(), &ask_for("*", streaming)).open().await;
        let old = participant.expect_request().await;
        if streaming {
            participant.start(&old, 200, "text/event-stream").await;
            participant.chunk(&old, delta("a")).await;
            let mut answer = gone.answer().await;
            answer.expect(&delta("a")).await;
            answer.reset();
        } else {
            gone.reset();
        }
        events.until("llm.error").await;
        let asked = chat(&client, &room, "*");
        daemon.has_queued(1).await;
        participant.chunk(&old, "late").await;
        participant.end(&old).await;
        let ask = participant.expect_request().await;
        participant.start(&ask, 200, "application/json").await;
        participant.chunk(&old, "later").await;
        participant.chunk(&ask, completion("new").to_string()).await;
        participant.end(&ask).await;
        assert_eq!(asked.await.unwrap().json(), completion("new"));
    }
}

/// A stock participant goes on generating for clients that left.
#[tokio::test]
async fn ten_hang_ups_have_one_generation_at_a_participant_that_takes_one() {
    let (daemon, client, room) = with_room().await;
    let mut events = Events::open(&client, &room.plane("/events")).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let gone = client.post(&room.chat(), &ask_for("*", true)).open().await;
    let running = participant.expect_request().await;
    gone.reset();
    events.until("llm.error").await;
    for _ in 0..9 {
        let waiting = client.post(&room.chat(), &ask_for("*", true)).open().await;
        daemon.has_queued(1).await;
        waiting.reset();
        daemon.has_queued(0).await;
    }
    let asked = chat(&client, &room, "*");
    daemon.has_queued(1).await;
    participant.fail(&running, "done with it").await;
    let ask = participant.expect_request().await;
    assert_ne!(ask.id, running.id);
    say(&mut participant, &ask, "mine").await;
    assert_eq!(asked.await.unwrap().json(), completion("mine"));
}

#[tokio::test]
async fn a_loss_in_the_middle_ends_the_stream_with_an_error_and_not_as_if_it_were_whole() {
    let (daemon, client, room) = with_room().await;
    let apis = [
        ("/v1/chat/completions", "data: {\"error\""),
        ("/v1/responses", "event: error"),
        ("/v1/messages", "event: error"),
    ];
    for (path, error) in apis {
        let mut participant = friend(&daemon, &room, "p1").await;
        let mut body = ask_for("m", true);
        body["input"] = json!("hi");
        if path == "/v1/responses" {
            body = json!({"model": "m", "input": "hi", "stream": true});
        }
        let asked = tokio::spawn(client.post(&room.path(path), &body).start());
        let ask = participant.expect_request().await;
        participant.start(&ask, 200, "text/event-stream").await;
        let begins = if path == "/v1/responses" {
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_x\"}}\n\n".to_owned()
        } else {
            delta("a")
        };
        participant.chunk(&ask, begins + "data: {\"half").await;
        let answer = asked.await.unwrap();
        drop(participant);
        let text = answer.finish().await.text();
        assert!(text.contains(error) && !text.contains("[DONE]"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_request_whose_participant_is_lost_before_it_begins_goes_to_another() {
    let (daemon, client, room) = with_room().await;
    let mut first = friend(&daemon, &room, "p1").await;
    let asked = chat(&client, &room, "m");
    first.expect_request().await;
    let mut second = friend(&daemon, &room, "p2").await;
    drop(first);
    let ask = second.expect_request().await;
    say(&mut second, &ask, "saved").await;
    assert_eq!(asked.await.unwrap().json(), completion("saved"));
}

#[tokio::test]
async fn a_failure_before_the_answer_is_a_502_in_stock_words() {
    let (daemon, client, room) = with_room().await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let asked = chat(&client, &room, "*");
    let ask = participant.expect_request().await;
    participant.fail(&ask, "connect ECONNREFUSED").await;
    let failed = asked.await.unwrap();
    assert_text(
        &failed,
        502,
        r#"{"error":"Failed to proxy request: Error: connect ECONNREFUSED"}"#,
    );
    assert_answers(&daemon, &room, &mut participant).await;
}

/// Nobody waits for a room that is no more.
#[tokio::test]
async fn requests_in_a_room_that_closes_end() {
    let (daemon, client, room) = with_room().await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let given = chat(&client, &room, "*");
    participant.expect_request().await;
    let waiting = chat(&client, &room, "*");
    daemon.has_queued(1).await;
    let host = client.with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    for asked in [given, waiting] {
        let ended = asked.await.unwrap();
        assert_text(&ended, 410, r#"{"error":"the room was closed"}"#);
    }
}
