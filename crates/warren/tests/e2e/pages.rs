//! Web pages in browsers: what they may ask, and what they may read.

use serde_json::json;
use testkit::{Daemon, Response};

use crate::{
    cli::make_key,
    common::{CHAT, MESSAGES, RESPONSES, ask, openai_error, serve, with_lender},
};

const FOREIGN: &str = "https://evil.example";

fn reader(answer: &Response) -> Option<&str> {
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    answer.header("access-control-allow-origin")
}

async fn get(daemon: &Daemon, path: &str, origin: &str) -> Response {
    daemon.client().request("GET", path).header("origin", origin).send().await
}

/// Any page may try; without a credential it is not local, and reads only why it was refused.
#[tokio::test]
async fn a_foreign_page_is_not_let_in() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let preflight = daemon.client().request("OPTIONS", CHAT).header("origin", FOREIGN);
    let preflight = preflight.header("access-control-request-method", "POST").send().await;
    assert_eq!((preflight.status, reader(&preflight)), (204, Some("*")));

    let posted = daemon.client().post(CHAT, &ask(false)).header("origin", FOREIGN);
    let refused = posted.clone().send().await;
    openai_error(&refused, 403);
    assert_eq!(reader(&refused), Some(FOREIGN));
    let dummy = posted.clone().header("authorization", "Bearer no-key").send().await;
    openai_error(&dummy, 403);
    let invented = posted.header("authorization", "Bearer wk_no").send().await;
    openai_error(&invented, 401);
    assert_eq!(reader(&invented), Some("*"), "it reads that its key is wrong");
    assert_eq!(backend.counts().started, 0, "nobody was asked");

    let health = get(&daemon, "/health", FOREIGN).await;
    assert_eq!((health.json().get("workers"), reader(&health)), (None, None));
    assert_eq!(get(&daemon, "/metrics", FOREIGN).await.status, 401);
    assert_eq!(get(&daemon, "/v1/models", FOREIGN).await.status, 403);
}

/// The text of an error, in the shape of its path.
fn words(path: &str, answer: &Response) -> String {
    let body = answer.json();
    let text = match path {
        "/api/chat" => &body["message"],
        "/messages" => &body["error"],
        _ => &body["error"]["message"],
    };
    text.as_str().unwrap_or_else(|| panic!("{path}: {body}")).to_owned()
}

#[tokio::test]
async fn a_refused_page_is_told_the_setting_that_allows_it_in_the_shape_of_every_api() {
    let daemon = serve().start().await;
    let create = json!({"type": "room:create", "name": "r"});
    for (path, body) in [
        (CHAT, ask(false)),
        (MESSAGES, ask(false)),
        (RESPONSES, ask(false)),
        ("/api/chat", ask(false)),
        ("/v1/rooms", json!({"name": "r"})),
        ("/messages", create),
    ] {
        let post = || daemon.client().post(path, &body);
        let page = post().header("origin", "http://localhost:3000").send().await;
        assert_eq!(page.status, 403, "{path}");
        let told = words(path, &page);
        assert!(told.contains("`--allow-origin http://localhost:3000`"), "{path}: {told}");
        assert!(reader(&page).is_some(), "{path}");
        let rebound = post().header("host", "gpu.lan:9178").send().await;
        assert_eq!(rebound.status, 403, "{path}");
        let told = words(path, &rebound);
        assert!(told.contains("`--allow-host gpu.lan`"), "{path}: {told}");
    }
    let strict = serve().flag("--require-key").start().await;
    let page = strict.client().post(CHAT, &ask(false)).header("origin", FOREIGN).send().await;
    openai_error(&page, 401);
}

#[tokio::test]
async fn a_page_with_a_key_may_use_the_server_from_anywhere() {
    let (daemon, _backend, _worker) = with_lender(1).await;
    let (_, key) = make_key(&daemon, json!({})).await;
    let posted = daemon.client().with_token(&key).post(CHAT, &ask(false)).header("origin", FOREIGN);
    let answer = posted.send().await;
    assert_eq!((answer.status, reader(&answer)), (200, Some("*")));
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("x-request-id"), "{exposed}");
    let metrics = daemon.admin().request("GET", "/metrics").header("origin", FOREIGN).send().await;
    assert_eq!((metrics.status, reader(&metrics)), (200, Some("*")), "every path of the server");
}

#[tokio::test]
async fn an_allowed_page_needs_no_key_where_none_is_needed() {
    let daemon = serve().set("--allow-origin", "https://app.example").start().await;
    let answer = get(&daemon, "/v1/models", "https://app.example").await;
    assert_eq!((answer.status, reader(&answer)), (200, Some("https://app.example")));
    assert_eq!(answer.header("vary"), Some("origin"));
    assert_eq!(get(&daemon, "/v1/models", FOREIGN).await.status, 403);
    assert_eq!(reader(&daemon.client().get("/v1/models").await), None, "of no page");
}
