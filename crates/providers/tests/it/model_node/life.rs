//! Coming, going, and being silent.

use std::time::Duration;

use scheduler::Ending;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use super::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn a_node_is_a_worker_like_any_other() {
    let kit = Kit::new();
    let node = kit.node("gpu").await;
    let status = kit.scheduler.status();
    let worker = &status.workers[0];
    assert_eq!((&*worker.name, worker.max_concurrent), ("gpu", 2));
    assert!(worker.models.iter().eq([&base::ModelName::from("m")]));
    node.drive();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_its_task_at_once() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"some");
    node.settle().await;
    let before = Instant::now();
    drop(answer);
    node.stopped(id).await;
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_with_work_is_lost_after_35_s() {
    let mut kit = Kit::new();
    let mut silent = kit.node("silent").await;
    let mut answer = kit.stream();
    silent.id().await;
    let since = Instant::now();
    assert_eq!(silent.closed().await, (1001, "no sign of life".to_owned()));
    assert_eq!(since.elapsed().as_secs(), 35);
    let mut other = kit.node("other").await;
    let id = other.id().await;
    other.result(id, b"moved");
    other.result(id, b"");
    other.settle().await;
    assert_eq!(read(&mut answer).await.text(), "moved");
}

#[tokio::test(start_paused = true)]
async fn a_begun_task_of_a_lost_node_ends() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"begun");
    node.closed().await;
    assert_eq!(read(&mut answer).await.failure.unwrap().ending, Ending::ProviderLost);
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_keep_a_busy_node() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    for _ in 0..20 {
        sleep(Duration::from_secs(10)).await;
        node.send(String::new());
        node.settle().await;
    }
    node.result(id, b"slow");
    node.result(id, b"");
    node.settle().await;
    assert_eq!(read(&mut answer).await.text(), "slow");
}

#[tokio::test(start_paused = true)]
async fn silence_counts_from_when_there_is_work() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    sleep(Duration::from_secs(200)).await;
    let _answer = kit.stream();
    let since = Instant::now();
    node.id().await;
    node.closed().await;
    assert_eq!(since.elapsed().as_secs(), 35);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_is_not_kept_in_silence_for_ever() {
    let kit = Kit::new();
    let mut node = kit.node("a").await;
    let since = Instant::now();
    node.closed().await;
    assert_eq!(since.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_newer_connection_of_the_same_node_takes_its_place() {
    let mut kit = Kit::new();
    let mut older = kit.node("a").await;
    let (mut begun, mut unbegun) = (kit.stream(), kit.stream());
    let (first, _) = (older.id().await, older.id().await);
    older.result(first, b"begun");
    older.settle().await;
    let mut newer = kit.link("token=good&model=m&max_concurrency=2&name=a");
    assert_eq!(older.closed().await, (4000, "Bye".to_owned()));
    let id = newer.id().await;
    newer.result(id, b"anew");
    newer.result(id, b"");
    newer.settle().await;
    assert_eq!(read(&mut begun).await.failure.unwrap().ending, Ending::ProviderLost);
    assert_eq!(read(&mut unbegun).await.text(), "anew");
    let status = kit.scheduler.status();
    assert_eq!(status.workers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nodes_of_other_names_or_models_stay() {
    let kit = Kit::new();
    kit.node("a").await.drive();
    kit.node("b").await.drive();
    kit.link("token=good&model=other&max_concurrency=1&name=a").drive();
    advance(Duration::from_secs(1)).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(kit.scheduler.status().workers.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_finishes_and_is_closed() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    let worker = kit.scheduler.status().workers[0].id;
    assert!(kit.scheduler.drain(worker, "spring", Duration::from_secs(30)));
    let _waiting = kit.ask(&json!({}));
    node.settle().await;
    node.result(id, b"done");
    node.result(id, b"");
    assert_eq!(node.closed().await, (1000, "goodbye".to_owned()));
    assert_eq!(read(&mut answer).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_is_stopped_by_the_time_out() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    for _ in 0..29 {
        sleep(Duration::from_secs(10)).await;
        node.send(String::new());
        node.settle().await;
    }
    node.stopped(id).await;
    assert_eq!(read(&mut answer).await.failure.unwrap().ending, Ending::RequestTimeout);
}
