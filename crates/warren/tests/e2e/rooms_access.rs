//! Rights in rooms: passwords, keys, requests from elsewhere, and pages.

use serde_json::{Value, json};
use testkit::{Client, Daemon};

use crate::{
    cli::make_key,
    common::{CHAT, ask_for, post, serve},
    rooms_kit::{
        Events, Room, answering, data, elsewhere, make_room, message, open_room, refused, tunnel,
        with_room,
    },
};

async fn locked(daemon: &Daemon) -> Room {
    make_room(&daemon.client(), &json!({"name": "locked", "password": "pässword"})).await
}

/// The password as it stands in a query.
const IN_QUERY: &str = "password=p%C3%A4ssword";

#[tokio::test]
async fn a_password_guards_use_and_is_shown_in_three_ways() {
    let daemon = serve().start().await;
    let room =
        make_room(&daemon.client(), &json!({"name": "locked", "password": "pass word"})).await;
    let put = room.put(&daemon, "p1").field("password", json!("pass word"));
    let mut participant = tunnel(put).await;
    let client = daemon.client();
    let ways = [
        (client.with_token("pass word"), ""),
        (daemon.client().with_header("x-api-key", "pass word"), ""),
        (daemon.client(), "?password=pass%20word"),
        (daemon.client(), "?password=pass+word"),
    ];
    for (client, query) in &ways {
        for path in [room.plane("/participants"), room.path("/v1/models")] {
            assert_eq!(client.get(&format!("{path}{query}")).await.status, 200, "{path}{query}");
        }
        for path in [room.plane("/events"), room.path("/events")] {
            Events::open(client, &format!("{path}{query}")).await;
        }
        let (chat, asking) = (format!("{}{query}", room.chat()), client.clone());
        let asked =
            tokio::spawn(async move { asking.post_json(&chat, &ask_for("*", false)).await });
        let ask = participant.expect_request().await;
        assert_eq!(ask.json["path"], "/v1/chat/completions", "it is not passed on");
        assert!(!ask.text.contains("pass"), "{}", ask.text);
        participant.answer(&ask, 200, &json!({})).await;
        assert_eq!(asked.await.unwrap().status, 200, "{query}");
    }
}

#[tokio::test]
async fn without_the_password_only_the_summary_is_shown() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), locked(&daemon).await);
    assert_eq!(data(&client.get(&room.plane("")).await, 200)["passwordProtected"], true);
    let refusals = [
        ("GET", room.plane("/participants")),
        ("GET", room.plane("/participants/p1")),
        ("GET", room.plane("/events")),
    ];
    for (method, path) in refusals {
        let error = refused(&client.request(method, &path).send().await, 401, "INVALID_PASSWORD");
        assert_eq!(error["message"], "Invalid password.", "{path}");
    }
    for path in ["/v1/models", "/events", "/v1/responses/resp_1"] {
        let refused = client.get(&room.path(path)).await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.json()["error"].is_string(), "{path}: {}", refused.text());
    }
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"] {
        let refused = client.post_json(&room.path(path), &ask_for("*", false)).await;
        assert_eq!((refused.status, refused.json()["error"].is_string()), (401, true), "{path}");
    }
    for path in [room.plane("/participants"), room.path("/v1/models")] {
        assert_eq!(client.get(&format!("{path}?{IN_QUERY}")).await.status, 200, "{path}");
    }
    assert_eq!(room.put(&daemon, "p1").put().await.status, 401);
    let put = room.put(&daemon, "p1").field("password", json!("pässword"));
    assert_eq!(put.put().await.status, 201);
    let beat = client.request("POST", &room.plane("/participants/p1/heartbeat"));
    assert_eq!(beat.send().await.status, 200, "stock participants send no password with it");
}

/// Ten within a minute, for each address; rooms and passwords that it knows go on.
#[tokio::test]
async fn guessing_passwords_has_to_wait_and_nobody_else_does() {
    let daemon = serve().start().await;
    let (room, path) = (locked(&daemon).await, "/v1/models");
    let guess = |n: usize| daemon.client().with_token(&format!("guess-{n}"));
    for n in 0..10 {
        assert_eq!(guess(n).get(&room.path(path)).await.status, 401, "{n}");
    }
    let waits = guess(10).get(&room.path(path)).await;
    assert_eq!(waits.status, 429, "{}", waits.text());
    let after: u64 = waits.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    let right = daemon.client().request("GET", &format!("{}?{IN_QUERY}", room.path(path)));
    assert_eq!(right.clone().send().await.status, 429, "the right one would be a guess, too");
    refused(&daemon.client().get("/v1/rooms/QQQQQ1").await, 429, "TOO_MANY");
    let join = json!({"type": "host:register", "roomId": "QQQQQ1"});
    message(&daemon.client().post_json("/messages", &join).await, 429, "room:error");
    let elsewhere = right.header("x-forwarded-for", "203.0.113.7").send().await;
    assert_eq!(elsewhere.status, 200, "by way of a proxy");
}

