//! Streams of what happens in rooms: the spec's messages unnamed, the stock events named.

use serde_json::json;
use testkit::{Client, Daemon};

use crate::{
    common::{ask_for, assert_fields, post, serve},
    rooms_kit::{
        Events, Room, completion, data, delta, elsewhere, fields, friend, make_room, open_room,
        say, with_room,
    },
};

/// Makes something happen: the room's name is what it was.
async fn touch(client: &Client, room: &Room) {
    let body = json!({"name": "friends"}).to_string();
    let host =
        client.request("PATCH", &room.plane("")).header("x-warren-host-token", &room.host_token);
    data(&host.body(body).send().await, 200);
}

/// As strict parsers need them: `event: NAME`, `data: JSON`, nothing else, in one piece.
#[tokio::test]
async fn named_events_are_as_stock_parsers_need_them() {
    let (daemon, client, room) = with_room().await;
    let mut events = Events::open(&client, &room.plane("/events")).await;
    let first = events.next().await.unwrap();
    assert_eq!(
        (first.kind(), first.json["data"]["clientId"].as_str().unwrap().len()),
        ("connected", 36)
    );
    let mut participant = friend(&daemon, &room, "p1").await;
    let asked = post(&client, room.chat(), ask_for("*", false));
    let ask = participant.expect_request().await;
    say(&mut participant, &ask, "hi").await;
    assert_eq!(asked.await.unwrap().status, 200);
    participant.leave().await;
    touch(&client, &room).await;
    let host = client.with_header("x-warren-host-token", &room.host_token);
    host.request("DELETE", &room.plane("")).send().await;
    let rest = events.rest().await;
    let kinds: Vec<_> = rest.iter().map(|frame| frame.kind()).collect();
    let expected = [
        "participant.joined",
        "participant.updated",
        "llm.request",
        "llm.complete",
        "participant.left",
        "room.created",
        "room.closed",
    ];
    assert_eq!(kinds, expected);
    for frame in [&first].into_iter().chain(&rest) {
        let (kind, json) = (frame.kind(), &frame.json);
        assert_eq!(
            frame.text,
            format!(
                "event: {kind}\ndata: {}\n\n",
                frame.text.split_once("data: ").unwrap().1.trim_end()
            )
        );
        assert_eq!(
            (frame.name.as_deref(), frame.id, frame.text.lines().count()),
            (Some(kind), None, 3)
        );
        assert_eq!(fields(json), ["data", "roomCode", "timestamp", "type"], "{frame:?}");
        assert!(json["roomCode"] == room.code && json["timestamp"].is_u64(), "{frame:?}");
    }
    let [joined, updated, request, complete, left, ..] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!(joined.json["data"]["connection"]["connected"], false);
    assert_eq!(updated.json["data"]["connection"]["connected"], true);
    assert_eq!(updated.json["data"]["status"], "online");
    let request = &request.json["data"];
    assert_eq!(fields(request), ["model", "participantId", "protocol", "requestId"]);
    assert_eq!((&request["model"], &request["protocol"]), (&json!("*"), &json!("chatCompletions")));
    let complete = &complete.json["data"];
    assert_eq!(fields(complete), ["metrics", "model", "participantId", "protocol", "requestId"]);
    assert_eq!((&complete["requestId"], &complete["model"]), (&request["requestId"], &json!("m")));
    let metrics = &complete["metrics"];
    let counted = (&metrics["inputTokens"], &metrics["outputTokens"], &metrics["totalTokens"]);
    assert_eq!(counted, (&json!(3), &json!(4), &json!(7)));
    assert!(metrics["ttftMs"].is_u64() && metrics["durationMs"].is_u64(), "{metrics}");
    assert_eq!(left.json["data"], json!({"participantId": "p1"}));
}

#[tokio::test]
async fn a_failed_request_is_told_with_who_had_it_and_where_it_failed() {
    let (daemon, client, room) = with_room().await;
    let mut named = Events::open(&client, &room.plane("/events")).await;
    let mut unnamed = Events::open(&client, &room.path("/events")).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let upstream = [500, 404, 429];
    for status in upstream {
        let asked = post(&client, room.chat(), ask_for("m", false));
        let ask = participant.expect_request().await;
        participant.answer(&ask, status, &json!({"error": {"message": "model not found"}})).await;
        assert_eq!(asked.await.unwrap().status, status);
        assert_eq!(
            named.until("llm.complete").await.json["data"]["participantId"],
            "p1",
            "{status}"
        );
        unnamed.until("llm:complete").await;
    }
    for (begun, stage) in [(false, "dispatch"), (true, "stream")] {
        let asked = post(&client, room.chat(), ask_for("m", true));
        let ask = participant.expect_request().await;
        if begun {
            participant.start(&ask, 200, "text/event-stream").await;
            participant.chunk(&ask, delta("a")).await;
        }
        participant.fail(&ask, "out of memory").await;
        asked.await.unwrap();
        let failed = named.until("llm.error").await.json["data"].clone();
        let all = [
            "endpoint",
            "error",
            "model",
            "nickname",
            "participantId",
            "protocol",
            "requestId",
            "stage",
        ];
        assert_eq!(fields(&failed), all);
        assert_eq!((&failed["stage"], &failed["nickname"]), (&json!(stage), &json!("Ann")));
        assert!(failed["error"].as_str().unwrap().contains("out of memory"), "{failed}");
        let error = unnamed.until("llm:error").await.json;
        assert_fields(&error, &json!({"requestId": failed["requestId"], "participantId": "p1"}));
    }
}

