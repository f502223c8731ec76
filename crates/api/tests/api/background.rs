//! Responses that are made while nobody waits.

use std::time::Duration;

use axum::body::Body;
use base::Endpoint;
use http::{Method, Response};
use scheduler::Assignment;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{head, next, sent, text},
    stored_responses::{EVENTS, JSON, Keeper, answer, responses},
};

const NATIVE: &[Endpoint] = &[Endpoint::Responses];

/// Asks for a response in the background. Gives its answer, and the job that it is.
async fn ask(keeper: &mut Keeper, more: Value) -> (Response<Body>, Assignment) {
    let mut body = json!({"model": "m", "input": "hi", "background": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = keeper.request(Method::POST, "/v1/responses", &body);
    let response = keeper.kit.send(request).await;
    assert_eq!(response.status(), 200);
    (response, keeper.kit.assigned().await)
}

async fn begun(keeper: &mut Keeper) -> (Value, String, Assignment) {
    let (response, assignment) = ask(keeper, json!({})).await;
    let queued: Value = serde_json::from_str(&text(response).await).unwrap();
    let path = format!("/v1/responses/{}", queued["id"].as_str().unwrap());
    (queued, path, assignment)
}

/// Polls, as a client does, until the response has this status.
async fn until(keeper: &Keeper, path: &str, status: &str) -> Value {
    let polling = async {
        loop {
            let (_, found) = keeper.get(path).await;
            if found["status"] == status {
                return found;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(600), polling).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_response_is_made_while_its_client_polls() {
    let mut keeper = Keeper::new(NATIVE);
    let (queued, path, mut assignment) = begun(&mut keeper).await;
    assert_eq!(
        (&queued["status"], &queued["background"], &queued["store"]),
        (&json!("queued"), &json!(true), &json!(true))
    );
    assert_eq!((&queued["model"], &queued["output"]), (&json!("m"), &json!([])));
    let given = sent(&assignment);
    assert_eq!((&given["store"], given.get("background")), (&json!(false), None));
    let next = json!({"model": "m", "input": "x", "previous_response_id": queued["id"]});
    let early = keeper.ask(Method::POST, "/v1/responses", &next).await;
    assert_eq!(early.1["error"]["code"], "previous_response_not_completed");
    assignment.answer.head(head(JSON)).unwrap();
    assignment.answer.chunk(answer("a").to_string().into()).unwrap();
    assignment.answer.end();
    let made = until(&keeper, &path, "completed").await;
    assert_eq!((&made["id"], &made["output"]), (&queued["id"], &answer("a")["output"]));
    assert_eq!((&made["background"], &made["store"]), (&json!(true), &json!(true)));
    keeper.kit.api.background_ended().await;
    let same = keeper.ask(Method::POST, &format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(same, (200, made), "what has ended stays");
}

#[tokio::test(start_paused = true)]
async fn a_response_is_cancelled_or_deleted_while_it_is_made() {
    let mut keeper = Keeper::new(NATIVE);
    for deletes in [false, true] {
        let (_, path, assignment) = begun(&mut keeper).await;
        match deletes {
            true => assert_eq!(keeper.ask(Method::DELETE, &path, &Value::Null).await.0, 200),
            false => {
                let cancel = format!("{path}/cancel");
                let (status, cancelled) = keeper.ask(Method::POST, &cancel, &Value::Null).await;
                assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
            }
        }
        keeper.kit.api.background_ended().await;
        drop(assignment);
        assert!(keeper.kit.scheduler.is_idle(), "the job has ended");
        let (status, found) = keeper.get(&path).await;
        match deletes {
            true => assert_eq!(status, 404),
            false => assert_eq!((status, &found["status"]), (200, &json!("cancelled"))),
        }
    }
    let (_, plain) =
        keeper.make(&json!({"model": "m", "input": "hi", "store": true}), &answer("a")).await;
    let path = format!("/v1/responses/{}/cancel", plain["id"].as_str().unwrap());
    let refused = keeper.ask(Method::POST, &path, &Value::Null).await;
    assert_eq!(refused.0, 400);
    assert_eq!(refused.1["error"]["message"], "Cannot cancel a synchronous response.");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_in_the_response() {
    let mut keeper = Keeper::new(NATIVE);
    let (_, path, assignment) = begun(&mut keeper).await;
    drop(assignment);
    keeper.kit.lose_provider();
    keeper.kit.scheduler.abort();
    let failed = until(&keeper, &path, "failed").await;
    assert_eq!(failed["error"]["code"], "shutting_down", "{failed}");
    keeper.kit.api.background_ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_provider_is_told_in_the_response() {
    let mut keeper = Keeper::new(NATIVE);
    let (_, path, mut assignment) = begun(&mut keeper).await;
    let refusal = scheduler::Head { status: http::StatusCode::BAD_REQUEST, ..head(JSON) };
    assignment.answer.head(refusal).unwrap();
    assignment.answer.chunk(r#"{"error":{"message":"no such tool"}}"#.into()).unwrap();
    assignment.answer.end();
    let failed = until(&keeper, &path, "failed").await;
    assert_eq!(failed["error"]["message"], "no such tool", "{failed}");
}

fn event(kind: &str, number: u64, response: &Value) -> String {
    let data = json!({"type": kind, "sequence_number": number, "response": response});
    format!("event: {kind}\ndata: {data}\n\n")
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_without_its_client_and_is_read_again_from_any_event() {
    let mut keeper = Keeper::new(NATIVE);
    let (response, mut assignment) = ask(&mut keeper, json!({"stream": true})).await;
    assignment.answer.head(head(EVENTS)).unwrap();
    let running = json!({"id": "p", "status": "in_progress", "output": []});
    assignment.answer.chunk(event("response.created", 0, &running).into()).unwrap();
    let mut body = response.into_body();
    let first = String::from_utf8(next(&mut body).await.unwrap().unwrap().to_vec()).unwrap();
    let id = responses(&first)[0]["id"].as_str().unwrap().to_owned();
    drop(body);
    assignment.answer.chunk(event("response.in_progress", 1, &running).into()).unwrap();
    let path = format!("/v1/responses/{id}");
    let resumed =
        keeper.request(Method::GET, &format!("{path}?stream=true&starting_after=0"), &Value::Null);
    let resumed = keeper.kit.send(resumed).await;
    assert_eq!(resumed.headers()["content-type"], "text/event-stream");
    assignment.answer.chunk(event("response.completed", 2, &answer("a")).into()).unwrap();
    assignment.answer.end();
    let rest = text(resumed).await;
    assert!(!rest.contains("response.created") && rest.contains("response.in_progress"), "{rest}");
    let last = responses(&rest).pop().unwrap();
    assert_eq!((&last["id"], &last["status"]), (&json!(id), &json!("completed")));
    keeper.kit.api.background_ended().await;
    let late =
        keeper.request(Method::GET, &format!("{path}?stream=true&starting_after=1"), &Value::Null);
    let late = text(keeper.kit.send(late).await).await;
    assert!(
        late.starts_with("event: response.completed\n") && late.contains("\"sequence_number\":2"),
        "{late}"
    );
    assert_eq!(responses(&late), [last]);
    let largest = format!("{path}?stream=true&starting_after={}", u64::MAX);
    let late =
        text(keeper.kit.send(keeper.request(Method::GET, &largest, &Value::Null)).await).await;
    assert!(late.starts_with("event: response.completed\n"), "{late}");
    let (_, plain) =
        keeper.make(&json!({"model": "m", "input": "hi", "store": true}), &answer("a")).await;
    let path = format!("/v1/responses/{}?stream=true", plain["id"].as_str().unwrap());
    assert_eq!(keeper.get(&path).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_key_has_no_more_than_its_share_in_the_background() {
    let mut keeper = Keeper::new(NATIVE);
    let body = json!({"model": "m", "input": "hi", "background": true});
    for _ in 0..16 {
        assert_eq!(keeper.ask(Method::POST, "/v1/responses", &body).await.0, 200);
    }
    let (status, refused) = keeper.ask(Method::POST, "/v1/responses", &body).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("too_many_background_responses")));
    keeper.kit.lose_provider();
    keeper.kit.scheduler.abort();
    keeper.kit.api.background_ended().await;
    assert!(keeper.kit.scheduler.is_idle());
}