#[tokio::test]
async fn guessing_codes_has_to_wait_and_known_rooms_go_on() {
    let (daemon, client, room) = with_room().await;
    answering(&daemon, &room, "p1").await;
    let paths = ["/v1/rooms/QQQQQ", "/rooms/bold-lynx-", "/v1/rooms/quiet-owl-"];
    for n in 0..10 {
        let path = format!("{}{n}{}", paths[n % 3], if n % 3 == 1 { "0/v1/models" } else { "" });
        assert_eq!(client.get(&path).await.status, 404, "{path}");
    }
    refused(&client.get("/v1/rooms/QQQQQ1").await, 429, "TOO_MANY");
    let chat = client.post_json(&room.chat(), &ask_for("*", false)).await;
    assert_eq!(chat.status, 200, "{}", chat.text());
    assert_eq!(client.get(&room.plane("")).await.status, 200);
}

#[tokio::test]
async fn from_elsewhere_a_room_is_made_with_a_key_of_scope_rooms_or_where_it_is_open() {
    let daemon = serve().start().await;
    let body = json!({"name": "a"});
    let create = json!({"type": "room:create", "name": "a"});
    let far = elsewhere(&daemon);
    refused(&far.post_json("/v1/rooms", &body).await, 401, "UNAUTHORIZED");
    message(&far.post_json("/messages", &create).await, 401, "room:error");
    let (_, inference) = make_key(&daemon, json!({})).await;
    refused(&far.with_token(&inference).post_json("/v1/rooms", &body).await, 403, "UNAUTHORIZED");
    let (_, rooms) = make_key(&daemon, json!({"scopes": ["rooms"]})).await;
    let keyed = elsewhere(&daemon).with_token(&rooms);
    let own = make_room(&keyed, &body).await;
    message(&keyed.post_json("/messages", &create).await, 201, "room:created");
    let page = daemon.client().post("/v1/rooms", &body).header("origin", "https://evil.example");
    refused(&page.send().await, 403, "UNAUTHORIZED");

    open_room(&daemon).await;
    let public = make_room(&daemon.client(), &json!({"name": "p", "public": true})).await;
    let codes = async |client: &Client| {
        let listed = data(&client.get("/v1/rooms").await, 200);
        let list = client.post_json("/messages", &json!({"type": "list:rooms"})).await.json();
        let tui = client.post_json("/messages", &json!({"type": "tui:register"})).await.json();
        let ids = |list: &Value| {
            let ids = list.as_array().unwrap().iter().map(|room| room["id"].clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!((ids(&listed), ids(&listed)), (ids(&list["rooms"]), ids(&tui["rooms"])));
        ids(&listed)
    };
    assert_eq!(codes(&elsewhere(&daemon)).await, [json!(public.id)]);
    let of_key = codes(&keyed).await;
    assert_eq!((of_key.len(), of_key.contains(&json!(own.id))), (3, true), "{of_key:?}");
    assert_eq!(codes(&daemon.client()).await.len(), 4);
    assert_eq!(codes(&daemon.admin().with_header("x-forwarded-for", "203.0.113.9")).await.len(), 4);

    let open = serve().flag("--open-rooms").start().await;
    make_room(&elsewhere(&open), &body).await;
    assert_eq!(data(&elsewhere(&open).get("/v1/rooms").await, 200), json!([]));
}

#[tokio::test]
async fn a_room_is_reached_by_its_code_or_by_a_key_that_is_bound_to_it() {
    let daemon = serve().flag("--require-key").start().await;
    let (room, other) = (
        make_room(&daemon.admin(), &json!({"name": "a", "password": "pw"})).await,
        make_room(&daemon.admin(), &json!({"name": "b", "password": "pw"})).await,
    );
    let put = room.put(&daemon, "p1").field("password", json!("pw"));
    let mut participant = tunnel(put).await;
    let (_, bound) = make_key(&daemon, json!({"room": room.spoken})).await;
    let (_, free) = make_key(&daemon, json!({})).await;
    let keyed = daemon.client().with_token(&bound);
    let places = [(&keyed, CHAT.to_owned()), (&keyed, room.chat())];
    for (client, path) in places {
        let asked = post(client, path.clone(), ask_for("p1", false));
        let ask = participant.expect_request().await;
        participant.answer(&ask, 200, &json!({})).await;
        assert_eq!(asked.await.unwrap().status, 200, "{path}");
    }
    let listed = keyed.get("/v1/models").await.json();
    assert_eq!(
        (&listed["data"][0]["id"], listed["data"].as_array().unwrap().len()),
        (&json!("m"), 1)
    );
    assert_eq!(
        keyed.post_json(&other.chat(), &ask_for("*", false)).await.status,
        401,
        "another room"
    );
    let unbound = daemon.client().with_token(&free);
    assert_eq!(unbound.post_json(CHAT, &ask_for("m", false)).await.status, 404, "the server's own");
    assert_eq!(unbound.post_json(&room.chat(), &ask_for("m", false)).await.status, 401);
    let close = daemon.admin().request("DELETE", &room.plane("")).send().await;
    assert_eq!(close.status, 200, "the operator may");
    let closed = keyed.post_json(CHAT, &ask_for("m", false)).await;
    assert_eq!((closed.status, closed.text().contains("closed")), (403, true), "{}", closed.text());
}

#[tokio::test]
async fn pages_may_read_what_a_code_or_a_key_lets_in_and_nothing_else() {
    let (_daemon, client, room) = with_room().await;
    let evil = "https://evil.example";
    let get = async |path: &str| client.request("GET", path).header("origin", evil).send().await;
    for path in [room.plane(""), room.plane("/participants"), room.path("/v1/models")] {
        let answer = get(&path).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    }
    let list = get("/v1/rooms").await;
    assert_eq!((data(&list, 200), list.header("access-control-allow-origin")), (json!([]), None));
    let stock = client.get("/v1/rooms").await;
    assert_eq!(stock.header("access-control-allow-origin"), Some("*"), "no page");
    for path in
        ["/v1/rooms", "/messages", "/rooms/x/v1/chat/completions", "/v1/rooms/x/participants/p"]
    {
        let preflight = client.request("OPTIONS", path).header("origin", evil).send().await;
        assert_eq!(preflight.status, 204, "{path}");
        assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
        let methods = preflight.header("access-control-allow-methods").unwrap();
        assert!(
            ["GET", "POST", "PUT", "DELETE", "OPTIONS"].iter().all(|name| methods.contains(name))
        );
        let headers = preflight.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("Content-Type") && headers.contains("Authorization"), "{headers}");
    }
}

/// Passwords, codes and tokens are credentials.
#[tokio::test]
async fn no_credential_of_a_room_is_logged() {
    let mut daemon = serve().set("--log", "trace").start().await;
    let room =
        make_room(&daemon.client(), &json!({"name": "a", "password": "hunter2-hunter2"})).await;
    let put = room.put(&daemon, "p1").field("password", json!("hunter2-hunter2"));
    let participant = tunnel(put).await;
    let query = format!("{}?password=hunter2-hunter2", room.path("/v1/models"));
    assert_eq!(daemon.client().get(&query).await.status, 200);
    daemon.client().with_token("hunter2-wrong").get(&room.path("/v1/models")).await;
    daemon.client().get(&room.plane("/nothing")).await;
    daemon
        .client()
        .with_token("hunter2-hunter2")
        .post_json(&room.chat(), &json!({"model": "none"}))
        .await;
    let texts =
        [participant.joined["tunnel"]["token"].clone(), participant.joined["sessionToken"].clone()];
    let host = daemon.client().with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    drop(participant);
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));
    let log = daemon.log();
    let secrets = ["hunter2", &room.host_token, &room.code, &room.spoken];
    for secret in secrets.into_iter().chain(texts.iter().map(|text| text.as_str().unwrap())) {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

/// Ten wrong codes of a page, or of strangers at a proxy, cost programs at the same address nothing.
#[tokio::test]
async fn pages_and_clients_of_a_proxy_do_not_keep_a_program_out() {
    let (daemon, client, room) = with_room().await;
    let page = client.clone().with_header("sec-fetch-site", "cross-site");
    let proxied = client.clone().with_header("x-forwarded-for", "203.0.113.7");
    for stranger in [&page, &proxied] {
        for number in 0..11 {
            let tried = stranger.get(&format!("/rooms/ZZZZ{number:02}/v1/models")).await;
            assert_eq!(tried.status, if number < 10 { 404 } else { 429 });
        }
    }
    let later = open_room(&daemon).await;
    assert_eq!(client.get(&room.path("/v1/models")).await.status, 200);
    assert_eq!(client.get(&later.path("/v1/models")).await.status, 200);
    assert_eq!(page.get(&later.path("/v1/models")).await.status, 429);
    let host = page.clone().with_header("x-warren-host-token", &later.host_token);
    assert_eq!(host.get(&later.path("/v1/models")).await.status, 200);
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_told_apart() {
    let daemon = serve().set("--trusted-proxies", "127.0.0.1,10.0.0.0/8").start().await;
    let room = open_room(&daemon).await;
    let from = |line: &str| daemon.client().with_header("x-forwarded-for", line);
    for number in 0..11 {
        // What the client itself sent stands before the address that the proxy adds.
        let stranger = from(&format!("192.0.2.{number}, 203.0.113.7, 10.0.0.3"));
        let tried = stranger.get(&format!("/rooms/ZZZZ{number:02}/v1/models")).await;
        assert_eq!(tried.status, if number < 10 { 404 } else { 429 });
    }
    assert_eq!(from("203.0.113.8").get(&room.path("/v1/models")).await.status, 200);
    assert_eq!(from("203.0.113.7").get(&room.path("/v1/models")).await.status, 429);
    let forwarded = daemon.client().with_header("forwarded", "for=\"203.0.113.7:80\"");
    assert_eq!(forwarded.get(&room.path("/v1/models")).await.status, 429);
    let local = from("127.0.0.1").post_json(CHAT, &ask_for("m", false)).await;
    assert_eq!(local.status, 401, "what a proxy passes on is never local");
}
