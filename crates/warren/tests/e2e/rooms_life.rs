//! Rooms and their participants over time: whose they are, how long they are there, and what outlives
//! the server.

use std::time::Duration;

use serde_json::json;
use testkit::{DEADLINE, eventually};

use crate::{
    common::{ask_for, post, serve},
    rooms_kit::{
        Events, data, friend, make_room, open_room, refused, say, send_from, tunnel, with_room,
    },
};

#[tokio::test]
async fn the_hosts_token_changes_kicks_and_closes_and_nothing_else_does() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let room = make_room(&client, &json!({"name": "old", "password": "pw"})).await;
    let put = room.put(&daemon, "p1").field("password", json!("pw"));
    let mut participant = tunnel(put).await;
    let (change, kick) = (room.plane(""), room.plane("/participants/p1"));
    for (method, path) in [("PATCH", &change), ("DELETE", &change)] {
        let request = client.request(method, path).body("{}");
        refused(&request.clone().send().await, 401, "UNAUTHORIZED");
        for wrong in ["Bearer pw", "Bearer wh_0000000000000000000000000000000000000000"] {
            let shown = request.clone().header("authorization", wrong);
            refused(&shown.send().await, 403, "UNAUTHORIZED");
        }
    }
    let host = client.with_header("x-warren-host-token", &room.host_token);
    let body = json!({"name": "new", "password": "pw2", "defaults": {"seed": 7}});
    let patch = host.request("PATCH", &change).body(body.to_string()).send().await;
    let summary = data(&patch, 200);
    assert_eq!((&summary["name"], &summary["defaults"]["seed"]), (&json!("new"), &json!(7)));
    let models = room.path("/v1/models");
    let with =
        async |password: &str| daemon.client().with_token(password).get(&models).await.status;
    assert_eq!((with("pw").await, with("pw2").await), (401, 200));
    let unknown = host.request("PATCH", &change).body("{\"nme\":\"x\"}").send().await;
    refused(&unknown, 400, "INVALID_REQUEST");
    let opened = host.request("PATCH", &change).body("{\"password\":\"\"}").send().await;
    assert_eq!(data(&opened, 200)["passwordProtected"], false);

    let stranger = daemon.client().request("DELETE", &kick).header("authorization", "Bearer pw2");
    assert_eq!(send_from(&daemon, [127, 0, 0, 2], stranger).await.0, 403);
    assert_eq!(host.request("DELETE", &kick).send().await.status, 200);
    assert_eq!(participant.expect_close().await.map(|close| close.0), Some(1008));
    assert_eq!(host.request("DELETE", &change).send().await.status, 200);
}

#[tokio::test]
async fn a_stranger_cannot_push_out_a_connected_participant_or_use_its_session() {
    let (daemon, client, room) = with_room().await;
    let path = room.plane("/participants/p1");
    let mut own = friend(&daemon, &room, "p1").await;
    let session = own.joined["sessionToken"].as_str().unwrap().to_owned();
    assert!(session.starts_with("wp_"));
    let body = json!({"nickname": "Eve", "model": "m", "endpoint": "http://h"}).to_string();
    let put = client.request("PUT", &path).body(body);
    let (status, refusal) = send_from(&daemon, [127, 0, 0, 2], put.clone()).await;
    assert_eq!((status, &refusal["error"]["code"]), (409, &json!("PARTICIPANT_CONFLICT")));
    let shown = put.clone().header("x-warren-session", &session);
    let (status, moved) = send_from(&daemon, [127, 0, 0, 2], shown).await;
    assert_eq!((status, &moved["data"]["sessionToken"]), (200, &json!(session)), "{moved}");
    // A participant that has shown its token once is recognised by nothing else.
    refused(&put.send().await, 409, "PARTICIPANT_CONFLICT");
    own.ping(1).await;
    own.expect_pong().await;
    refused(&client.request("DELETE", &path).send().await, 403, "UNAUTHORIZED");
    let leave = client.request("DELETE", &path).header("x-warren-session", &session);
    assert_eq!(leave.send().await.status, 200);
    assert_eq!(own.expect_close().await.map(|close| close.0), Some(1008));
}

