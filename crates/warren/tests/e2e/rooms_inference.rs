//! Inference in a room: the participant that a request finds, its request, and its answer.

use serde_json::json;
use testkit::{FakeParticipant, TunnelAsk};

use crate::{
    common::{ask_for, assert_fields, post, serve},
    rooms_kit::{
        FINISH, assert_text, chat, data, delta, fields, friend, make_room, open_room, say, tunnel,
        with_room,
    },
};

const NOBODY: &str = r#"{"error":"No available participant for the requested model"}"#;

#[tokio::test]
async fn models_are_the_participants_that_are_connected_and_then_their_models_by_name() {
    let (daemon, client, room) = with_room().await;
    let _one = friend(&daemon, &room, "p1").await;
    room.put(&daemon, "absent").put().await;
    let list = client.get(&room.path("/v1/models")).await.json();
    assert_eq!((&list["object"], list["data"].as_array().unwrap().len()), (&json!("list"), 2));
    let by_name = &list["data"][1];
    assert_fields(by_name, &json!({"id": "m", "object": "model", "owned_by": "Ann"}));
    assert_eq!(by_name["gambi"], list["data"][0]["gambi"]);
    let model = &list["data"][0];
    assert_eq!(fields(model), ["created", "gambi", "id", "object", "owned_by"]);
    assert_fields(model, &json!({"id": "p1", "object": "model", "owned_by": "Ann"}));
    let (joined, gambi) =
        (data(&client.get(&room.plane("/participants/p1")).await, 200), &model["gambi"]);
    assert_eq!(model["created"].as_u64().unwrap(), joined["joinedAt"].as_u64().unwrap() / 1000);
    assert_eq!(fields(gambi), ["capabilities", "connection", "endpoint", "model", "nickname"]);
    assert_eq!((&gambi["model"], &gambi["connection"]["connected"]), (&json!("m"), &json!(true)));
}

