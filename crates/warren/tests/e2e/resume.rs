//! A streamed answer whose worker is lost: another worker of the model goes on with it.

use serde_json::{Value, json};
use testkit::{Connect, Daemon, FakeWorker, Form, Job, Streaming};

use crate::{
    cli::{make_key, with_key},
    common::{CHAT, all_read, ask, both_forms, serve},
};

both_forms!(another_worker_goes_on,);

/// A fake worker that goes on with answers for the model `m`.
async fn join(daemon: &Daemon, form: Form, name: &str) -> FakeWorker {
    let mut worker = Connect::to(daemon).form(form).join(name, &["m"], 4).await;
    let facts = json!({"m": {"continuation": "last_message"}});
    let models = json!(["m"]);
    let update =
        json!({"type": "models_update", "models": models, "current_load": 0, "facts": facts});
    worker.send(&update).await;
    all_read(daemon, &mut worker).await;
    worker
}

fn event(id: &str, choice: &Value) -> String {
    let chunk = json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

fn delta(id: &str, text: &str) -> String {
    event(id, &json!({"index": 0, "delta": {"content": text}, "finish_reason": null}))
}

fn begin(id: &str) -> String {
    event(
        id,
        &json!({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}),
    )
}

fn finish(id: &str) -> String {
    event(id, &json!({"index": 0, "delta": {}, "finish_reason": "stop"}))
}

/// A chat, of which the worker has sent the beginning.
async fn begun(daemon: &Daemon, worker: &mut FakeWorker, text: &str) -> (Job, Streaming) {
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, &begin("first")).await;
    worker.chunk(&job, &delta("first", text)).await;
    let mut answer = asked.answer().await;
    until(&mut answer, text).await;
    (job, answer)
}

/// Reads until this text is there. Returns all that was read.
async fn until(answer: &mut Streaming, text: &str) -> String {
    let mut got = String::new();
    while !got.contains(text) {
        let chunk = answer.next_chunk().await.expect("the stream goes on");
        got.push_str(&String::from_utf8_lossy(&chunk));
    }
    got
}

/// The text of a chat's deltas.
fn text_of(stream: &str) -> String {
    events(stream)
        .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

fn events(stream: &str) -> impl Iterator<Item = Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
}

/// Sends the rest of a chat, as a worker does that was sent its beginning.
async fn go_on(worker: &mut FakeWorker, job: &Job, text: &str) {
    for part in
        [begin("other"), delta("other", text), finish("other"), "data: [DONE]\n\n".to_owned()]
    {
        worker.chunk(job, &part).await;
    }
    worker.finish(job).await;
}

/// The last message of a request.
fn last_message(job: &Job) -> Value {
    let body: Value = serde_json::from_slice(&job.body).unwrap();
    body["messages"].as_array().unwrap().last().unwrap().clone()
}

async fn another_worker_goes_on(form: Form) {
    let daemon = serve().start().await;
    let mut first = join(&daemon, form, "first").await;
    let (job, mut answer) = begun(&daemon, &mut first, "one two").await;
    assert_eq!(answer.header("x-warren-resume"), Some("same-model"));
    first.chunk(&job, &delta("first", " lost")[..30]).await;
    let mut second = join(&daemon, form, "second").await;
    first.vanish();
    let rest = second.expect_job().await;
    let last = last_message(&rest);
    assert_eq!((&last["role"], &last["content"]), (&json!("assistant"), &json!("one two")));
    let body: Value = serde_json::from_slice(&rest.body).unwrap();
    assert_eq!(body["max_tokens"], 8, "one token of nine was delivered: {body}");
    go_on(&mut second, &rest, " three").await;
    let seen = until(&mut answer, "[DONE]").await;
    assert_eq!(text_of(&seen), " three");
    assert!(seen.starts_with(": resumed on second after 7 characters\n\n"), "{seen}");
    let ids: Vec<Value> = events(&seen).map(|event| event["id"].clone()).collect();
    assert!(ids.iter().all(|id| id == "first"), "{ids:?}");
    assert_eq!(answer.finish().await.text(), "");
    daemon.is_idle().await;
    let counted = daemon.metrics().await;
    assert!(counted.contains("warren_answers_resumed_total{outcome=\"resumed\"} 1"), "{counted}");
    let requests = daemon.admin().get("/admin/requests").await.json();
    let resumes = &requests["requests"][0]["resumes"];
    assert_eq!(*resumes, json!([{"from": "first", "to": "second", "characters": 7}]), "{requests}");
}

#[tokio::test]
async fn where_it_is_not_wanted_the_answer_ends_as_ever() {
    let off = serve().set("--resume-answers", "off").start().await;
    let on = serve().start().await;
    let (_, key) = make_key(&on, json!({"limits": {"resume_answers": "off"}})).await;
    let plain = |daemon: &Daemon| daemon.client().post(CHAT, &ask(true));
    let requests = [
        (&off, plain(&off)),
        (&on, plain(&on).header("x-warren-resume", "off")),
        (&on, with_key(&on, &key).post(CHAT, &ask(true))),
    ];
    for (daemon, request) in requests {
        let mut first = join(daemon, Form::Binary, "first").await;
        let asked = request.open().await;
        let job = first.expect_job().await;
        first.chunk(&job, &delta("first", "one")).await;
        let mut answer = asked.answer().await;
        assert_eq!(answer.header("x-warren-resume"), None);
        until(&mut answer, "one").await;
        let second = join(daemon, Form::Binary, "second").await;
        first.vanish();
        let rest = answer.finish().await.text();
        assert!(rest.contains("\"error\""), "{rest}");
        assert!(!second.has_unread());
        second.close().await;
        daemon.has_workers(0).await;
    }
}

#[tokio::test]
async fn a_request_turns_it_on_and_a_wrong_word_is_refused() {
    let daemon = serve().set("--resume-answers", "off").start().await;
    let mut first = join(&daemon, Form::Binary, "first").await;
    let wrong = daemon.client().post(CHAT, &ask(true)).header("x-warren-resume", "perhaps");
    let refused = wrong.send().await;
    let words = refused.json()["error"]["message"].to_string();
    assert!(refused.status == 400 && words.contains("off or same-model"), "{words}");
    let wanted = daemon.client().post(CHAT, &ask(true)).header("x-warren-resume", "same-model");
    let asked = wanted.open().await;
    let job = first.expect_job().await;
    assert_eq!(job.header("x-warren-resume"), None, "it stays here");
    first.chunk(&job, &delta("first", "one")).await;
    let answer = asked.answer().await;
    assert_eq!(answer.header("x-warren-resume"), Some("same-model"));
}

#[tokio::test]
async fn a_trailer_tells_how_often() {
    let daemon = serve().start().await;
    let mut first = join(&daemon, Form::Binary, "first").await;
    let asked = daemon.client().post(CHAT, &ask(true)).header("te", "trailers").open().await;
    let job = first.expect_job().await;
    first.chunk(&job, &delta("first", "one")).await;
    let mut answer = asked.answer().await;
    assert_eq!(answer.header("trailer"), Some("x-warren-resumed"));
    until(&mut answer, "one").await;
    let mut second = join(&daemon, Form::Binary, "second").await;
    first.vanish();
    let rest = second.expect_job().await;
    go_on(&mut second, &rest, " two").await;
    until(&mut answer, "[DONE]").await;
    assert_eq!(answer.trailers().await, ["x-warren-resumed: 1"]);
}
