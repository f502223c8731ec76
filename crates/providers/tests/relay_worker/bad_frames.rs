//! A bad frame costs that frame, or that job: never the connection.

use bytes::Bytes;
use dispatch::Ending;
use protocol::relay::binary::{ResponseHead, WorkerFrame};
use serde_json::json;

use crate::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn garbage_is_passed_over() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    let unknown = "r-000000000000000000000000000000ff";
    worker.send("no json".to_owned());
    worker.send(Bytes::from_static(b"\x00\x01binary"));
    worker.say(&json!({"type": "unheard_of"}));
    worker.say(
        &json!({"type": "register", "worker_name": "again", "models": [], "max_concurrent": 1}),
    );
    worker.chunk(unknown, "data: late\n\n");
    worker.chunk("not an id", "x");
    worker.complete(unknown, 200, "late");
    worker.complete(&id, 200, "{}");
    worker.chunk(&id, "data: after completion\n\n");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await, (200, "{}".to_owned(), None));
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_message_about_a_job_fails_that_job() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.say(&json!({"type": "response_complete", "request_id": id, "status_code": "many"}));
    let cancel = worker.hear().await;
    assert_eq!((&cancel["type"], &cancel["request_id"]), (&json!("cancel"), &json!(id)));
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
    assert_eq!(kit.scheduler.status().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn an_impossible_status_is_the_workers_fault() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.complete(&id, 1000, "{}");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_40_mib_is_taken() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.complete(&id, 200, &"x".repeat(40 << 20));
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.1.len(), 40 << 20);
}

#[tokio::test(start_paused = true)]
async fn binary_frames_out_of_order_cost_their_job() {
    let mut kit = Kit::new();
    let worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    worker.send(Bytes::from_static(b"\x12"));
    worker.send(Bytes::from_static(b"\x99\x00\x00\x00\x01"));
    worker.send(WorkerFrame::Chunk { job: 9, bytes: Bytes::from_static(b"late") }.encode());
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_binary_head_without_a_possible_status_fails_its_job() {
    let mut kit = Kit::new();
    let worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let head = ResponseHead { status_code: 1, headers: Vec::new() };
    worker.send(WorkerFrame::Head { job: 1, head }.encode());
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
}
