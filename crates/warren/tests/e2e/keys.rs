//! Keys: made, shown once, refused when they no longer work, and cut off when they are revoked.

use std::time::Duration;

use serde_json::json;
use testkit::{Connect, DEADLINE, Form, eventually};

use crate::{
    cli::{make_key, revoke, warren, with_key},
    common::{
        CHAT, MESSAGES, RESPONSES, ask, ask_for, assert_anthropic_error, both_forms, join,
        openai_error, serve,
    },
};

/// From making it to revoking it, over the command line.
#[tokio::test]
async fn a_key_has_its_whole_life_on_the_command_line() {
    let serve = serve().flag("--require-key");
    let token = serve.data_dir().join("admin.token");
    let daemon = serve.start().await;
    let (url, token) = (daemon.url(), std::fs::read_to_string(token).unwrap());
    let to = ["--server", &url, "--admin-token", token.trim(), "--json"];
    let run = async |args: &[&str]| warren(&[&["key"], args, &to].concat()).await.json();
    let made = run(&[
        "create",
        "--name",
        "laptop",
        "--scope",
        "inference,metrics",
        "--models",
        "m,llama*",
        "--rpm",
        "60",
        "--tpm",
        "1000",
        "--concurrent",
        "2",
        "--budget-tokens",
        "5000/month",
        "--budget",
        "5.00USD/month",
        "--expires",
        "30d",
    ])
    .await;
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with(made["prefix"].as_str().unwrap()) && key.len() == 67, "{made}");
    assert_eq!(made["scopes"], json!(["inference", "metrics"]));
    assert_eq!(made["models"], json!(["m", "llama*"]));
    assert_eq!(made["limits"]["budget"], json!({"tokens": 5000, "per": "month"}));
    let money = json!({"amount": "5.00", "currency": "USD", "per": "month"});
    assert_eq!(made["limits"]["budget_money"], money);
    assert!(made["expires_at"].is_string() && made["revoked_at"].is_null(), "{made}");
    let chat = async |key: &str| with_key(&daemon, key).post_json(CHAT, &ask(false)).await.status;
    assert_eq!(chat(key).await, 404, "let in; nobody serves m");

    let shown = run(&["show", id]).await;
    assert!(shown.get("key").is_none() && shown["last_used_at"].is_string(), "{shown}");
    assert_eq!(run(&["show", "laptop"]).await, shown);
    assert_eq!(run(&["show", &key[..11]]).await, shown);
    assert_eq!(run(&["list"]).await["keys"], json!([shown]));

    let rotated = run(&["rotate", "laptop"]).await;
    let new = rotated["key"].as_str().unwrap();
    assert_eq!((chat(key).await, chat(new).await), (401, 404));
    assert!(run(&["revoke", new]).await["revoked_at"].is_string());
    assert_eq!(chat(new).await, 401);
}

/// A key of a room is bound to it by either of its codes, and sees nothing else.
#[tokio::test]
async fn a_key_is_bound_to_a_room_on_the_command_line() {
    let serve = serve();
    let token = serve.data_dir().join("admin.token");
    let daemon = serve.start().await;
    let (url, token) = (daemon.url(), std::fs::read_to_string(token).unwrap());
    let room = daemon.admin().post_json("/v1/rooms", &json!({"name": "friends"})).await.json();
    let room = &room["data"]["room"];
    let to = ["--server", &url, "--admin-token", token.trim(), "--json"];
    let spoken = room["spokenCode"].as_str().unwrap();
    let create = ["key", "create", "--name", "friend", "--room", spoken];
    let key = warren(&[&create[..], &to].concat()).await.json();
    assert_eq!(key["room"], room["code"]);
    let friend = with_key(&daemon, key["key"].as_str().unwrap());
    assert_eq!(friend.get("/v1/models").await.json()["data"], json!([]));
    assert_eq!(friend.post_json(CHAT, &ask(false)).await.status, 503, "nobody lends there");
    let shown = warren(&[&["key", "show", "friend"], &to[..]].concat()).await.json();
    assert_eq!(shown["room"], room["code"]);
}

/// People see the key once, on a line of its own, and a table that tells what there is.
#[tokio::test]
async fn people_are_shown_a_key_once() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().display().to_string();
    let run = async |args: &[&str]| warren(&[&["key"], args, &["--data-dir", &dir]].concat()).await;
    let made = run(&["create", "--name", "a \u{1b}[2J"]).await;
    assert_eq!(made.code, Some(2), "{made:?}");
    let made = run(&["create", "--name", "laptop", "--concurrent", "3"]).await;
    let key = made.out.lines().find(|line| line.starts_with("wk_")).expect("the key");
    let list = run(&["list"]).await.out;
    assert!(list.contains("laptop") && list.contains("3 at once"), "{list}");
    assert!(list.contains(&key[..11]) && !list.contains(key), "{list}");
}

