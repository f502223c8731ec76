//! The spec's messages: each of a client's is answered with the server's own, and the rest comes on
//! the room's stream of events.

use serde_json::{Value, json};
use testkit::{Client, Gate, MockBackend, Reply};

use crate::{
    common::serve,
    rooms_kit::{Events, FINISH, Room, delta, fields, friend, message, open_room, tunnel},
};

const MESSAGES: &str = "/messages";

fn join(room: &Room, id: &str, endpoint: &str) -> Value {
    let participant = json!({
        "id": id, "nickname": "Ann", "model": "m", "endpoint": endpoint,
        "specs": {"gpu": "RTX", "vram": 24}, "config": {"temperature": 0.5},
    });
    json!({"type": "room:join", "code": room.spoken, "participant": participant})
}

fn request(id: &str, target: &str) -> Value {
    json!({
        "type": "llm:request", "requestId": id, "targetId": target, "prompt": "hi",
        "options": {"temperature": 0.1},
    })
}

async fn post(client: &Client, body: &Value) -> testkit::Response {
    client.post_json(MESSAGES, body).await
}

/// Each of the six, and of the eleven those that answer them.
#[tokio::test]
async fn every_message_of_a_client_is_answered_with_the_servers_own() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let made = post(&client, &json!({"type": "room:create", "name": "friends"})).await;
    let made = message(&made, 201, "room:created");
    assert_eq!(fields(&made), ["code", "hostToken", "roomId", "shortCode", "type"]);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let (code, id, short) = (text("code"), text("roomId"), text("shortCode"));
    let words: Vec<_> = code.split('-').collect();
    let is_spoken = matches!(words[..], [adjective, animal, number]
        if !adjective.is_empty() && !animal.is_empty() && number.parse::<u8>().is_ok_and(|n| n < 100));
    assert!(is_spoken && short.len() == 6, "{made}");

    let list =
        message(&post(&client, &json!({"type": "list:rooms"})).await, 200, "list:rooms-response");
    let room = &list["rooms"][0];
    let shown = [
        "code",
        "createdAt",
        "expiresAt",
        "hostId",
        "id",
        "name",
        "participantCount",
        "passwordProtected",
        "shortCode",
    ];
    assert_eq!(fields(room), shown, "{list}");
    assert_eq!((&room["code"], &room["participantCount"]), (&json!(code), &json!(0)));

    let backend = MockBackend::start(&["m"]).await;
    let room = Room {
        code: short.clone(),
        spoken: code.clone(),
        id: id.clone(),
        host_token: text("hostToken"),
    };
    let mut events = Events::open(&client, &room.path("/events")).await;
    let joined = post(&client, &join(&room, "p1", &backend.url())).await;
    let joined = message(&joined, 201, "room:joined");
    assert_eq!(fields(&joined), ["participants", "roomId", "sessionToken", "type"]);
    assert_eq!((&joined["roomId"], &joined["participants"][0]["id"]), (&json!(id), &json!("p1")));
    assert_eq!(joined["participants"].as_array().unwrap().len(), 1);
    let told = events.until("room:participant-joined").await;
    assert_eq!(told.json["participant"]["nickname"], "Ann");

    for register in
        [json!({"type": "tui:register"}), json!({"type": "tui:register", "roomCode": short})]
    {
        let registered = message(&post(&client, &register).await, 200, "tui:registered");
        assert_eq!(registered["rooms"][0]["code"], json!(code), "{registered}");
        assert!(registered["rooms"][0].get("participantCount").is_none(), "{registered}");
        assert_eq!(registered["participants"][0]["id"], "p1", "{registered}");
    }
    let register = json!({"type": "host:register", "roomId": id});
    let registered = message(&post(&client, &register).await, 200, "host:registered");
    assert_eq!(
        (&registered["room"]["id"], &registered["participants"][0]["id"]),
        (&json!(id), &json!("p1"))
    );

    let mut ask = request("r1", "*");
    ask["roomCode"] = json!(code);
    let accepted = post(&client, &ask).await;
    assert_eq!(accepted.json(), json!({"type": "llm:accepted", "requestId": "r1"}));
    assert_eq!(accepted.status, 202);
    let complete = events.until("llm:complete").await.json;
    assert_eq!(fields(&complete), ["metrics", "participantId", "requestId", "type"]);
    assert_eq!(
        fields(&complete["metrics"]),
        ["durationMs", "latencyFirstTokenMs", "tokens", "tokensPerSecond"]
    );
    assert_eq!((&complete["requestId"], &complete["participantId"]), (&json!("r1"), &json!("p1")));

    let leave = client.request("DELETE", &room.plane("/participants/p1")).send().await;
    assert_eq!(leave.status, 200);
    let left = events.until("room:participant-left").await;
    assert_eq!(left.json, json!({"type": "room:participant-left", "participantId": "p1"}));
    let error = message(
        &post(&client, &json!({"type": "host:register", "roomId": "none"})).await,
        404,
        "room:error",
    );
    assert!(error["error"].as_str().unwrap().starts_with("Room not found."), "{error}");
    assert_eq!(fields(&error), ["error", "type"]);
}

