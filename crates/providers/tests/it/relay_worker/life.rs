//! Registration, heartbeat, drain.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::kit::{HEARTBEAT, Kit, read};

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_register_within_ten_seconds_is_turned_away() {
    let kit = Kit::new();
    let mut worker = kit.link(false);
    let began = Instant::now();
    assert_eq!(worker.closed().await, (1002, "worker registration protocol error".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_first_frame_that_is_no_registration_ends_the_link() {
    let kit = Kit::new();
    let bad = [
        "{}".to_owned(),
        "no json".to_owned(),
        json!({"type": "pong", "current_load": 0}).to_string(),
        json!({"type": "register"}).to_string(),
        json!({"type": "register", "worker_name": "w", "models": null, "max_concurrent": 1})
            .to_string(),
        json!({"type": "register", "worker_name": "w", "models": [], "max_concurrent": 1,
            "protocol_version": "9"})
        .to_string(),
    ];
    for first in bad {
        let mut worker = kit.link(false);
        worker.send(first.clone());
        let closed = (1002, "worker registration protocol error".to_owned());
        assert_eq!(worker.closed().await, closed, "{first}");
    }
    let mut worker = kit.link(true);
    worker.send(bytes::Bytes::from_static(b"\x11\0\0\0\0"));
    assert_eq!(worker.closed().await.0, 1002);
    assert!(kit.scheduler.status().workers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_known_versions_and_none_are_accepted_and_echoed() {
    let kit = Kit::new();
    for version in [json!("1"), json!("2026-04-bridge-v1"), json!(null)] {
        let mut worker = kit.link(false);
        worker.say(&json!({
            "type": "register", "worker_name": " ", "models": [" m ", "m", ""],
            "max_concurrent": 0, "protocol_version": version,
        }));
        let ack = worker.hear().await;
        assert_eq!(ack["protocol_version"], version);
        assert_eq!(ack["models"], json!(["m"]));
        assert_eq!(ack["warnings"], json!(["worker_name was empty after trimming"]));
        assert!(ack["worker_id"].as_str().unwrap().starts_with("w-"));
        assert_eq!(kit.scheduler.status().workers[0].max_concurrent, 1, "0 counts as 1");
    }
    let mut worker = kit.link(false);
    worker.say(&json!({
        "type": "register", "worker_name": "w", "models": [" "], "max_concurrent": 1,
    }));
    let warnings = json!(["worker registered without any routable models"]);
    assert_eq!(worker.hear().await["warnings"], warnings);
}

#[tokio::test(start_paused = true)]
async fn a_silent_worker_is_pinged_with_the_time_and_lost_after_three_intervals() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    worker.request().await;
    let began = Instant::now();
    assert_eq!(worker.closed().await, (1000, "worker heartbeat timed out".to_owned()));
    assert_eq!(began.elapsed(), HEARTBEAT * 3);
    let status = kit.scheduler.status();
    assert_eq!((status.workers.len(), status.queue_depth), (0, 1), "its job waits for another");
    let mut other = kit.worker(false).await;
    let id = other.request().await;
    other.complete(&id, 200, "{}");
    let _driver = other.drive();
    assert_eq!(read(&mut answer).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_pong_keeps_a_worker_and_tells_its_load() {
    let kit = Kit::new();
    let mut worker = kit.worker(false).await;
    for load in 0..6 {
        let Some(wire::Frame::Text(text)) = worker.frame().await else { panic!("no ping") };
        assert!(text.as_str().contains("timestamp_unix_ms"), "{}", text.as_str());
        worker.say(&json!({"type": "pong", "current_load": load}));
    }
    assert_eq!(kit.scheduler.status().workers[0].reported_load, 4, "the last is on its way");
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_finishes_and_is_closed() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    let provider = kit.scheduler.status().workers[0].id;
    assert!(kit.scheduler.drain(provider, "maintenance", Duration::from_secs(30)));
    assert_eq!(
        worker.hear().await,
        json!({"type": "graceful_shutdown", "reason": "maintenance", "drain_timeout_secs": 30})
    );
    worker.complete(&id, 200, "{}");
    assert_eq!(worker.closed().await, (1000, "graceful shutdown complete".to_owned()));
    assert_eq!(read(&mut answer).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_is_ended() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let _answer = kit.submit(false);
    let id = worker.request().await;
    let provider = kit.scheduler.status().workers[0].id;
    kit.scheduler.drain(provider, "maintenance", Duration::from_secs(5));
    assert_eq!(worker.hear().await["type"], "graceful_shutdown");
    assert_eq!(
        worker.hear().await,
        json!({"type": "cancel", "request_id": id, "reason": "graceful_shutdown"})
    );
    assert_eq!(worker.closed().await.1, "graceful shutdown timed out");
}

#[tokio::test(start_paused = true)]
async fn models_change_and_are_asked_for() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let provider = kit.scheduler.status().workers[0].id;
    kit.scheduler.refresh(provider, "requested");
    assert_eq!(worker.hear().await, json!({"type": "models_refresh", "reason": "requested"}));
    worker.say(&json!({"type": "models_update", "models": ["other"], "current_load": 0}));
    let mut answer = kit.submit(false);
    worker.say(&json!({"type": "models_update", "models": ["m"], "current_load": 0}));
    let id = worker.request().await;
    worker.complete(&id, 200, "{}");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.0, 200, "dispatched as soon as the model is back");
}

/// The old link is dead, and nobody has noticed yet.
#[tokio::test(start_paused = true)]
async fn a_link_that_is_dialled_again_takes_the_place_of_the_old_one_at_once() {
    let mut kit = Kit::new();
    let named = json!({"link": "5f"});
    let mut old = kit.worker_with(true, named.clone()).await;
    let _other = kit.worker_with(true, json!({"link": "60"})).await;
    let _stock = kit.worker_with(false, named.clone()).await;
    let _answer = kit.submit(false);
    let _new = kit.worker_with(true, named).await;
    let reason = "a newer link of this worker takes its place";
    assert_eq!(old.closed().await, (1000, reason.to_owned()));
    assert_eq!(kit.scheduler.status().workers.len(), 3);
}
