//! One room, whichever server is asked.

use serde_json::json;
use testkit::{DEADLINE, MockBackend, Room, eventually};

use crate::kit::{ask, asks, epoch_of, has, nats, servers, tunnel, watch, watch_after, worker};

#[tokio::test]
async fn a_room_is_made_at_one_server_joined_at_another_and_asked_at_a_third() {
    let [a, b, c] = servers(&nats("use"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let mut watches = [watch(&room, &a).await, watch(&room, &b).await, watch(&room, &c).await];
    let mut participant = tunnel(&room, &b, "p1").await;
    has(&room, &c, "p1").await;

    let asking = {
        let (client, path) = (c.client(), room.chat());
        tokio::spawn(async move { client.post_json(&path, &ask("p1", false)).await })
    };
    let asked = participant.expect_request().await;
    participant.answer(&asked, 200, &json!({"answer": 42})).await;
    let answer = asking.await.unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!({"answer": 42})));
    assert!(answer.header("x-request-id").is_some());

    let path = room.chat();
    let streaming = c.client().post(&path, &ask("*", true)).open().await;
    let asked = participant.expect_request().await;
    participant.start(&asked, 200, "text/event-stream").await;
    participant.chunk(&asked, "data: {\"one\":1}\n\n").await;
    let mut streaming = streaming.answer().await;
    streaming.expect("data: {\"one\":1}\n\n").await;
    participant.chunk(&asked, "data: [DONE]\n\n").await;
    participant.end(&asked).await;
    streaming.expect("data: [DONE]\n\n").await;

    let mut seen = Vec::new();
    for watch in &mut watches {
        assert_eq!(watch.next().await.unwrap().name.as_deref(), Some("connected"));
        let mut events = watch.until("llm.complete").await;
        events.extend(watch.until("llm.complete").await);
        seen.push(events);
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:#?}");
    assert!(seen[0].iter().all(|event| epoch_of(event) == 1));
    assert!(seen[0].is_sorted_by_key(|event| event.id));

    let middle = seen[0][2].id;
    let mut resumed = watch_after(&room, &c, middle).await.unwrap();
    assert_eq!(resumed.next().await.unwrap().name.as_deref(), Some("connected"));
    for event in &seen[0][3..] {
        assert_eq!(resumed.next().await.as_ref(), Some(event), "nothing twice, nothing lost");
    }
    participant.leave().await;
    assert_eq!(resumed.next().await.unwrap().name.as_deref(), Some("participant.left"));
}

#[tokio::test]
async fn an_endpoint_a_worker_and_messages_work_at_any_server() {
    let [a, b, c] = servers(&nats("lend"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends", "public": true})).await;
    let (called, lent) = (MockBackend::start(&["m1"]).await, MockBackend::start(&["m2"]).await);
    let join = json!({"type": "room:join", "code": room.code, "participant": {
        "id": "called", "nickname": "Bob", "model": "m1", "endpoint": called.url(),
        "specs": {}, "config": {},
    }});
    let joined = b.client().post_json("/messages", &join).await;
    assert_eq!((joined.status, &joined.json()["type"]), (201, &json!("room:joined")));
    let _lender = worker(&room, &c, "lent", &lent);
    for id in ["called", "lent"] {
        has(&room, &a, id).await;
    }
    for (daemon, model) in [(&c, "model:m1"), (&b, "model:m2"), (&a, "model:m2")] {
        let answer = asks(&room, &daemon.client(), model).await;
        assert_eq!(answer.status, 200, "{model}: {}", answer.text());
    }
    let found = b
        .client()
        .post_json("/messages", &json!({"type": "host:register", "roomId": room.id}))
        .await;
    assert_eq!(found.json()["participants"].as_array().unwrap().len(), 2, "{}", found.text());
    for daemon in [&a, &b, &c] {
        let listed = daemon.client().get("/v1/rooms").await.json();
        assert_eq!(listed["data"][0]["participantCount"], 2, "{listed}");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_at_another_server_stops_the_model() {
    let [a, b] = servers(&nats("hang"), ["a", "b"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let backend = MockBackend::start(&["m"]).await;
    let _lender = worker(&room, &b, "lent", &backend);
    has(&room, &b, "lent").await;
    backend.answer_with(|_| testkit::Reply::hang());
    let path = room.chat();
    let asking = b.client().post(&path, &ask("*", true)).open().await;
    backend.request().await;
    asking.reset();
    backend.aborted(1).await;
}

#[tokio::test]
async fn wrong_passwords_are_counted_at_the_home_and_wrong_codes_where_they_are_tried() {
    let [a, b, c] = servers(&nats("guess"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends", "password": "swordfish"})).await;
    let path = room.plane("/participants");
    let tried = async |daemon: &testkit::Daemon, password: &str| {
        daemon.client().with_token(password).get(&path).await
    };
    assert_eq!(tried(&b, "swordfish").await.status, 200);
    for number in 0..10 {
        let daemon = if number % 2 == 0 { &b } else { &c };
        let refused = tried(daemon, "wrong").await;
        assert_eq!(refused.status, 401, "{}", refused.text());
    }
    let other = Room::make(&a.client(), &json!({"name": "others", "password": "trout"})).await;
    let refused = b.client().with_token("trout").get(&other.plane("/participants")).await;
    assert_eq!(refused.status, 429, "both came from one address");
    assert!(refused.header("retry-after").is_some());
    for _ in 0..10 {
        let unknown = c.client().get("/v1/rooms/nobody-knows-11").await;
        assert_eq!(unknown.status, 404, "{}", unknown.text());
    }
    assert_eq!(c.client().get("/v1/rooms/nobody-knows-11").await.status, 429);
}

#[tokio::test]
async fn a_room_that_is_closed_at_one_server_is_closed_at_all() {
    let [a, b, c] = servers(&nats("close"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let mut participant = tunnel(&room, &c, "p1").await;
    let mut watches = [watch(&room, &a).await, watch(&room, &b).await];
    assert_eq!(room.close(&b.client()).await.status, 200);
    for watch in &mut watches {
        watch.until("room.closed").await;
        assert_eq!(watch.next().await, None);
    }
    participant.expect_close().await;
    for daemon in [&a, &b, &c] {
        let gone = async || daemon.client().get(&room.plane("")).await.status == 404;
        eventually("the room's end", DEADLINE, gone).await;
    }
}