#[tokio::test]
async fn on_the_path_of_a_room_no_other_is_meant() {
    let daemon = serve().start().await;
    let (client, room, other) =
        (daemon.client(), open_room(&daemon).await, open_room(&daemon).await);
    let path = room.path(MESSAGES);
    let refused = [
        json!({"type": "room:create", "name": "another"}),
        json!({"type": "host:register", "roomId": other.id}),
        json!({"type": "tui:register", "roomCode": other.code}),
        join(&other, "p1", "http://127.0.0.1:1"),
    ];
    for body in refused {
        message(&client.post_json(&path, &body).await, 400, "room:error");
    }
    let list = client.post_json(&path, &json!({"type": "list:rooms"})).await;
    let list = message(&list, 200, "list:rooms-response");
    assert_eq!(
        (&list["rooms"][0]["id"], list["rooms"].as_array().unwrap().len()),
        (&json!(room.id), 1)
    );
    let tui = client.post_json(&path, &json!({"type": "tui:register"})).await;
    assert_eq!(message(&tui, 200, "tui:registered")["rooms"].as_array().unwrap().len(), 1);
    let host = client.post_json(&path, &json!({"type": "host:register", "roomId": room.id})).await;
    message(&host, 200, "host:registered");
}

/// In its own answer and on the room's stream: the same tokens, counted from 0 without a gap.
#[tokio::test]
async fn an_answer_is_told_token_by_token_in_both_ways() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut participant = friend(&daemon, &room, "p1").await;
    let mut events = Events::open(&client, &room.path("/events")).await;
    let asked = client.post(&room.path(MESSAGES), &request("r1", "model:m"));
    let asked = tokio::spawn(Events::of(asked));
    let ask = participant.expect_request().await;
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.1,
        "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!((&ask.json["body"], &ask.json["stream"]), (&body, &json!(true)));
    participant.start(&ask, 200, "text/event-stream").await;
    let words = ["One", " two", " thrée", " 4"];
    let text = words.map(delta).concat();
    // Cut anywhere, in the middle of a character too.
    for piece in text.as_bytes().chunks(7) {
        participant.chunk(&ask, piece).await;
    }
    let mut own = asked.await.unwrap();
    for (seq, word) in words.iter().enumerate() {
        let token = json!({
            "type": "llm:token", "requestId": "r1", "participantId": "p1", "token": word, "seq": seq,
        });
        let (one, other) = (own.next().await.unwrap(), events.until("llm:token").await);
        assert_eq!((&one.json, &other.json), (&token, &token));
        assert_eq!((one.name, other.name, other.id.is_some()), (None, None, true));
    }
    participant.chunk(&ask, FINISH).await;
    participant.end(&ask).await;
    let last = own.rest().await;
    assert_eq!((last.len(), last[0].kind()), (1, "llm:complete"), "{last:?}");
    assert_eq!(last[0].json["metrics"]["tokens"], 4);
    assert_eq!(events.next().await.unwrap().json, last[0].json);
}

