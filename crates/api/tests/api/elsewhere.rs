//! Requests whose model another server has.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use api::{
    ApiError,
    elsewhere::{Carried, Elsewhere, Way},
};
use axum::body::Body;
use base::KeyId;
use http::{HeaderMap, Request, Response};
use serde_json::Value;

use crate::{
    kit::{Kit, json_of, next},
    room_kit::{post, with_bearer},
};

const CHAT: &str = "/v1/chat/completions";
const ASK: &str = r#"{"model":"there","stream":true,"messages":[]}"#;

type Soon<Output> = Pin<Box<dyn Future<Output = Output> + Send>>;

/// Another server that has every model, and keeps the headers that come there.
#[derive(Clone, Default)]
struct Other(Arc<Mutex<Vec<HeaderMap>>>);

impl Elsewhere for Other {
    fn is_for(&self, _: &KeyId) -> bool {
        true
    }

    fn find(&self, _: &KeyId) -> Soon<Result<Option<Box<dyn Way>>, ApiError>> {
        let way: Box<dyn Way> = Box::new(self.clone());
        Box::pin(async { Ok(Some(way)) })
    }
}

impl Way for Other {
    fn carry(self: Box<Self>, request: Request<Body>) -> Soon<Result<Response<Body>, ApiError>> {
        self.0.lock().unwrap().push(request.headers().clone());
        Box::pin(async { Ok(Response::new(Body::empty())) })
    }
}

/// A server whose models are all at another one, and a request with one of its keys.
fn borrowing() -> (Kit, Other, Arc<dyn Elsewhere>, Request<Body>) {
    let (kit, other) = (Kit::new(), Other::default());
    let elsewhere: Arc<dyn Elsewhere> = Arc::new(other.clone());
    kit.api.set_elsewhere(Arc::downgrade(&elsewhere));
    let request = with_bearer(post(CHAT, ASK), kit.key(None, &[]).expose());
    (kit, other, elsewhere, request)
}

#[tokio::test(start_paused = true)]
async fn what_a_client_asks_a_server_for_goes_along_to_the_other_one() {
    let (kit, other, _elsewhere, mut request) = borrowing();
    let asked = [
        ("x-warren-route", "local-only"),
        ("x-warren-resume", "off"),
        ("x-warren-provider", "w-0000000000000007"),
    ];
    for (name, value) in asked.into_iter().chain([("x-warren-else", "1"), ("cookie", "a=b")]) {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    assert_eq!(kit.send(request).await.status(), 200);
    let came = other.0.lock().unwrap().pop().unwrap();
    for (name, value) in asked {
        assert_eq!(came[name], value);
    }
    for name in ["x-warren-else", "cookie", "authorization"] {
        assert!(!came.contains_key(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_back_is_not_carried_again() {
    let (kit, other, _elsewhere, request) = borrowing();
    let credential = request.headers()["authorization"].clone();
    assert_eq!(kit.send(request).await.status(), 200);
    let mut back = post(CHAT, ASK);
    let via = other.0.lock().unwrap().pop().unwrap()["x-warren-via"].clone();
    back.headers_mut().extend([(http::header::AUTHORIZATION, credential)]);
    back.headers_mut().insert("x-warren-via", via);
    let (status, error): (u16, Value) = json_of(kit.send(back).await).await;
    let words = error["error"]["message"].to_string();
    assert!(status >= 400 && words.contains("has come back"), "{status}: {words}");
    assert!(other.0.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_carried_here_is_kept_alive_before_its_head() {
    let mut kit = Kit::new();
    let mut request = post(CHAT, ASK.replace("there", "m"));
    request.headers_mut().insert("x-warren-via", "0123456789abcdef".parse().unwrap());
    request.extensions_mut().insert(Carried);
    let response = tokio::spawn(kit.meanwhile(request));
    let _assignment = kit.assigned().await;
    let within = Duration::from_secs(200);
    let response = tokio::time::timeout(within, response).await.unwrap().unwrap();
    let sign = next(&mut response.into_body()).await.unwrap().unwrap();
    assert!(sign.starts_with(b":"), "{sign:?}");
}