#[tokio::test]
async fn missed_events_are_replayed_from_the_last_id_and_an_unknown_id_is_no_error() {
    let (_daemon, client, room) = with_room().await;
    let mut live = Events::open(&client, &room.plane("/events?ids=true")).await;
    assert_eq!(live.next().await.unwrap().kind(), "connected");
    touch(&client, &room).await;
    let seen = live.next().await.unwrap().id.expect("an id");
    for _ in 0..3 {
        touch(&client, &room).await;
    }
    let mut missed = Vec::new();
    for _ in 0..3 {
        missed.push(live.next().await.unwrap().id.unwrap());
    }
    assert!(missed.is_sorted() && missed[0] > seen, "{missed:?}");
    let path = room.plane("/events?ids=true");
    let header = client.request("GET", &path).header("last-event-id", &seen.to_string());
    let query = client.request("GET", &format!("{path}&lastEventId={seen}"));
    for request in [header, query] {
        let mut again = Events::of(request).await;
        assert_eq!(again.next().await.unwrap().kind(), "connected");
        for id in &missed {
            assert_eq!(again.next().await.unwrap().id, Some(*id));
        }
    }
    for stale in ["0", "nonsense", "99999999999999999999"] {
        let request = client.request("GET", &path).header("last-event-id", stale);
        assert_eq!(Events::of(request).await.next().await.unwrap().kind(), "connected", "{stale}");
    }
}

/// As the spec's `onmessage` needs them.
#[tokio::test]
async fn messages_are_unnamed_and_replayed_after_a_restart_without_an_error() {
    let mut daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut live = Events::open(&client, &room.path("/events")).await;
    let participant = friend(&daemon, &room, "p1").await;
    let joined = live.next().await.unwrap();
    let id = joined.id.expect("an id");
    assert_eq!((joined.kind(), &joined.name), ("room:participant-joined", &None));
    assert!(joined.text.starts_with(&format!("id: {id}\ndata: {{")), "{joined:?}");
    participant.leave().await;
    let left = live.next().await.unwrap();
    let again =
        client.request("GET", &room.path("/events")).header("last-event-id", &id.to_string());
    assert_eq!(Events::of(again.clone()).await.next().await.unwrap().text, left.text);
    drop(live);
    daemon.kill_and_restart().await;
    let mut after = Events::of(again).await;
    let _back = friend(&daemon, &room, "p2").await;
    let joined = after.until("room:participant-joined").await;
    assert!(joined.id.unwrap() > id, "ids rise over restarts");
}

