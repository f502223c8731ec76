//! Model nodes: what they are asked, and what becomes of their text.

use crate::{
    common::{
        CHAT, MESSAGES, RESPONSES, ask, assert_fields, assert_openai_error, join, openai_error,
        post, serve,
    },
    node_entry::{NODE_TOKEN, hears, join_node, with_node, with_nodes},
};
use serde_json::{Value, json};
use testkit::{DEADLINE, Form, eventually};

const TEXT: &str = "Héllo from a bare node, in pieces 💡.";

/// The data of a stream's events.
fn events(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let json = data.filter(|data| data.starts_with('{'));
    json.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[tokio::test]
async fn a_chat_is_answered_whole() {
    let (daemon, mut node) = with_node().await;
    let asked = json!({
        "model": "m", "max_tokens": 77, "temperature": 0.25, "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        ],
    });
    let answer = post(&daemon.client(), CHAT, asked);
    let task = node.expect_task().await;
    assert!((1..=i64::from(i32::MAX)).contains(&task.id), "{}", task.id);
    assert_eq!(task.json["system"], "Be brief.");
    assert_eq!(task.json["messages"], json!([{"role": "user", "content": "Hi"}]));
    assert_eq!(task.json["max_new_tokens"], 77);
    assert_eq!(task.json["temperature"], 0.25);
    assert!(task.json["created_at"].as_u64().is_some_and(|at| at > 1_700_000_000));
    node.answer(&task, TEXT).await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-warren-usage"), Some("estimated"));
    let whole = answer.json();
    assert!(whole["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")), "{whole}");
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!("m")));
    let choice = &whole["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!(TEXT), &json!("stop"))
    );
    assert!(whole["usage"]["completion_tokens"].as_u64().is_some_and(|count| count > 5), "{whole}");
}

#[tokio::test]
async fn a_chat_is_streamed_as_it_comes() {
    let (daemon, mut node) = with_node().await;
    let mut asked = ask(true);
    asked["stream_options"] = json!({"include_usage": true});
    let streaming = daemon.client().post(CHAT, &asked).open().await;
    let task = node.expect_task().await;
    node.say(task.id, "first ".as_bytes()).await;
    let mut streaming = streaming.answer().await;
    assert_eq!(streaming.header("content-type"), Some("text/event-stream"));
    assert_eq!(streaming.header("x-warren-usage"), Some("estimated"));
    let first = hears(&mut streaming, "first ").await;
    node.answer(&task, "and the rest, later").await;
    let whole = first + &streaming.finish().await.text();
    let events = events(&whole);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "first and the rest, later");
    let reasons: Vec<&str> =
        events.iter().filter_map(|event| event["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(reasons, ["stop"]);
    let usage = events.last().unwrap();
    assert_eq!(
        (&usage["choices"], usage["usage"]["completion_tokens"].is_u64()),
        (&json!([]), true)
    );
    assert!(whole.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn messages_and_responses_are_served_by_a_node() {
    let (daemon, mut node) = with_node().await;
    let mut asked = ask(false);
    asked["system"] = json!("Be brief.");
    let message = post(&daemon.client(), MESSAGES, asked);
    let task = node.expect_task().await;
    assert_eq!(
        (&task.json["system"], &task.json["max_new_tokens"]),
        (&json!("Be brief."), &json!(9))
    );
    node.answer(&task, TEXT).await;
    let message = message.await.unwrap();
    assert_eq!(message.status, 200, "{}", message.text());
    assert_eq!(message.header("x-warren-usage"), Some("estimated"));
    let message = message.json();
    assert_eq!(
        (&message["type"], &message["content"][0]["text"]),
        (&json!("message"), &json!(TEXT))
    );
    assert_eq!(message["stop_reason"], "end_turn");

    let streamed = post(&daemon.client(), MESSAGES, ask(true));
    let task = node.expect_task().await;
    node.answer(&task, TEXT).await;
    let streamed = streamed.await.unwrap();
    let kinds: Vec<String> = events(&streamed.text())
        .iter()
        .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
        .filter(|kind| kind != "ping" && kind != "content_block_delta")
        .collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected, "{}", streamed.text());

    let asked = json!({"model": "m", "input": "Hi", "max_output_tokens": 9});
    let response = post(&daemon.client(), RESPONSES, asked);
    let task = node.expect_task().await;
    assert_eq!(task.json["messages"], json!([{"role": "user", "content": "Hi"}]));
    node.answer(&task, TEXT).await;
    let response = response.await.unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    let response = response.json();
    assert_fields(&response, &json!({"object": "response", "status": "completed"}));
    assert!(response["output"].to_string().contains("bare node"), "{response}");
}

#[tokio::test]
async fn a_request_that_no_node_can_serve_is_refused_by_name() {
    let daemon = with_nodes().await;
    let _node = join_node(&daemon, "gpu", 1).await;
    let mut asked = ask(false);
    asked["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let refused = daemon.client().post_json(CHAT, &asked).await;
    assert_eq!(openai_error(&refused, 400)["param"], "tools");
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let mut asked = ask(true);
    asked["messages"] = json!([{"role": "user", "content": [picture]}]);
    let refused = daemon.client().post_json(CHAT, &asked).await;
    assert_eq!(openai_error(&refused, 400)["param"], "messages[0].content[0]");
}

#[tokio::test]
async fn a_request_that_no_node_can_serve_goes_to_a_worker() {
    let daemon = with_nodes().await;
    let mut node = join_node(&daemon, "gpu", 4).await;
    let mut worker = join(&daemon, Form::Binary, "worker", 1).await;
    let mut with_tools = ask(false);
    with_tools["tools"] =
        json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let first = post(&daemon.client(), CHAT, with_tools.clone());
    let job = worker.expect_job().await;
    // The worker has no room now: only the node could be asked at once.
    let second = post(&daemon.client(), CHAT, with_tools);
    let plain = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "plain text").await;
    assert!(plain.await.unwrap().text().contains("plain text"));
    worker.complete(&job, 200, &json!({"by": "the worker"})).await;
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"by": "the worker"})).await;
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().json(), json!({"by": "the worker"}));
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_task_and_frees_the_slot() {
    let (daemon, mut node) = with_node().await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = node.expect_task().await;
    node.say(task.id, b"some text").await;
    let mut answer = asked.answer().await;
    hears(&mut answer, "some text").await;
    drop(answer);
    node.expect_stop(task.id).await;
    let unbegun = daemon.client().post(CHAT, &ask(false)).open().await;
    let task = node.expect_task().await;
    unbegun.reset();
    node.expect_stop(task.id).await;
    daemon.is_idle().await;
    let next = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "served").await;
    assert!(next.await.unwrap().text().contains("served"));
}