#[tokio::test]
async fn a_selector_finds_anybody_a_model_or_a_participant() {
    let (daemon, client, room) = with_room().await;
    let mut one = friend(&daemon, &room, "p1").await;
    let mut other = tunnel(room.put(&daemon, "p2").model("llama3:8b")).await;
    room.put(&daemon, "absent").put().await;
    for (selector, is_one) in [
        ("p1", true),
        ("model:m", true),
        ("m", true),
        ("p2", false),
        ("model:llama3:8b", false),
        ("llama3:8b", false),
    ] {
        let asked = chat(&client, &room, selector);
        let (holder, model) = if is_one { (&mut one, "m") } else { (&mut other, "llama3:8b") };
        let ask = holder.expect_request().await;
        assert_eq!(ask.json["body"]["model"], model, "{selector}");
        say(holder, &ask, "hi").await;
        assert_eq!(asked.await.unwrap().status, 200, "{selector}");
    }
    for selector in ["*", "any"] {
        let asked = chat(&client, &room, selector);
        let (holder, ask, model) = tokio::select! {
            ask = one.expect_request() => (&mut one, ask, "m"),
            ask = other.expect_request() => (&mut other, ask, "llama3:8b"),
        };
        assert_eq!(ask.json["body"]["model"], model, "{selector}");
        say(holder, &ask, "hi").await;
        assert_eq!(asked.await.unwrap().status, 200, "{selector}");
    }
    for nobody in ["model:none", "none", "model:p1", "room:any", "room:participant/p1"] {
        assert_text(&chat(&client, &room, nobody).await.unwrap(), 404, NOBODY);
    }
    let absent = chat(&client, &room, "absent").await.unwrap();
    assert_text(&absent, 503, r#"{"error":"Participant tunnel is not connected"}"#);
    let empty = open_room(&daemon).await;
    let told = chat(&client, &empty, "*").await.unwrap();
    let words = told.json()["error"].as_str().unwrap().to_owned();
    assert!(words.starts_with("nobody lends a model in this room: `warren room join"), "{words}");
    assert_eq!((told.status, told.header("x-should-retry")), (503, Some("false")));
    let unknown = client.post_json("/rooms/QQQQQ1/v1/chat/completions", &ask_for("*", false)).await;
    assert_text(&unknown, 404, r#"{"error":"Room not found"}"#);
    let plain = client.post_json("/v1/chat/completions", &ask_for("m", false)).await;
    assert_eq!(plain.status, 404, "a room's participants are the room's alone");
}

/// Field for field as the stock server's.
#[tokio::test]
async fn a_participant_gets_the_stock_frame_and_its_answer_passes_with_no_header_of_its_own() {
    let (daemon, client, room) = with_room().await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let body = json!({"model": "*", "messages": [{"role": "user", "content": "hi"}], "x_unknown": [1, 2.50]});
    let asked = post(&client.with_token("secret"), room.chat(), body);
    let ask = participant.expect_request().await;
    let sent = json!({
        "type": "tunnel.request", "requestId": ask.id, "operation": "chat.completions.create",
        "method": "POST", "path": "/v1/chat/completions",
        "headers": {"Content-Type": "application/json", "x-warren-via": ask.json["headers"]["x-warren-via"]},
        "body": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "x_unknown": [1, 2.5]},
        "stream": false,
    });
    assert_eq!(ask.json, sent);
    assert!(!ask.text.contains("secret"), "{}", ask.text);
    let headers = json!({
        "content-type": "application/json", "set-cookie": "a=b", "access-control-allow-origin": "http://evil",
        "x-anything": "1", "content-length": "3", "content-encoding": "gzip", "location": "http://evil",
    });
    let start = json!({"type": "tunnel.response.start", "requestId": ask.id, "status": 418, "headers": headers});
    participant.say(&start).await;
    participant.chunk(&ask, r#"{"odd": 1}"#).await;
    participant.end(&ask).await;
    let answer = asked.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (418, r#"{"odd": 1}"#));
    for header in ["set-cookie", "x-anything", "content-encoding", "location"] {
        assert_eq!(answer.header(header), None, "{header}");
    }
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(answer.header("x-request-id").is_some());
}

#[tokio::test]
async fn a_stream_passes_as_it_was_written() {
    let (daemon, client, room) = with_room().await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let asked = tokio::spawn(client.post(&room.chat(), &ask_for("*", true)).start());
    let ask = participant.expect_request().await;
    assert_eq!((&ask.json["stream"], &ask.json["body"]["stream"]), (&json!(true), &json!(true)));
    participant.start(&ask, 200, "text/event-stream").await;
    let mut answer = asked.await.unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    for piece in [delta("a"), ": a comment\n\n".to_owned(), delta("b")] {
        participant.chunk(&ask, &piece).await;
        answer.expect(&piece).await;
    }
    // The usage that may follow is taken out together with this.
    participant.chunk(&ask, FINISH).await;
    participant.end(&ask).await;
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(answer.finish().await.text(), end, "without usage that nobody asked for");
}

#[tokio::test]
async fn defaults_are_the_rooms_under_the_participants_under_the_requests() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let of_room = json!({"temperature": 0.1, "top_p": 0.1, "max_tokens": 11, "stop": ["room"], "instructions": "room"});
    let room = make_room(&client, &json!({"name": "d", "defaults": of_room})).await;
    let config = json!({"top_p": 0.2, "max_tokens": 22, "instructions": "own"});
    let mut participant = tunnel(room.put(&daemon, "p1").field("config", config)).await;
    let mut bodies = Vec::new();
    let requests = [
        (
            "/v1/chat/completions",
            json!({"model": "m", "max_tokens": 33, "messages": [{"role": "user", "content": "hi"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "*", "messages": [{"role": "system", "content": "mine"}]}),
        ),
        ("/v1/responses", json!({"model": "m", "input": "hi"})),
    ];
    for (path, body) in requests {
        let asked = post(&client, room.path(path), body);
        let ask = participant.expect_request().await;
        bodies.push(ask.json["body"].clone());
        say(&mut participant, &ask, "hi").await;
        assert_eq!(asked.await.unwrap().status, 200);
    }
    assert_eq!(
        bodies[0],
        json!({
            "model": "m", "max_tokens": 33, "temperature": 0.1, "top_p": 0.2, "stop": ["room"],
            "messages": [{"role": "system", "content": "own"}, {"role": "user", "content": "hi"}],
        })
    );
    assert_eq!(bodies[1]["messages"], json!([{"role": "system", "content": "mine"}]));
    assert_eq!(bodies[1]["max_tokens"], 22);
    assert_eq!(
        bodies[2],
        json!({
            "model": "m", "input": "hi", "temperature": 0.1, "top_p": 0.2, "max_output_tokens": 22,
            "stop_sequences": ["room"], "instructions": "own",
        })
    );
}

#[tokio::test]
async fn a_response_is_asked_for_again_of_the_participant_that_made_it() {
    let (daemon, client, room) = with_room().await;
    let mut maker = friend(&daemon, &room, "p1").await;
    let asked = post(&client, room.path("/v1/responses"), json!({"model": "p1", "input": "hi"}));
    let ask = maker.expect_request().await;
    assert_eq!(
        (&ask.json["operation"], &ask.json["path"]),
        (&json!("responses.create"), &json!("/v1/responses"))
    );
    maker.answer(&ask, 200, &json!({"id": "resp_1", "object": "response", "output": []})).await;
    assert_eq!(asked.await.unwrap().json()["id"], "resp_1");
    let _other = friend(&daemon, &room, "p2").await;
    let path = room.path("/v1/responses/resp_1");
    let calls = [
        ("GET", "", "responses.get"),
        ("GET", "/input_items", "responses.input_items"),
        ("POST", "/cancel", "responses.cancel"),
        ("DELETE", "", "responses.delete"),
    ];
    for (method, rest, operation) in calls {
        let request = client.request(method, &format!("{path}{rest}"));
        let asked = tokio::spawn(request.send());
        let ask = maker.expect_request().await;
        assert_eq!(
            (&ask.json["method"], &ask.json["operation"]),
            (&json!(method), &json!(operation))
        );
        assert_eq!(ask.json["path"], format!("/v1/responses/resp_1{rest}"));
        maker.answer(&ask, 200, &json!({"id": "resp_1", "told": operation})).await;
        assert_eq!(asked.await.unwrap().json()["told"], operation);
    }
    assert_text(&client.get(&path).await, 404, r#"{"error":"Response not found"}"#);
    let another = open_room(&daemon).await;
    assert_text(
        &client.get(&another.path("/v1/responses/resp_1")).await,
        404,
        r#"{"error":"Response not found"}"#,
    );
}

#[tokio::test]
async fn a_response_whose_participant_is_gone_is_out_of_reach_and_a_translated_one_is_kept_nowhere()
{
    let (daemon, client, room) = with_room().await;
    let capabilities = json!({"openResponses": "unsupported", "chatCompletions": "supported"});
    let mut chats = tunnel(room.put(&daemon, "chats").field("capabilities", capabilities)).await;
    let asked = post(&client, room.path("/v1/responses"), json!({"model": "chats", "input": "hi"}));
    let ask = chats.expect_request().await;
    assert_eq!(ask.json["operation"], "chat.completions.create");
    say(&mut chats, &ask, "hi").await;
    let translated = asked.await.unwrap().json();
    assert_eq!(translated["output_text"], "hi", "{translated}");
    let id = translated["id"].as_str().unwrap().to_owned();
    let again = client.get(&room.path(&format!("/v1/responses/{id}"))).await;
    assert_eq!((again.status, fields(&again.json())), (501, vec!["error"]), "{}", again.text());
    assert!(again.text().contains("chat/completions fallback"), "{}", again.text());

    let mut native = friend(&daemon, &room, "native").await;
    let asked = post(
        &client,
        room.path("/v1/responses"),
        json!({"model": "native", "input": "hi", "stream": true}),
    );
    let ask = native.expect_request().await;
    native.start(&ask, 200, "text/event-stream").await;
    let created = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_2\"}}\n\n";
    native.chunk(&ask, created).await;
    native.chunk(&ask, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_2\"}}\n\n").await;
    native.end(&ask).await;
    assert_eq!(asked.await.unwrap().status, 200);
    native.leave().await;
    let gone = client.get(&room.path("/v1/responses/resp_2")).await;
    assert_text(&gone, 503, r#"{"error":"Participant tunnel is not connected"}"#);
}

/// A participant that has Chat Completions and nothing else: what it answers to anything else is a
/// 404 that is about the path.
async fn serve_chat_alone(participant: &mut FakeParticipant) -> TunnelAsk {
    loop {
        let ask = participant.expect_request().await;
        if ask.json["path"] == "/v1/chat/completions" {
            return ask;
        }
        let body =
            json!({"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}});
        participant.answer(&ask, 404, &body).await;
    }
}

#[tokio::test]
async fn every_api_is_served_by_a_participant_that_has_chat_alone() {
    let (daemon, client, room) = with_room().await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let words = json!([{"role": "user", "content": "hi"}]);
    let apis = [
        (
            "/v1/chat/completions",
            json!({"model": "p1", "messages": words}),
            "/choices/0/message/content",
        ),
        ("/v1/responses", json!({"model": "*", "input": "hi"}), "/output/0/content/0/text"),
        (
            "/v1/messages",
            json!({"model": "model:m", "max_tokens": 9, "messages": words}),
            "/content/0/text",
        ),
        ("/api/chat", json!({"model": "m", "max_new_tokens": 9, "messages": words}), ""),
        (
            "/api/generate",
            json!({"model": "m:latest", "prompt": "hi", "stream": false}),
            "/response",
        ),
    ];
    for (path, body, place) in apis {
        let asked = post(&client, room.path(path), body);
        let ask = serve_chat_alone(&mut participant).await;
        assert_eq!(ask.json["body"]["model"], "m", "{path}");
        if path == "/api/chat" {
            participant.start(&ask, 200, "text/event-stream").await;
            participant.chunk(&ask, delta("hello") + FINISH).await;
            participant.end(&ask).await;
        } else {
            say(&mut participant, &ask, "hello").await;
        }
        let answer = asked.await.unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        match place {
            "" => assert_eq!(answer.text(), "{\"o\":\"hello\"}\n{\"done\":true}\n"),
            place => assert_eq!(
                answer.json().pointer(place),
                Some(&json!("hello")),
                "{path}: {}",
                answer.text()
            ),
        }
    }
    let count = json!({"model": "m", "messages": words});
    assert_eq!(client.post_json(&room.path("/v1/messages/count_tokens"), &count).await.status, 200);
    for (path, body) in [
        ("/v1/embeddings", json!({"model": "m", "input": "hi"})),
        ("/v1/completions", json!({"model": "m", "prompt": "hi"})),
    ] {
        let asked = post(&client, room.path(path), body);
        let ask = participant.expect_request().await;
        assert_eq!(ask.json["path"], path, "it is asked whether it has it");
        participant.answer(&ask, 200, &json!({"object": "list", "data": [], "choices": []})).await;
        assert_eq!(asked.await.unwrap().status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_parameter_that_cannot_be_translated_is_a_400_that_names_it() {
    let (daemon, client, room) = with_room().await;
    let capabilities = json!({"openResponses": "unsupported", "chatCompletions": "supported"});
    let _participant = tunnel(room.put(&daemon, "p1").field("capabilities", capabilities)).await;
    for parameter in ["previous_response_id", "background", "conversation"] {
        let value = if parameter == "background" { json!(true) } else { json!("resp_1") };
        let mut body = json!({"model": "m", "input": "hi"});
        body[parameter] = value;
        let refused = client.post_json(&room.path("/v1/responses"), &body).await;
        assert_eq!((refused.status, fields(&refused.json())), (400, vec!["error"]), "{parameter}");
        assert!(
            refused.json()["error"].as_str().unwrap().contains(parameter),
            "{}",
            refused.text()
        );
    }
}