#[tokio::test]
async fn an_error_of_a_request_is_told_under_its_id() {
    let daemon = serve().set("--max-queue-len", "2").start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let path = room.path(MESSAGES);
    message(&post(&client, &request("r0", "*")).await, 400, "room:error");
    let mut events = Events::open(&client, &room.path("/events")).await;
    let nobody = client.post_json(&path, &request("r1", "model:none")).await;
    let nobody = message(&nobody, 503, "llm:error");
    assert_eq!(nobody["requestId"], "r1");
    assert_eq!(events.until("llm:error").await.json, nobody);

    let mut participant = friend(&daemon, &room, "p1").await;
    let accepted = async |id: &str| client.post_json(&path, &request(id, "*")).await;
    assert_eq!(accepted("r2").await.status, 202);
    let ask = participant.expect_request().await;
    assert_eq!(message(&accepted("r2").await, 409, "llm:error")["requestId"], "r2");
    assert_eq!(accepted("r3").await.status, 202, "it waits");
    let full = accepted("r4").await;
    assert_eq!(message(&full, 429, "llm:error")["error"], "queue full");
    assert!(full.header("retry-after").is_some());

    participant.start(&ask, 200, "text/event-stream").await;
    participant.chunk(&ask, delta("a")).await;
    participant.fail(&ask, "out of memory").await;
    let ask = participant.expect_request().await;
    participant.answer(&ask, 500, &json!({"error": {"message": "broke"}})).await;
    let mut failed = Vec::new();
    while failed.len() < 3 {
        failed.push(events.until("llm:error").await.json);
    }
    let of = |id: &str| failed.iter().filter(|error| error["requestId"] == id).collect::<Vec<_>>();
    assert!(of("r4")[0]["error"] == "queue full", "{failed:?}");
    let r2 = of("r2").into_iter().find(|error| error["participantId"] == "p1").expect("r2's end");
    assert!(r2["error"].as_str().unwrap().contains("out of memory"), "{r2}");
    assert!(of("r3")[0]["error"].as_str().unwrap().contains("broke"), "{failed:?}");
}

#[tokio::test]
async fn leaving_an_answer_cancels_it_and_the_room_is_told() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut events = Events::open(&client, &room.path("/events")).await;
    let backend = MockBackend::start(&["m"]).await;
    let gate = Gate::closed();
    backend.then(Reply::stream([delta("a"), delta("b")], &gate));
    message(&post(&client, &join(&room, "p1", &backend.url())).await, 201, "room:joined");
    events.until("room:participant-joined").await;
    let asked = client.post(&room.path(MESSAGES), &request("r1", "*"));
    let asked = tokio::spawn(Events::of(asked));
    backend.request().await;
    gate.open(1);
    let mut own = asked.await.unwrap();
    own.until("llm:token").await;
    drop(own);
    backend.aborted(1).await;
    let error = events.until("llm:error").await.json;
    assert_eq!((&error["requestId"], &error["participantId"]), (&json!("r1"), &json!("p1")));
}

#[tokio::test]
async fn a_room_with_a_password_takes_messages_with_it_only() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let create = json!({"type": "room:create", "name": "locked", "password": "pw"});
    let made = message(&post(&client, &create).await, 201, "room:created");
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let room = Room {
        code: text("shortCode"),
        spoken: text("code"),
        id: text("roomId"),
        host_token: String::new(),
    };
    let backend = MockBackend::start(&["m"]).await;
    let mut asking = request("r1", "*");
    asking["roomCode"] = json!(room.code);
    let bodies = [
        join(&room, "p1", &backend.url()),
        json!({"type": "host:register", "roomId": room.id}),
        json!({"type": "tui:register", "roomCode": room.code}),
        asking,
    ];
    for body in &bodies {
        let error = message(&post(&client, body).await, 401, "room:error");
        assert!(error["error"].as_str().unwrap().contains("password"), "{error}");
    }
    let mut with = bodies[0].clone();
    with["password"] = json!("pw");
    message(&post(&client, &with).await, 201, "room:joined");
    let keyed = client.with_token("pw");
    for (body, status) in bodies[1..].iter().zip([200, 200, 202]) {
        assert_eq!(post(&keyed, body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn an_endpoint_that_comes_back_is_told_as_joined_again_and_its_session_is_kept() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let backend = MockBackend::start(&["m"]).await;
    let joined = post(&client, &join(&room, "p1", &backend.url())).await;
    let token = joined.json()["sessionToken"].as_str().unwrap().to_owned();
    let again = client.post(MESSAGES, &join(&room, "p1", &backend.url()));
    let again = again.header("x-warren-session", &token).send().await;
    assert_eq!(message(&again, 200, "room:joined")["sessionToken"], json!(token));
    // A tunnel may take its place.
    let put = room.put(&daemon, "p1").field("sessionToken", json!(token));
    let participant = tunnel(put).await;
    assert_eq!(participant.joined["sessionToken"], json!(token));
}
