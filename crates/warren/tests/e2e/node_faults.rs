//! Model nodes that talk nonsense: it costs at most the task that it is about.

use testkit::{Daemon, FakeNode};
use tokio::time::Instant;

use crate::{
    common::{CHAT, ask, post},
    node_entry::{hears, join_node, with_node, with_nodes},
};

/// The node still works for this server.
async fn still_works(daemon: &Daemon, node: &mut FakeNode) {
    let answer = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "as good as ever").await;
    let answer = answer.await.unwrap();
    assert!(answer.text().contains("as good as ever"), "{}", answer.text());
}

#[tokio::test]
async fn results_of_tasks_that_it_never_had_are_stopped() {
    let (daemon, mut node) = with_node().await;
    for id in [0, 77, i64::from(i32::MAX)] {
        node.say(id, b"what is this?").await;
        node.expect_stop(id).await;
        node.finish(id).await;
        node.expect_stop(id).await;
    }
    daemon.line_with("a result of a task that the node does not have").await;
    still_works(&daemon, &mut node).await;
}

#[tokio::test]
async fn results_after_a_stop_are_stopped_again() {
    let (daemon, mut node) = with_node().await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = node.expect_task().await;
    asked.reset();
    node.expect_stop(task.id).await;
    node.say(task.id, b"too late").await;
    node.expect_stop(task.id).await;
    still_works(&daemon, &mut node).await;
}

#[tokio::test]
async fn text_frames_are_ignored() {
    let (daemon, mut node) = with_node().await;
    node.send("{\"id\":1,\"o\":\"results are binary\"}".into()).await;
    daemon.line_with("text of the node was ignored").await;
    still_works(&daemon, &mut node).await;
}

#[tokio::test]
async fn frames_that_name_no_task_are_ignored() {
    let (daemon, mut node) = with_node().await;
    for short in [&b""[..], b"a", b"abc"] {
        node.send(short.to_vec().into()).await;
    }
    daemon.line_with("names no task").await;
    still_works(&daemon, &mut node).await;
}

#[tokio::test]
async fn a_character_split_over_frames_is_one() {
    let (daemon, mut node) = with_node().await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    for byte in "a💡é".as_bytes() {
        node.say(task.id, &[*byte]).await;
    }
    node.finish(task.id).await;
    let whole = answer.await.unwrap().json();
    assert_eq!(whole["choices"][0]["message"]["content"], "a💡é");
}

#[tokio::test]
async fn text_that_is_no_utf8_fails_its_task_only() {
    let daemon = with_nodes().await;
    let mut node = join_node(&daemon, "gpu", 2).await;
    let bad = daemon.client().post(CHAT, &ask(true)).open().await;
    let bad_task = node.expect_task().await;
    node.say(bad_task.id, b"begun").await;
    let mut bad = bad.answer().await;
    hears(&mut bad, "begun").await;
    let good = post(&daemon.client(), CHAT, ask(false));
    let good_task = node.expect_task().await;
    node.say(bad_task.id, b"\xff\xfe\xfd").await;
    node.expect_stop(bad_task.id).await;
    let rest = bad.finish().await.text();
    assert!(rest.contains("\"error\"") && !rest.contains("[DONE]"), "{rest}");
    node.answer(&good_task, "unharmed").await;
    assert!(good.await.unwrap().text().contains("unharmed"));
    still_works(&daemon, &mut node).await;
}

#[tokio::test]
async fn frames_without_end_hold_nobody_up() {
    let daemon = with_nodes().await;
    let mut mad = join_node(&daemon, "mad", 1).await;
    let flood = tokio::spawn(async move {
        loop {
            for _ in 0..1000 {
                mad.say(77, b"and another thing").await;
            }
            tokio::task::yield_now().await;
        }
    });
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(daemon.client().get("/health").await.status, 200);
    }
    assert!(began.elapsed() < testkit::DEADLINE, "{:?}", began.elapsed());
    daemon.line_with("more such frames are not in the log").await;
    flood.abort();
    let complaints = daemon.log().matches("a result of a task").count();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    assert!(complaints <= 20 * seconds, "{complaints} in {seconds} s");
}