/// A stopped server's keys are made in its data directory; a running one's are not.
#[tokio::test]
async fn keys_are_made_without_a_server_and_known_to_it_later() {
    let serve = serve().flag("--require-key");
    let dir = serve.data_dir().display().to_string();
    let until = "2051-01-31T00:00:00Z";
    let create =
        ["key", "create", "--name", "before", "--data-dir", &dir, "--json", "--expires", until];
    let made = warren(&create).await.json();
    assert_eq!(made["expires_at"], until);
    let daemon = serve.start().await;
    let key = made["key"].as_str().unwrap();
    assert_eq!(with_key(&daemon, key).get("/v1/models").await.status, 200);
    let audit = daemon.admin().get("/admin/audit").await.json();
    assert_eq!(audit["entries"][0]["who"], "command-line", "{audit}");
    // Now that a server runs there, it makes the key.
    let made = warren(&create).await.json();
    let key = made["key"].as_str().unwrap();
    assert_eq!(with_key(&daemon, key).get("/v1/models").await.status, 200);
}

#[tokio::test]
async fn each_failure_has_its_exit_code() {
    let daemon = serve().start().await;
    let token = daemon.admin();
    drop(token);
    let url = daemon.url();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().display().to_string();
    let refusing = testkit::RefusingPort::take();
    let nobody = refusing.url();
    let known = ["--server", &url, "--admin-token", "not-the-token"];
    let empty = tempfile::tempdir().unwrap();
    let unused = empty.path().join("unused").display().to_string();
    for name in ["twice", "twice"] {
        warren(&["key", "create", "--name", name, "--data-dir", &dir, "--json"]).await.json();
    }
    let cases: [(&[&str], i32, &str); 10] = [
        (&["show", "k-1", "--data-dir", &dir], 4, "k-1"),
        (&["revoke", "twice", "--data-dir", &dir], 2, "give an id"),
        (&["create", "--name", "a", "--budget-tokens", "5/week", "--data-dir", &dir], 2, "/day"),
        (&["create", "--name", "a", "--scope", "root", "--data-dir", &dir], 2, "inference"),
        (&["list", "--data-dir", &unused], 1, "no database"),
        (&["create", "--name", "a", "--rpm", "0", "--data-dir", &dir], 2, "rpm"),
        (&["create", "--name", "a", "--room", "no-such-room-1", "--data-dir", &dir], 2, "no room"),
        (&["create", "--name", "a", "--expires", "soon", "--data-dir", &dir], 2, "--expires"),
        (&[&["list"], &known[..]].concat(), 1, "token"),
        (&["list", "--server", &nobody, "--admin-token", "t"], 3, "could not reach"),
    ];
    for (args, code, words) in cases {
        let ran = warren(&[&["key"], args].concat()).await;
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:?}");
    }
    assert!(!std::path::Path::new(&unused).exists(), "made by looking at it");
}

/// Each reason has its status, its words and the shape of the API that was asked.
#[tokio::test]
async fn keys_that_do_not_work_say_why() {
    let daemon = serve().start().await;
    let (revoked, revoked_key) = make_key(&daemon, json!({})).await;
    assert_eq!(revoke(&daemon, &revoked).await.status, 200);
    let (_, worker_key) = make_key(&daemon, json!({"scopes": ["worker"]})).await;
    let (_, other_model) = make_key(&daemon, json!({"models": ["n", "o*"]})).await;
    let soon = jiff::Timestamp::now() + Duration::from_secs(1);
    let (_, expiring) = make_key(&daemon, json!({"expires_at": soon.to_string()})).await;
    let unknown = format!("wk_{}", "0".repeat(64));
    let refused = |key: &str| {
        let client = with_key(&daemon, key);
        async move { client.post_json(CHAT, &ask(false)).await }
    };
    eventually("expiry", DEADLINE, async || refused(&expiring).await.status == 401).await;
    let scope = "the API key may not be used for this: it has no scope `inference`";
    let model = "the API key may not be used for the model m";
    let cases = [
        (&revoked_key, 401, "authentication_error", "the API key was revoked"),
        (&expiring, 401, "authentication_error", "the API key has expired"),
        (&unknown, 401, "authentication_error", "the API key is not valid"),
        (&worker_key, 403, "permission_error", scope),
        (&other_model, 403, "permission_error", model),
    ];
    for (key, status, kind, words) in cases {
        let error = openai_error(&refused(key).await, status);
        assert_eq!((&error["type"], &error["message"]), (&json!(kind), &json!(words)));
        let client = daemon.client().with_header("x-api-key", key);
        let told = client.post_json(MESSAGES, &ask(false)).await;
        assert_anthropic_error(&told, status, kind, words);
    }
    let allowed = with_key(&daemon, &other_model).post_json(CHAT, &ask_for("other", false)).await;
    assert_eq!(allowed.status, 404, "o* is allowed");
}