#[tokio::test]
async fn a_tunnels_token_is_good_once_and_for_its_own_participant() {
    let (daemon, client, room) = with_room().await;
    let (put, other) = (room.put(&daemon, "p1"), room.put(&daemon, "p2"));
    let joined = data(&put.put().await, 201);
    data(&other.put().await, 201);
    let (url, token) = (&joined["tunnel"]["url"], joined["tunnel"]["token"].as_str().unwrap());
    let url = url.as_str().unwrap();
    let plain = client.get(&room.plane(&format!("/participants/p1/tunnel?token={token}"))).await;
    refused(&plain, 400, "INTERNAL_ERROR");
    let wrong = client.get(&room.plane("/participants/p1/tunnel?token=nonsense")).await;
    refused(&wrong, 401, "INVALID_REQUEST");
    assert_eq!(put.try_tunnel(&url.replace("/p1/", "/p2/"), token).await, 401, "another's");
    assert_eq!(put.try_tunnel(url, token).await, 101, "it was not spent");
    assert_eq!(put.try_tunnel(url, token).await, 401, "used");
    let mut first = friend(&daemon, &room, "p1").await;
    let mut second = friend(&daemon, &room, "p1").await;
    assert_eq!(first.expect_close().await.map(|close| close.0), Some(1000), "superseded");
    second.ping(2).await;
    second.expect_pong().await;
}

#[tokio::test]
async fn rooms_and_who_is_in_them_outlive_the_server() {
    let mut daemon = serve().start().await;
    let client = daemon.client();
    let defaults = json!({"temperature": 0.5, "instructions": "secret words"});
    let body = json!({"name": "kept", "password": "pw", "defaults": defaults, "public": true});
    let room = make_room(&client, &body).await;
    let put = room.put(&daemon, "p1").field("password", json!("pw"));
    let before = tunnel(put.clone()).await;
    let session = before.joined["sessionToken"].as_str().unwrap().to_owned();
    let summary = data(&client.get(&room.plane("")).await, 200);
    daemon.kill_and_restart().await;
    let after = data(&daemon.client().get(&format!("/v1/rooms/{}", room.spoken)).await, 200);
    for field in
        ["id", "code", "name", "hostId", "createdAt", "defaults", "passwordProtected", "public"]
    {
        assert_eq!(after[field], summary[field], "{field}");
    }
    assert_eq!(after["participantCount"], 1);
    let member = daemon.client().with_token("pw");
    let seen = data(&member.get(&room.plane("/participants/p1")).await, 200);
    assert_eq!((&seen["status"], &seen["nickname"]), (&json!("offline"), &json!("Ann")));
    assert_eq!(
        daemon.client().with_token("no").get(&room.plane("/participants")).await.status,
        401
    );
    let mut back = tunnel(put.field("sessionToken", json!(session))).await;
    assert_eq!(back.joined["sessionToken"], session, "it is known still");
    let asked = post(&member, room.chat(), ask_for("*", false));
    let ask = back.expect_request().await;
    assert_eq!(ask.json["body"]["messages"][0]["content"], "secret words");
    say(&mut back, &ask, "hi").await;
    assert_eq!(asked.await.unwrap().status, 200);
    let host = daemon.client().with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    daemon.stop_and_restart().await;
    refused(&daemon.client().get(&room.plane("")).await, 404, "ROOM_NOT_FOUND");
}

#[tokio::test]
async fn a_room_that_nobody_uses_ends_and_one_with_a_participant_does_not() {
    let daemon = serve().set("--room-idle-secs", "1").start().await;
    let (client, unused) = (daemon.client(), open_room(&daemon).await);
    let used = open_room(&daemon).await;
    let own = make_room(&client, &json!({"name": "long", "expiresSecs": 600})).await;
    let mut member = friend(&daemon, &used, "p1").await;
    let mut watching = Events::open(&client, &unused.plane("/events")).await;
    let codes = async || {
        let rooms = data(&client.get("/v1/rooms").await, 200);
        let codes = rooms.as_array().unwrap().iter().map(|room| room["code"].clone());
        codes.collect::<Vec<_>>()
    };
    let ended = async || codes().await == [json!(used.code), json!(own.code)];
    eventually("an unused room's end", DEADLINE + Duration::from_secs(5), ended).await;
    let closed = watching.until("room.closed").await;
    assert!(closed.json["data"]["reason"].as_str().unwrap().contains("nobody"), "{closed:?}");
    member.ping(1).await;
    member.expect_pong().await;
}