#[tokio::test]
async fn the_work_of_a_lost_node_goes_to_another() {
    let daemon = with_nodes().await;
    let mut first = join_node(&daemon, "first", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    first.expect_task().await;
    let mut second = join_node(&daemon, "second", 1).await;
    drop(first);
    let task = second.expect_task().await;
    second.answer(&task, "from the second").await;
    assert!(answer.await.unwrap().text().contains("from the second"));
}

#[tokio::test]
async fn an_answer_that_a_lost_node_had_begun_ends_with_an_error() {
    let (daemon, mut node) = with_node().await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = node.expect_task().await;
    node.say(task.id, b"begun").await;
    let mut answer = asked.answer().await;
    hears(&mut answer, "begun").await;
    drop(node);
    let rest = answer.finish().await.text();
    assert!(rest.contains("\"error\"") && !rest.contains("[DONE]"), "{rest}");
}

#[tokio::test]
async fn a_node_that_says_nothing_is_stopped_by_the_time_out() {
    let serve = serve().set("--node-token", NODE_TOKEN).set("--request-timeout-secs", "0.3");
    let daemon = serve.start().await;
    let mut node = join_node(&daemon, "gpu", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.expect_stop(task.id).await;
    assert_openai_error(&answer.await.unwrap(), 504, "request timeout");
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_drained_server_lets_a_node_finish() {
    let mut daemon = with_nodes().await;
    let mut node = join_node(&daemon, "gpu", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    daemon.sigterm();
    node.answer(&task, "in time").await;
    assert!(answer.await.unwrap().text().contains("in time"));
    assert_eq!(node.expect_close().await, Some((1000, "goodbye".to_owned())));
    assert_eq!(daemon.exit().await, Some(0));
}

#[tokio::test]
async fn stock_consumers_are_served_by_stock_nodes() {
    let (daemon, mut node) = with_node().await;
    let asked = json!({
        "model": "m", "system": "Be brief.", "temperature": 3, "max_new_tokens": 12,
        "messages": [{"role": "user", "content": "Hi"}],
    });
    let answer = post(&daemon.client(), "/api/chat", asked);
    let task = node.expect_task().await;
    assert_eq!(
        (&task.json["system"], &task.json["max_new_tokens"]),
        (&json!("Be brief."), &json!(12))
    );
    assert_eq!(task.json["temperature"], 0.0, "out of range, as stock servers have it");
    node.answer(&task, TEXT).await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text: String = lines.iter().filter_map(|line| line["o"].as_str()).collect();
    assert_eq!((&*text, lines.last()), (TEXT, Some(&json!({"done": true}))));
    let asked = json!({"model": "m", "messages": ["Hi"]});
    let left = daemon.client().post("/api/chat", &asked).open().await;
    let task = node.expect_task().await;
    left.reset();
    node.expect_stop(task.id).await;
}

#[tokio::test]
async fn the_ledger_has_a_nodes_tokens_as_estimates_also_of_a_client_that_left() {
    let (daemon, mut node) = with_node().await;
    let whole = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "sixteen letters!").await;
    assert_eq!(whole.await.unwrap().status, 200);
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = node.expect_task().await;
    node.say(task.id, b"four letters").await;
    let mut answer = asked.answer().await;
    hears(&mut answer, "four letters").await;
    answer.reset();
    node.expect_stop(task.id).await;
    let counted = async || {
        let usage = daemon.admin().get("/admin/usage?by=provider").await.json();
        let row = &usage["rows"][0];
        row["provider"] == "gpu"
            && (&row["requests"], &row["estimated"]) == (&json!(2), &json!(2))
            && row["completion_tokens"] == 4 + 3
    };
    eventually("both answers in the ledger", DEADLINE, counted).await;
}
