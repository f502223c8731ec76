//! A node that talks nonsense: it costs at most the task that it is about.

use super::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn text_that_is_no_utf8_fails_its_task_only() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let (mut bad, mut good) = (kit.stream(), kit.stream());
    let (first, second) = (node.id().await, node.id().await);
    node.result(first, b"begun");
    node.result(second, b"fi");
    node.result(first, b"\xff\xfe");
    node.stopped(first).await;
    node.result(second, b"ne");
    node.result(second, b"");
    node.settle().await;
    let failed = read(&mut bad).await;
    assert_eq!(failed.text(), "begun");
    let failure = failed.failure.unwrap();
    assert_eq!(failure.ending, scheduler::Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("the text is not UTF-8"));
    assert_eq!(read(&mut good).await.text(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_character_that_is_never_finished_fails_its_task() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"a\xe2\x82");
    node.result(id, b"");
    node.stopped(id).await;
    assert!(read(&mut answer).await.failure.is_some());
}

#[tokio::test(start_paused = true)]
async fn results_of_unknown_tasks_are_stopped_and_the_link_stays() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    for unknown in [77, 0, -5] {
        node.result(unknown, b"what?");
        node.stopped(unknown).await;
    }
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"ok");
    node.result(id, b"");
    node.settle().await;
    assert_eq!(read(&mut answer).await.text(), "ok");
    node.result(id, b"late");
    node.stopped(id).await;
}

#[tokio::test(start_paused = true)]
async fn results_after_a_stop_are_nobodys() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let answer = kit.stream();
    let gone = node.id().await;
    drop(answer);
    node.stopped(gone).await;
    let mut next = kit.stream();
    let id = node.id().await;
    assert_ne!(gone, id);
    node.result(gone, b"late");
    node.stopped(gone).await;
    node.result(id, b"ok");
    node.result(id, b"");
    node.settle().await;
    assert_eq!(read(&mut next).await.text(), "ok");
}

#[tokio::test(start_paused = true)]
async fn results_of_a_former_connection_are_nobodys() {
    let mut kit = Kit::new();
    let mut before = kit.node("a").await;
    let mut answer = kit.stream();
    let old = before.id().await;
    let mut after = kit.link("token=good&model=m&max_concurrency=2&name=a");
    let id = after.id().await;
    assert_ne!(old, id, "the job was given anew");
    after.result(old, b"unsent on the old socket");
    after.stopped(old).await;
    after.result(id, b"ok");
    after.result(id, b"");
    after.settle().await;
    assert_eq!(read(&mut answer).await.text(), "ok");
}

#[tokio::test(start_paused = true)]
async fn nonsense_without_end_is_answered_only_so_often() {
    let kit = Kit::new();
    let mut node = kit.node("a").await;
    for _ in 0..1000 {
        node.result(77, b"what?");
        node.send(bytes::Bytes::from_static(b"abc"));
        node.send("hello".to_owned());
    }
    let answered = node.messages().await;
    assert!((1..=20).contains(&answered), "{answered}");
    assert_eq!(kit.scheduler.status().workers.len(), 1, "the link stays");
}

#[tokio::test(start_paused = true)]
async fn short_frames_and_text_cost_nothing() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    node.send(bytes::Bytes::new());
    node.send(bytes::Bytes::from_static(&[0, 0, 1]));
    node.send("{\"type\":\"register\"}".to_owned());
    node.send(String::new());
    node.result(id, b"ok");
    node.result(id, b"");
    node.settle().await;
    assert_eq!(read(&mut answer).await.text(), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_piece_of_text_has_a_bound() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"begun");
    node.result(id, &vec![b'x'; 4 * 1024 * 1024 + 1]);
    node.stopped(id).await;
    let failure = read(&mut answer).await.failure.unwrap();
    assert_eq!(failure.detail.as_deref(), Some("its text is too long"));
}
