//! Walkthrough 1: a worker registers and is kept alive by a heartbeat.

use std::time::Duration;

use serde_json::json;
use testkit::{Connect, Form, eventually};

use crate::common::{CHAT, ask, both_forms, join, post, serve};

both_forms!(
    a_worker_is_acknowledged_and_listed,
    every_known_version_is_echoed,
    names_are_tidied_with_warnings,
    pings_carry_a_time_and_pongs_a_load,
    a_silent_worker_is_closed_and_its_request_requeued,
);

async fn a_worker_is_acknowledged_and_listed(form: Form) {
    let daemon = serve().start().await;
    let mut worker = Connect::to(&daemon).form(form).open().await.unwrap();
    let ack = worker.register("gpu-box-1", &["llama3-8b"], 4).await;
    assert_eq!(ack["type"], "register_ack");
    assert_eq!(ack["models"], json!(["llama3-8b"]));
    assert_eq!(ack["protocol_version"], "1");
    assert_eq!(ack.get("warnings"), None);
    let listed = daemon.workers().await;
    assert_eq!(listed.len(), 1);
    let listed = &listed[0];
    assert_eq!(listed["worker_id"], ack["worker_id"]);
    assert_eq!(listed["worker_name"], "gpu-box-1");
    assert_eq!(listed["models"], json!(["llama3-8b"]));
    assert_eq!(listed["max_concurrent"], 4);
    assert_eq!(listed["reported_load"], 0);
    assert_eq!(listed["in_flight_count"], 0);
    assert_eq!(listed["is_draining"], false);
}

async fn every_known_version_is_echoed(form: Form) {
    let daemon = serve().start().await;
    for version in [Some("1"), Some("2026-04-bridge-v1"), None] {
        let mut worker = Connect::to(&daemon).form(form).open().await.unwrap();
        let mut register = json!({
            "type": "register", "worker_name": "w", "models": ["m"], "max_concurrent": 1,
        });
        if let Some(version) = version {
            register["protocol_version"] = json!(version);
        }
        let ack = worker.register_as(&register).await;
        assert_eq!(ack.get("protocol_version"), version.map(|version| json!(version)).as_ref());
    }
}

async fn names_are_tidied_with_warnings(form: Form) {
    let daemon = serve().start().await;
    let mut worker = Connect::to(&daemon).form(form).open().await.unwrap();
    let ack = worker.register("w", &[" a ", "", "b", "a"], 1).await;
    assert_eq!(ack["models"], json!(["a", "b"]));
    let mut worker = Connect::to(&daemon).form(form).open().await.unwrap();
    let ack = worker.register(" ", &[" "], 1).await;
    assert_eq!(ack["models"], json!([]));
    let warnings = json!([
        "worker_name was empty after trimming",
        "worker registered without any routable models",
    ]);
    assert_eq!(ack["warnings"], warnings);
}

async fn pings_carry_a_time_and_pongs_a_load(form: Form) {
    let daemon = serve().set("--heartbeat-interval-secs", "0.2").start().await;
    let mut worker = join(&daemon, form, "w", 4).await;
    let ping = worker.expect_message("ping").await;
    assert!(ping["timestamp_unix_ms"].as_u64().is_some_and(|time| time > 1_600_000_000_000));
    worker.pong(3).await;
    let reported = async || daemon.workers().await[0]["reported_load"] == 3;
    eventually("the load being listed", Duration::from_secs(5), reported).await;
}

async fn a_silent_worker_is_closed_and_its_request_requeued(form: Form) {
    let daemon = serve().set("--heartbeat-interval-secs", "0.2").start().await;
    let mut silent = join(&daemon, form, "silent", 1).await;
    silent.ignore_pings();
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = silent.expect_job().await;
    let closed = silent.expect_close().await.expect("a close frame with a reason");
    assert_eq!(closed.1, "worker heartbeat timed out");
    let mut other = join(&daemon, form, "other", 1).await;
    let again = other.expect_job().await;
    assert_eq!(again.body, job.body);
    other.complete(&again, 200, &json!({"by": "other"})).await;
    assert_eq!(answer.await.unwrap().json(), json!({"by": "other"}));
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_worker_that_takes_none_takes_one() {
    let daemon = serve().set("--busy-timeout-secs", "0.3").start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 0).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let second = daemon.client().post_json(CHAT, &ask(false)).await;
    assert_eq!((second.status, &second.json()["error"]["code"]), (504, &json!("busy_timeout")));
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(first.await.unwrap().status, 200);
}
