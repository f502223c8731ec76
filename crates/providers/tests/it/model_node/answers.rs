//! Tasks and their answers.

use serde_json::{Value, json};

use super::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_out_and_text_comes_back() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.ask(&json!({
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "max_tokens": 7, "temperature": 0.5,
    }));
    let task = node.task().await;
    let id = task["id"].as_i64().unwrap();
    assert!((1..=i64::from(i32::MAX)).contains(&id), "{id}");
    assert_eq!(task["system"], "be kind");
    assert_eq!(task["messages"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!((&task["max_new_tokens"], &task["temperature"]), (&json!(7), &json!(0.5)));
    assert!(task["created_at"].is_u64() && task.get("stop").is_none(), "{task}");
    for text in ["Hello, ", "world"] {
        node.result(id, text.as_bytes());
    }
    node.result(id, b"");
    node.settle().await;
    let read = read(&mut answer).await;
    assert_eq!((read.status(), &*read.text(), read.failure.as_ref()), (200, "Hello, world", None));
    assert_eq!(read.header("content-type"), "application/json");
    assert_eq!(read.header("x-warren-usage"), "estimated");
    let whole: Value = serde_json::from_str(&read.body).unwrap();
    assert_eq!(whole["id"], "chatcmpl-00000000000000000000000000000001");
    assert_eq!(whole["model"], "m");
    assert_eq!(whole["usage"]["completion_tokens"], 3);
    assert_eq!(read.header("content-length"), read.body.len().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_stream_comes_as_the_node_sends_it() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"one ");
    node.settle().await;
    assert_eq!(answer.head().await.unwrap().headers["content-type"], "text/event-stream");
    let scheduler::Event::Chunk(first) = answer.next().await else { panic!("no chunk") };
    assert!(String::from_utf8_lossy(&first).contains("\"one \""), "{first:?}");
    node.result(id, b"");
    node.settle().await;
    let scheduler::Event::Chunk(last) = answer.next().await else { panic!("no chunk") };
    assert!(last.ends_with(b"data: [DONE]\n\n"));
    assert!(matches!(answer.next().await, scheduler::Event::End));
}

#[tokio::test(start_paused = true)]
async fn tasks_at_once_do_not_mix_and_are_no_more_than_the_node_takes() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answers = [kit.stream(), kit.stream(), kit.stream()];
    let (first, second) = (node.id().await, node.id().await);
    assert_ne!(first, second);
    node.settle().await;
    node.result(second, b"second");
    node.result(first, b"first");
    node.result(second, b"");
    let third = node.id().await;
    assert!(third != first && third != second);
    node.result(first, b"");
    node.result(third, b"third");
    node.result(third, b"");
    node.settle().await;
    for (answer, text) in answers.iter_mut().zip(["first", "second", "third"]) {
        assert_eq!(read(answer).await.text(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_character_split_over_frames_is_one() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.stream();
    let id = node.id().await;
    for piece in [&b"a\xf0\x9f"[..], b"\x92", b"\xa1b", b""] {
        node.result(id, piece);
    }
    node.settle().await;
    assert_eq!(read(&mut answer).await.text(), "a💡b");
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_at_the_clients_stop_and_so_does_the_task() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.ask(&json!({"stream": true, "stop": ["END"]}));
    let id = node.id().await;
    node.result(id, b"well E");
    node.result(id, b"ND not this");
    node.stopped(id).await;
    let read = read(&mut answer).await;
    assert_eq!((&*read.text(), read.failure), ("well ", None));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_node_can_be_sent_is_the_clients_fault() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let refused = read(&mut kit.ask(&json!({"tools": tools}))).await;
    assert_eq!((refused.status(), refused.failure.as_ref()), (400, None));
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(error["error"]["param"], "tools");
    let long = json!({"messages": [{"role": "user", "content": "x".repeat(1 << 20)}]});
    let refused = read(&mut kit.ask(&long)).await;
    assert_eq!(refused.status(), 413);
    let mut answer = kit.stream();
    let id = node.id().await;
    node.result(id, b"");
    node.settle().await;
    assert_eq!(read(&mut answer).await.failure, None, "the node rests for none of it");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_loses_its_task_and_nothing_else() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let (mut slow, mut other) = (kit.stream(), kit.stream());
    let (first, second) = (node.id().await, node.id().await);
    let text = vec![b'x'; 1 << 20];
    for _ in 0..10 {
        node.result(first, &text);
    }
    node.stopped(first).await;
    node.result(second, b"fine");
    node.result(second, b"");
    node.messages().await;
    let failure = read(&mut slow).await.failure.unwrap();
    assert_eq!(failure.ending, scheduler::Ending::ClientStalled);
    assert_eq!(read(&mut other).await.text(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_method_that_the_protocol_lacks_is_answered_501() {
    let mut kit = Kit::new();
    let mut node = kit.node("a").await;
    let mut answer = kit.submit_as(http::Method::GET, false, bytes::Bytes::new());
    node.settle().await;
    let read = read(&mut answer).await;
    assert!(read.status() == 501 && read.body.contains("GET"), "{}", read.body);
}