#[tokio::test]
async fn a_terminal_watches_all_rooms_and_a_host_its_own() {
    let (daemon, client, room) = with_room().await;
    let mut all = Events::open(&client, "/events?role=tui").await;
    let mut by_code =
        Events::open(&client, &format!("/events?role=host&room={}", room.spoken)).await;
    let mut by_id = Events::open(&client, &format!("/events?role=host&room={}", room.id)).await;
    let other = open_room(&daemon).await;
    let _elsewhere = friend(&daemon, &other, "there").await;
    let _here = friend(&daemon, &room, "here").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let joined = all.until("room:participant-joined").await.json;
        ids.push(joined["participant"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids, ["there", "here"]);
    for host in [&mut by_code, &mut by_id] {
        assert_eq!(host.until("room:participant-joined").await.json["participant"]["id"], "here");
    }
    let cases = [
        ("/events?role=host", 400),
        ("/events?role=king", 400),
        ("/events?role=host&room=none", 404),
    ];
    for (path, status) in cases {
        let refused = client.get(path).await;
        assert_eq!(
            (refused.status, &refused.json()["type"]),
            (status, &json!("room:error")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn from_elsewhere_all_rooms_are_those_that_are_public() {
    let daemon = serve().start().await;
    let hidden = open_room(&daemon).await;
    let locked =
        make_room(&daemon.client(), &json!({"name": "l", "public": true, "password": "pw"})).await;
    let public = make_room(&daemon.client(), &json!({"name": "p", "public": true})).await;
    let mut all = Events::open(&elsewhere(&daemon), "/events?role=tui").await;
    let _one = friend(&daemon, &hidden, "hidden").await;
    let put = locked.put(&daemon, "locked").field("password", json!("pw"));
    let _two = crate::rooms_kit::tunnel(put).await;
    let _three = friend(&daemon, &public, "public").await;
    let joined = all.until("room:participant-joined").await.json;
    assert_eq!(joined["participant"]["id"], "public");
}

#[tokio::test]
async fn of_a_room_with_a_password_local_watchers_are_told_that_something_happens_not_what() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let room = make_room(&client, &json!({"name": "l", "password": "pw"})).await;
    let mut local = Events::open(&client, "/events?role=tui").await;
    let mut admin = Events::open(&daemon.admin(), "/events?role=tui").await;
    let put = room.put(&daemon, "p1").field("password", json!("pw"));
    let mut participant = crate::rooms_kit::tunnel(put.field("nickname", json!("Ann"))).await;
    let asking = client.clone().with_token("pw");
    let ask = json!({"type": "llm:request", "requestId": "r1", "targetId": "*", "prompt": "hi"});
    assert_eq!(asking.post_json(&room.path("/messages"), &ask).await.status, 202);
    let asked = participant.expect_request().await;
    participant.start(&asked, 200, "text/event-stream").await;
    participant.chunk(&asked, delta("swordfish") + crate::rooms_kit::FINISH).await;
    participant.end(&asked).await;
    let heard = |events: Vec<crate::rooms_kit::Frame>| -> String {
        events.iter().map(|frame| frame.text.as_str()).collect()
    };
    let all = heard(until_complete(&mut admin).await);
    assert!(all.contains("swordfish") && all.contains("Ann"), "{all}");
    let frames = until_complete(&mut local).await;
    let kinds: Vec<_> = frames.iter().map(|frame| frame.kind().to_owned()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("room:participant-joined"), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "llm:token"), "that it happens is told: {kinds:?}");
    let seen = heard(frames);
    assert!(!seen.contains("swordfish") && !seen.contains("Ann"), "{seen}");
    let register = json!({"type": "tui:register"});
    let registered = client.post_json("/messages", &register).await.json();
    assert_eq!(registered["participants"], json!([]), "nor who is there");
    let registered = daemon.admin().post_json("/messages", &register).await.json();
    assert_eq!(registered["participants"][0]["id"], "p1");
}

async fn until_complete(events: &mut Events) -> Vec<crate::rooms_kit::Frame> {
    let mut frames = Vec::new();
    while frames.last().is_none_or(|last: &crate::rooms_kit::Frame| last.kind() != "llm:complete") {
        frames.push(events.next().await.expect("the stream stands"));
    }
    frames
}

#[tokio::test]
async fn the_end_of_a_room_is_told_and_ends_its_streams() {
    let (daemon, client, room) = with_room().await;
    let named = Events::open(&client, &room.plane("/events")).await;
    let unnamed = Events::open(&client, &room.path("/events")).await;
    let mut all = Events::open(&client, "/events?role=tui").await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let host = client.with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    assert_eq!(participant.expect_close().await.map(|close| close.0), Some(1001));
    let last = named.rest().await.pop().unwrap();
    assert_eq!(
        (last.kind(), &last.json["data"]["reason"]),
        ("room.closed", &json!("its host closed it"))
    );
    let last = unnamed.rest().await.pop().unwrap();
    assert_eq!(
        (last.kind(), last.json["error"].as_str().unwrap().contains("closed")),
        ("room:error", true)
    );
    all.until("room:error").await;
}

/// With a stream open, and with a participant: neither holds up the stop.
#[tokio::test]
async fn a_stop_of_the_server_ends_streams_and_tunnels_in_order() {
    let mut daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let named = Events::open(&client, &room.plane("/events")).await;
    let all = Events::open(&client, "/events?role=tui").await;
    let mut participant = friend(&daemon, &room, "p1").await;
    participant.fall_silent();
    daemon.sigterm();
    assert_eq!(participant.expect_close().await.map(|close| close.0), Some(1001));
    drop(participant);
    named.rest().await;
    all.rest().await;
    assert_eq!(daemon.exit().await, Some(0));
}

/// A slot is shown as such while it is used.
#[tokio::test]
async fn a_participant_is_busy_while_it_answers() {
    let daemon = serve().start().await;
    let (client, room): (Client, Room) = (daemon.client(), open_room(&daemon).await);
    let mut participant = friend(&daemon, &room, "p1").await;
    let status = async || status(&daemon, &room).await;
    assert_eq!(status().await, "online");
    let asked = post(&client, room.chat(), ask_for("m", false));
    let ask = participant.expect_request().await;
    assert_eq!(status().await, "busy");
    participant.answer(&ask, 200, &completion("hi")).await;
    assert_eq!(asked.await.unwrap().status, 200);
    testkit::eventually("a free slot", testkit::DEADLINE, async || status().await == "online")
        .await;
    let seen = data(&client.get(&room.plane("/participants/p1")).await, 200);
    assert_eq!(seen["metrics"]["outputTokens"], 4, "{seen}");
}

async fn status(daemon: &Daemon, room: &Room) -> String {
    let seen = data(&daemon.client().get(&room.plane("/participants/p1")).await, 200);
    seen["status"].as_str().unwrap().to_owned()
}