/// A key with a character too few or too many, or the part that a list of keys shows, is not taken for
/// a dummy. Otherwise a local client would go on without its key's limits.
#[tokio::test]
async fn a_mistyped_key_is_refused_where_none_is_needed() {
    let daemon = serve().start().await;
    let (id, key) = make_key(&daemon, json!({"scopes": ["inference", "rooms"]})).await;
    let room = with_key(&daemon, &key).post_json("/v1/rooms", &json!({"name": "r"})).await.json();
    let in_room = format!("/rooms/{}", room["data"]["room"]["code"].as_str().unwrap());
    let in_room = [format!("{in_room}{CHAT}"), format!("{in_room}/v1/models")];
    let posts = [CHAT, MESSAGES, RESPONSES, "/v1/messages/count_tokens", "/api/chat", "/v1/rooms"];
    let gets = ["/v1/models", "/v1/rooms", "/metrics", "/admin/keys", &in_room[1]];
    let posts: Vec<&str> = posts.into_iter().chain([&*in_room[0]]).collect();
    let statuses = async |header: &str, value: &str| {
        let client = daemon.client().with_header(header, value);
        let mut statuses = Vec::new();
        for path in &posts {
            statuses.push((*path, client.post_json(path, &ask(false)).await.status));
        }
        for path in gets {
            statuses.push((path, client.get(path).await.status));
        }
        statuses
    };
    let wrong = [&key[..key.len() - 1], &format!("{key}0"), &key[..11], "wk_"];
    for text in wrong {
        for (header, value) in [
            ("authorization", format!("Bearer {text}")),
            ("authorization", text.to_owned()),
            ("x-api-key", text.to_owned()),
        ] {
            let told = statuses(header, &value).await;
            assert!(told.iter().all(|(_, status)| *status == 401), "{header}: {value}: {told:?}");
        }
        let worker = Connect::new(daemon.address()).header("x-worker-secret", text);
        assert_eq!(worker.open().await.expect_err("refused").status, 401);
        let health = with_key(&daemon, text).get("/health").await.json();
        assert!(health.get("uptime_secs").is_none() && health["status"] == "ok", "{health}");
    }
    for dummy in ["sk-dummy", "none", "k_1"] {
        let told = statuses("x-api-key", dummy).await;
        let refused = told.iter().filter(|(_, status)| *status == 401).map(|(path, _)| *path);
        assert_eq!(refused.collect::<Vec<_>>(), ["/admin/keys"], "{dummy}");
    }
    assert_eq!(revoke(&daemon, &id).await.status, 200);
    let told = statuses("x-api-key", &key).await;
    assert!(told.iter().all(|(_, status)| *status == 401), "{told:?}");
}

both_forms!(a_worker_is_cut_off_when_its_key_is_revoked);

async fn a_worker_is_cut_off_when_its_key_is_revoked(form: Form) {
    let daemon = serve().start().await;
    let (id, key) = make_key(&daemon, json!({"scopes": ["worker"]})).await;
    let connect = || Connect::new(daemon.address()).header("x-worker-secret", &key).form(form);
    let mut worker = connect().join("w", &["m"], 1).await;
    let other = join(&daemon, form, "other", 1).await;
    assert_eq!(revoke(&daemon, &id).await.status, 200);
    let close = worker.expect_close().await;
    assert_eq!(close.map(|(code, _)| code), Some(1008));
    daemon.has_workers(1).await;
    assert_eq!(connect().open().await.expect_err("refused").status, 401);
    drop(other);
    let (_, inference) = make_key(&daemon, json!({})).await;
    let wrong = Connect::new(daemon.address()).header("x-worker-secret", &inference).form(form);
    assert_eq!(wrong.open().await.expect_err("refused").status, 403);
}

/// Administration and metrics have scopes of their own.
#[tokio::test]
async fn keys_of_scope_admin_and_metrics_do_what_they_are_for() {
    let daemon = serve().start().await;
    let (admin, admin_key) = make_key(&daemon, json!({"scopes": ["admin"]})).await;
    let (_, metrics_key) = make_key(&daemon, json!({"scopes": ["metrics"]})).await;
    let get = async |key: &str, path: &str| {
        let request = with_key(&daemon, key).request("GET", path);
        request.header("x-forwarded-for", "10.0.0.1").send().await.status
    };
    assert_eq!(get(&admin_key, "/admin/keys").await, 200);
    assert_eq!(get(&admin_key, "/metrics").await, 200);
    assert_eq!(get(&metrics_key, "/metrics").await, 200);
    assert_eq!(get(&metrics_key, "/admin/keys").await, 403);
    assert_eq!(get("nobody", "/admin/keys").await, 401);
    assert_eq!(get(&admin_key, "/v1/models").await, 403);

    let client = with_key(&daemon, &admin_key);
    assert_eq!(client.post_json("/admin/keys", &json!({"name": "by key"})).await.status, 201);
    assert_eq!(client.post_json("/admin/keys", &json!({"nam": "x"})).await.status, 400);
    let drained = client.post_json("/admin/workers/w-00000000000000ff/drain", &json!({})).await;
    assert_eq!(drained.status, 404);
    let audit = client.get("/admin/audit?limit=2").await.json();
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (&entries[0]["who"], &entries[0]["action"]),
        (&json!(admin), &json!("worker.drain"))
    );
    assert!(entries[0]["outcome"].as_str().unwrap().contains("no worker"), "{audit}");
    assert_eq!(
        (&entries[1]["action"], &entries[1]["outcome"]),
        (&json!("key.create"), &json!("done"))
    );
}
