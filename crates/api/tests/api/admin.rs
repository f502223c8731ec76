//! Models, health and administration.

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use serde_json::Value;

use crate::kit::{Kit, text};

async fn get(kit: &Kit, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = kit.send(request.body(Body::empty()).unwrap()).await;
    (response.status().as_u16(), text(response).await)
}

#[tokio::test(start_paused = true)]
async fn models_that_are_served_are_listed() {
    let mut kit = Kit::new();
    let (_, list) = get(&kit, "/v1/models", &[]).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&"list".into(), &"m".into()));
    assert_eq!(get(&kit, "/v1/models/m", &[]).await.0, 200);
    assert_eq!(get(&kit, "/v1/models/org/name", &[]).await.0, 404, "ids may have slashes");
    kit.lose_provider();
    assert_eq!(get(&kit, "/v1/models/m", &[]).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn health_tells_strangers_little() {
    let kit = Kit::new();
    let (_, own) = get(&kit, "/health", &[]).await;
    let own: Value = serde_json::from_str(&own).unwrap();
    assert_eq!((&own["status"], &own["ok"]), (&"ok".into(), &true.into()));
    assert_eq!((&own["workers_connected"], &own["queue_depth"]), (&1.into(), &0.into()));
    assert_eq!(own["models"][0], "m");
    let (_, foreign) = get(&kit, "/health", &[("host", "evil.example")]).await;
    let foreign: Value = serde_json::from_str(&foreign).unwrap();
    assert!(foreign["workers"].is_null() && foreign["ok"] == true);
    assert_eq!(get(&kit, "/health", &[("accept", "text/plain")]).await.1, "ok");
    for open in [false, true] {
        let kit = Kit::with(|rules, _| rules.open = open);
        let key = kit.key(None, &[]);
        for (bearer, is_long) in [(key.expose(), true), ("sk-other", false)] {
            let bearer = format!("Bearer {bearer}");
            let headers = [("x-forwarded-for", "10.0.0.1"), ("authorization", bearer.as_str())];
            let (_, health) = get(&kit, "/health", &headers).await;
            let health: Value = serde_json::from_str(&health).unwrap();
            assert_eq!(health["models"].is_array(), is_long, "{health}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn administration_needs_its_token_on_this_machine_too() {
    let kit = Kit::new();
    assert_eq!(get(&kit, "/admin/workers", &[]).await.0, 401);
    assert_eq!(get(&kit, "/admin/stats", &[("authorization", "Bearer nope")]).await.0, 401);
    let token = [("authorization", "Bearer admin")];
    let (status, workers) = get(&kit, "/admin/workers", &token).await;
    let workers: Value = serde_json::from_str(&workers).unwrap();
    assert_eq!((status, &workers["workers"][0]["worker_name"]), (200, &"test".into()));
    assert_eq!(workers["workers"][0]["endpoints"][0], "/v1/chat/completions");
    let (_, stats) = get(&kit, "/admin/stats", &token).await;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((&stats["active_workers"], &stats["queue_depth"]["server"]), (&1.into(), &0.into()));
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_drained_by_its_id() {
    let kit = Kit::new();
    let drain = |id: &str| {
        Request::post(format!("/admin/workers/{id}/drain"))
            .header("authorization", "Bearer admin")
            .body(Body::empty())
            .unwrap()
    };
    assert_eq!(kit.send(drain("w-00000000000000ff")).await.status(), 404);
    assert_eq!(kit.send(drain("gpu")).await.status(), 404);
    assert_eq!(kit.send(drain("w-0000000000000001")).await.status(), 202);
    assert!(kit.scheduler.status().workers[0].draining);
}

fn key_request(token: &str, body: Body) -> Request<Body> {
    let request = Request::post("/admin/keys").header("authorization", format!("Bearer {token}"));
    request.body(body).unwrap()
}

/// The bounds of a body that makes a key are those of every other: its length and its time.
#[tokio::test(start_paused = true)]
async fn a_body_that_makes_a_key_is_bounded() {
    let kit = Kit::new();
    let never = || Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>());
    let long = Body::from(vec![b' '; 2 * 1024 * 1024]);
    assert_eq!(kit.send(key_request("admin", long)).await.status(), 413);
    assert_eq!(kit.send(key_request("admin", never())).await.status(), 408);
    let began = tokio::time::Instant::now();
    assert_eq!(kit.send(key_request("stranger", never())).await.status(), 401);
    assert!(began.elapsed().as_secs() <= 1, "a stranger is not waited for");
    let refused = kit.send(key_request("admin", Body::from("[1]"))).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.headers()["content-type"], "application/json");
}

/// Somebody who puts a key where its id belongs is told so, and the key is written nowhere.
#[tokio::test(start_paused = true)]
async fn a_key_in_place_of_its_id_is_not_repeated() {
    let kit = Kit::new();
    let key = format!("wk_{}", "0f".repeat(32));
    let token = [("authorization", "Bearer admin")];
    let (status, answer) = get(&kit, &format!("/admin/keys/{key}"), &token).await;
    assert!(status == 404 && answer.contains("not its id") && !answer.contains(&key), "{answer}");
    let delete = Request::delete(format!("/admin/keys/{key}"));
    let delete = delete.header("authorization", "Bearer admin").body(Body::empty()).unwrap();
    assert_eq!(kit.send(delete).await.status(), 404);
    let (_, audit) = get(&kit, "/admin/audit", &token).await;
    assert!(!audit.contains(&key), "{audit}");
}
