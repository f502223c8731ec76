//! The mock model server: answers at once whatever a request asks for, in one thread, and notes
//! when streams were aborted.
//!
//! - `POST /v1/chat/completions`: see [`crate::payload`]
//! - `GET /v1/models`: the one model
//! - `GET /bench/aborts?from=ID&count=N&wait_ms=MS`: see [`aborts`]

mod aborts;
mod answer;

use std::{convert::Infallible, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    child,
    payload::{self, BenchRequest, HEAD, MODEL},
};
use aborts::Aborts;
pub(crate) use aborts::{fetch, now};
use answer::{AnswerBody, Pages};

const BODY_IDLE: Duration = Duration::from_secs(60);

/// Serves on a free port, which it prints to stdout, until stdin ends.
pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    child::announce(listener.local_addr()?)?;
    tokio::select! {
        () = serve(listener, None) => Ok(()),
        () = child::abandoned() => Ok(()),
    }
}

/// Serves on this port until a signal ends it, as model engines do.
pub(crate) async fn engine(model: &Path, port: u16) -> Result<()> {
    model.metadata().with_context(|| format!("no {}", model.display()))?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("listen")?;
    serve(listener, None).await;
    Ok(())
}

/// Serves on a free loopback port inside this process.
#[cfg(test)]
pub(crate) async fn start() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, None));
    addr
}

/// Serves until it is dropped. With `steps`, each chunk of a stream after its burst, and its end, takes one permit.
pub(crate) async fn serve(listener: TcpListener, steps: Option<Arc<Semaphore>>) {
    let shared = Arc::new(Shared { aborts: Arc::default(), pages: Pages::new(steps) });
    loop {
        match listener.accept().await {
            Ok((socket, _)) => drop(tokio::spawn(connection(socket, shared.clone()))),
            // Out of file descriptors: others will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

struct Shared {
    aborts: Arc<Aborts>,
    pages: Pages,
}

async fn connection(socket: TcpStream, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(handle(request, &shared).await) }
    });
    // An error here is a client that left: noted by the body it leaves behind.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

async fn handle(request: Request<Incoming>, shared: &Shared) -> Response<AnswerBody> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/v1/chat/completions") => chat(request.into_body(), shared).await,
        (&Method::GET, "/v1/models") => json(models()),
        (&Method::GET, "/bench/aborts") => {
            json(aborts::answer(&shared.aborts, request.uri().query().unwrap_or_default()).await)
        }
        _ => refuse(StatusCode::NOT_FOUND, "nothing here"),
    }
}

async fn chat(body: Incoming, shared: &Shared) -> Response<AnswerBody> {
    let Some((head, length)) = drain(body).await else {
        return refuse(StatusCode::BAD_REQUEST, "the body broke off");
    };
    match BenchRequest::parse(&head) {
        None => refuse(StatusCode::BAD_REQUEST, "the body asks for nothing"),
        // Longer is right too: a server may have added a field.
        Some((_, size)) if length < size => refuse(StatusCode::BAD_REQUEST, "the body is short"),
        Some((ask, _)) => give(ask, shared),
    }
}

fn give(ask: BenchRequest, shared: &Shared) -> Response<AnswerBody> {
    match ask.answer {
        payload::Answer::Plain { bytes } => json(shared.pages.plain(bytes)),
        payload::Answer::Stream { chunks, burst, gap_ms } => {
            let guard = shared.aborts.guard(ask.id);
            let gap = Duration::from_millis(gap_ms);
            let body = shared.pages.stream(chunks, burst, gap, guard);
            typed(StatusCode::OK, "text/event-stream", body)
        }
    }
}

/// Reads a body to its end; returns its first bytes and its length.
async fn drain(mut body: Incoming) -> Option<(Bytes, usize)> {
    let (mut head, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = timeout(BODY_IDLE, body.frame()).await.ok()? {
        if let Ok(data) = frame.ok()?.into_data() {
            length += data.len();
            head.extend_from_slice(&data[..data.len().min(HEAD - head.len())]);
        }
    }
    Some((head.freeze(), length))
}

fn models() -> Bytes {
    let body = format!(
        "{{\"object\":\"list\",\"data\":[{{\"id\":\"{MODEL}\",\"object\":\"model\",\"created\":0,\
         \"owned_by\":\"benches\"}}]}}"
    );
    body.into()
}

fn json(body: Bytes) -> Response<AnswerBody> {
    typed(StatusCode::OK, "application/json", AnswerBody::whole(body))
}

fn refuse(status: StatusCode, why: &str) -> Response<AnswerBody> {
    let body =
        format!("{{\"error\":{{\"message\":\"{why}\",\"type\":\"invalid_request_error\"}}}}");
    typed(status, "application/json", AnswerBody::whole(body.into()))
}

fn typed(status: StatusCode, kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http1::Link, payload::Answer};

    async fn post(body: Bytes) -> (StatusCode, Vec<u8>) {
        let mut link = Link::open(start().await).await.unwrap();
        let response = link.chat(body).await.unwrap();
        let status = response.status();
        let (mut body, mut all) = (response.into_body(), Vec::new());
        while let Some(frame) = body.frame().await {
            all.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        (status, all)
    }

    #[tokio::test]
    async fn it_answers_what_is_asked() {
        for answer in [Answer::Plain { bytes: 2000 }, Answer::back_to_back(64)] {
            let (status, body) = post(BenchRequest { id: 0, answer }.body(200_000)).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(body, answer.expected());
        }
    }

    #[tokio::test]
    async fn a_body_that_lost_bytes_is_refused() {
        let whole = BenchRequest { id: 0, answer: Answer::Plain { bytes: 100 } }.body(5000);
        assert_eq!(post(whole.slice(..4999)).await.0, StatusCode::BAD_REQUEST);
        assert_eq!(post(Bytes::from_static(b"{}")).await.0, StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn it_has_one_model() {
        let limit = Duration::from_secs(5);
        let body = crate::http1::get(start().await, "/v1/models", limit).await.unwrap();
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(json["data"][0]["id"], MODEL);
    }
}
