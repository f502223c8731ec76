//! Walkthrough 1: a worker registers and is kept alive by a heartbeat.

use serde_json::json;
use testkit::{Connect, Form};

use crate::common::{both_forms, serve};

both_forms!(a_worker_is_acknowledged_and_listed);

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
