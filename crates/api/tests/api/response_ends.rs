//! How the answers of responses with state end.

use std::sync::{Arc, mpsc};

use base::{CancelReason, Continuation, Endpoint, Endpoints, FactsByModel, ModelFacts, ProviderId};
use http::Method;
use http_body_util::{BodyExt, Limited};
use scheduler::{Assignment, Membership, Offer, Provider};
use serde_json::{Value, json};
use store::SqliteStore;
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

use crate::{
    kit::{Kit, head, offer, text},
    room_kit::{JSON, answer_of, post},
    store_kit::{Done, ToldStore},
    stored_responses::{EVENTS, Keeper, answer},
};

/// A server that keeps responses in such a store.
struct Told {
    kit: Kit,
    store: Arc<ToldStore>,
    done: Receiver<Done>,
    letting: mpsc::SyncSender<()>,
    _directory: TempDir,
}

fn told() -> Told {
    let (kit, directory) = (Kit::new(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(&directory.path().join("warren.db")).unwrap();
    let (store, done, letting) = ToldStore::new(store);
    let store = Arc::new(store);
    kit.api.keep_responses(Arc::<ToldStore>::clone(&store));
    kit.serves(&["m"], &[Endpoint::Responses]);
    Told { kit, store, done, letting, _directory: directory }
}

fn event(kind: &str, number: u64, response: &Value) -> String {
    let data = json!({"type": kind, "sequence_number": number, "response": response});
    format!("event: {kind}\ndata: {data}\n\n")
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_background_has_its_end_whoever_asks_the_store_meanwhile() {
    // Destructured by name: the directory has to outlive the test.
    let Told { mut kit, store: _store, mut done, letting, _directory } = told();
    let body = json!({"model": "m", "input": "hi", "background": true, "stream": true});
    let stream = kit.send(post("/v1/responses", body.to_string())).await;
    let mut assignment = kit.assigned().await;
    assignment.answer.head(head(EVENTS)).unwrap();
    assignment.answer.chunk(event("response.completed", 0, &answer("a")).into()).unwrap();
    assignment.answer.end();
    while done.recv().await != Some(Done::Ended) {}
    // The end is in the store, and has not reached the stream. Now the task looks into the store.
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    while done.recv().await != Some(Done::Asked) {}
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    letting.send(()).unwrap();
    let stream = text(stream).await;
    assert!(stream.contains("event: response.completed\n"), "{stream}");
    kit.api.background_ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_kept_says_so_also_if_its_conversation_cannot_be_written() {
    let mut told = told();
    let (_, made) = answer_of(told.kit.send(post("/v1/conversations", "{}")).await).await;
    told.store.refuse_items();
    let body = json!({"model": "m", "input": "hi", "conversation": made["id"]}).to_string();
    let answered = answer("a").to_string();
    let kit = &mut told.kit;
    let response = kit.post_for_all("/v1/responses", &body, head(&[JSON]), answered).await;
    let (status, response) = answer_of(response).await;
    assert_eq!((status, &response["store"]), (200, &json!(true)), "{response}");
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(kit.send(crate::room_kit::get(&path)).await.status(), 200);
}

/// A provider that goes on with others' answers.
struct Continuing(tokio::sync::mpsc::Sender<Assignment>);

impl Provider for Continuing {
    fn name(&self) -> &str {
        "continuing"
    }

    fn facts(&self) -> Arc<FactsByModel> {
        Arc::new(facts())
    }

    fn assign(&self, assignment: Assignment) {
        self.0.try_send(assignment).unwrap();
    }
    fn cancel(&self, _: base::JobId, _: CancelReason) {}
    fn drain(&self, _: &str, _: std::time::Duration) {}
    fn retire(&self, _: bool) {}
    fn refresh(&self, _: &str) {}
}

fn facts() -> FactsByModel {
    let continuation = Some(Continuation::LastMessage);
    [("r".to_owned(), ModelFacts { continuation, ..ModelFacts::default() })].into_iter().collect()
}

fn goes_on(kit: &Kit, id: u64) -> Membership {
    let offer = Offer { endpoints: Endpoints::only(Endpoint::ChatCompletions), ..offer(&["r"]) };
    let provider = Arc::new(Continuing(kit.sender.clone()));
    let membership = kit.scheduler.join(ProviderId::from_random(id), offer, provider);
    membership.memory(&facts());
    membership
}

fn chunk(choice: &Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "r",
        "choices": [choice]});
    format!("data: {chunk}\n\n")
}

fn delta(text: &str) -> String {
    chunk(&json!({"index": 0, "delta": {"content": text}, "finish_reason": null}))
}

#[tokio::test(start_paused = true)]
async fn the_trailer_that_is_announced_follows_an_answer_that_is_kept() {
    let mut keeper = Keeper::new(&[Endpoint::Responses]);
    let first = goes_on(&keeper.kit, 7);
    let body = json!({"model": "r", "input": "hi", "stream": true, "store": true});
    let mut request = keeper.request(Method::POST, "/v1/responses", &body);
    request.headers_mut().insert("te", "trailers".parse().unwrap());
    let (response, mut assignment) = keeper.kit.send_for_later(request).await;
    assignment.answer.head(head(EVENTS)).unwrap();
    assignment.answer.chunk(delta("one").into()).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.headers()["trailer"], "x-warren-resumed");
    let body = Limited::new(response.into_body(), 1 << 20);
    #[expect(clippy::disallowed_methods, reason = "at most a MiB is read")]
    let collected = tokio::spawn(body.collect());
    let _second = goes_on(&keeper.kit, 8);
    drop((first, assignment));
    let mut rest = keeper.kit.assigned().await;
    rest.answer.head(head(EVENTS)).unwrap();
    let finish = chunk(&json!({"index": 0, "delta": {}, "finish_reason": "stop"}));
    for part in [delta(" two"), finish, "data: [DONE]\n\n".to_owned()] {
        rest.answer.chunk(part.into()).unwrap();
    }
    rest.answer.end();
    let collected = collected.await.unwrap().unwrap();
    let trailers = collected.trailers().cloned().expect("trailers");
    assert_eq!(trailers["x-warren-resumed"], "1");
    let stream = String::from_utf8(collected.to_bytes().to_vec()).unwrap();
    assert!(stream.contains("event: response.completed\n"), "{stream}");
}
