//! The operators' view.

use std::time::Duration;

use serde_json::json;
use testkit::{Daemon, Form, eventually};

use crate::{
    common::{CHAT, ask, join, post, serve, with_lender},
    nodes::{NODE_TOKEN, join_node},
};

#[tokio::test]
async fn health_tells_what_is_there() {
    let daemon = serve().start().await;
    let health = daemon.health().await;
    assert_eq!((&health["status"], &health["ok"]), (&json!("ok"), &json!(true)));
    assert!(health["version"].is_string() && health["uptime_secs"].is_number(), "{health}");
    assert_eq!(health["queue_depth"], 0);
    let nothing = json!({"clients": 0, "sessions": 0, "live_sessions": 0, "keep_sessions_secs": 0});
    assert_eq!(health["workspace"], nothing);
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let _first = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let _second = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let health = daemon.health().await;
    assert!(health["models"].to_string().contains("\"m\""), "{health}");
    let stats = daemon.admin().get("/admin/stats").await.json();
    assert_eq!(stats["active_workers"], 1, "{stats}");
    let depths = stats["queue_depth"].as_object().expect("depths by scope");
    assert_eq!(depths.values().filter_map(|depth| depth.as_u64()).sum::<u64>(), 1, "{stats}");
    assert_eq!(daemon.workers().await[0]["in_flight_count"], 1);
    worker.complete(&job, 200, &json!({})).await;
}

#[tokio::test]
async fn health_is_a_word_for_who_wants_one() {
    let daemon = serve().start().await;
    let request = daemon.client().request("GET", "/health").header("accept", "text/plain");
    let answer = request.send().await;
    assert_eq!((answer.status, answer.text().trim()), (200, "ok"));
}

/// The sum over all lines of a metric whose labels contain each of `labels`.
async fn metric(daemon: &Daemon, name: &str, labels: &[&str]) -> f64 {
    let metrics = daemon.metrics().await;
    let lines = metrics.lines().filter(|line| {
        line.split(['{', ' ']).next() == Some(name)
            && labels.iter().all(|label| line.contains(label))
    });
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn metrics_count_requests_and_tokens() {
    let (daemon, _backend, _worker) = with_lender(1).await;
    for _ in 0..3 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    }
    daemon.is_idle().await;
    let counted = async || metric(&daemon, "warren_requests_total", &["model=\"m\""]).await >= 3.0;
    eventually("three requests in /metrics", Duration::from_secs(5), counted).await;
    // Each said that it had 3 tokens of prompt and 2 of completion.
    assert_eq!(metric(&daemon, "warren_tokens_total", &[]).await, 15.0);
    assert_eq!(metric(&daemon, "warren_in_flight", &[]).await, 0.0);
    let all = daemon.metrics().await;
    assert!(all.trim_end().ends_with("# EOF"), "{all}");
}

#[tokio::test]
async fn the_log_can_be_json_and_names_the_request() {
    let daemon = serve().set("--log-format", "json").start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    let id = answer.await.unwrap().header("x-request-id").unwrap().to_owned();
    assert_eq!(id, job.request_id);
    let line = daemon.line_with(&id).await;
    let line: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
    assert!(line.to_string().contains(&id));
}

/// In JSON a span's own name is one of its fields.
#[tokio::test]
async fn no_field_of_a_json_line_is_there_twice() {
    let daemon = serve().set("--node-token", NODE_TOKEN).set("--log-format", "json").start().await;
    let worker = join(&daemon, Form::Stock, "w", 1).await;
    let node = join_node(&daemon, "gpu", 1).await;
    drop((worker, node));
    for (line, named) in
        [("worker disconnected", "worker_name"), ("node disconnected", "node_name")]
    {
        let line = daemon.line_with(line).await;
        let span = line.split_once(r#""span":{"#).expect("a span").1.split_once('}').unwrap().0;
        assert_eq!(span.matches(r#""name":"#).count(), 1, "{span}");
        assert!(span.contains(named), "{span}");
    }
}
