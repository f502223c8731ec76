//! A model server of the replay, in real time that runs faster: it answers when its engine has.
//!
//! - `POST /v1/chat/completions`: a stream; its first chunk comes with the first token, the others with the last one
//! - `GET /v1/models`: the one model
//! - `GET /replay/counts`: [`Counts`](super::engine::Counts)

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    BYTES_PER_TOKEN,
    engine::{Ask, Engine, Event},
};
use crate::{
    child,
    payload::{self, MODEL},
};

/// The largest request.
const MOST: usize = 4 << 20;

/// Where the messages begin, which are the last field of each request.
const MESSAGES: &[u8] = b"\"messages\":";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves on a free port, printed on stdout, until stdin ends. `pace` seconds of the load pass in a second.
pub(crate) async fn run(pace: f64) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    child::announce(listener.local_addr()?)?;
    let server = Arc::new(Server::new(pace));
    tokio::select! {
        () = accept(listener, &server) => Ok(()),
        () = server.drive() => Ok(()),
        () = child::abandoned() => Ok(()),
    }
}

async fn accept(listener: TcpListener, server: &Arc<Server>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => drop(tokio::spawn(connection(socket, server.clone()))),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(socket: TcpStream, server: Arc<Server>) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    // An error here is a client that left.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

struct Server {
    begun: Instant,
    pace: f64,
    asked: Notify,
    state: Mutex<State>,
}

struct State {
    engine: Engine,
    asks: u64,
    /// Whom to tell of each event.
    waiting: HashMap<(u64, bool), oneshot::Sender<()>>,
}

impl Server {
    fn new(pace: f64) -> Self {
        let state = State { engine: Engine::new(), asks: 0, waiting: HashMap::new() };
        let (begun, asked) = (Instant::now(), Notify::new());
        Self { begun, pace, asked, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the load, in seconds.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() * self.pace
    }

    /// Tells those who wait when something has happened.
    async fn drive(&self) {
        const LONG: f64 = 3600.0;
        loop {
            let next = {
                let mut state = self.state();
                state.advance(self.now());
                state.engine.next()
            };
            let due = Duration::from_secs_f64(next.map_or(LONG, |next| next / self.pace));
            tokio::select! {
                () = sleep_until(self.begun + due) => {}
                () = self.asked.notified() => {}
            }
        }
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/chat/completions") => self.chat(request.into_body()).await,
            (&Method::GET, "/v1/models") => {
                let model =
                    json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "bench"});
                plain(StatusCode::OK, &json!({"object": "list", "data": [model]}))
            }
            (&Method::GET, "/replay/counts") => {
                let counts = self.state().engine.counts();
                plain(StatusCode::OK, &json!(counts))
            }
            _ => plain(StatusCode::NOT_FOUND, &json!({})),
        }
    }

    async fn chat(&self, body: Incoming) -> Response<Body> {
        #[expect(clippy::disallowed_methods, reason = "it is limited to 4 MiB")]
        let body = Limited::new(body, MOST).collect().await.map(|whole| whole.to_bytes());
        let Some((prompt, answer)) = body.ok().and_then(|body| read(&body)) else {
            return plain(StatusCode::BAD_REQUEST, &json!({"error": "an odd request"}));
        };
        let (first, done, usage) = self.ask(prompt, answer);
        let _gone = first.await;
        let whole = unfold(Some(done), move |done| {
            let usage = usage.clone();
            async move {
                let done = done?;
                let _gone = done.await;
                Some((usage, None))
            }
        });
        let first = futures_util::stream::once(async { Bytes::from(payload::chunk(0)) });
        let frames = futures_util::StreamExt::chain(first, whole);
        let frames = futures_util::StreamExt::map(frames, |bytes| Ok(Frame::data(bytes)));
        typed(StatusCode::OK, "text/event-stream", StreamBody::new(frames).boxed_unsync())
    }

    /// Gives the engine a request. Returns when its first token is there and when its last one is, and what is said at the end.
    fn ask(
        &self,
        prompt: Vec<u8>,
        answer: u32,
    ) -> (oneshot::Receiver<()>, oneshot::Receiver<()>, Bytes) {
        let (first, done) = (oneshot::channel(), oneshot::channel());
        let mut state = self.state();
        state.advance(self.now());
        state.asks += 1;
        let id = state.asks;
        state.waiting.extend([((id, false), first.0), ((id, true), done.0)]);
        let usage = last_words(prompt.len(), answer);
        state.engine.ask(Ask { id, prompt, answer });
        self.asked.notify_one();
        (first.1, done.1, usage)
    }
}

impl State {
    fn advance(&mut self, to: f64) {
        for event in self.engine.advance(to) {
            let who = match event {
                Event::First(id) => (id, false),
                Event::Done(id) => (id, true),
            };
            // It may have gone.
            let _told = self.waiting.remove(&who).map(|who| who.send(()));
        }
    }
}

/// The messages as a list that is not closed, and the tokens of the answer.
fn read(body: &[u8]) -> Option<(Vec<u8>, u32)> {
    #[derive(serde::Deserialize)]
    struct Asked {
        max_tokens: u32,
    }
    let asked: Asked = serde_json::from_slice(body).ok()?;
    let at = memchr::memmem::find(body, MESSAGES)? + MESSAGES.len();
    let messages = body.get(at..)?.strip_suffix(b"]}")?;
    Some((messages.to_vec(), asked.max_tokens))
}

fn last_words(prompt: usize, answer: u32) -> Bytes {
    let usage = json!({"prompt_tokens": prompt / BYTES_PER_TOKEN, "completion_tokens": answer,
        "total_tokens": prompt / BYTES_PER_TOKEN + answer as usize});
    let last = json!({"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0,
        "model": MODEL, "choices": [], "usage": usage});
    format!("data: {last}\n\ndata: [DONE]\n\n").into()
}

fn plain(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let body = http_body_util::Full::new(Bytes::from(value.to_string()));
    typed(status, "application/json", body.boxed_unsync())
}

fn typed(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http1::Link, replay::talk::Talk};

    #[tokio::test]
    async fn it_answers_when_its_engine_has() {
        let server = Arc::new(Server::new(1_000.0));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn({
            let server = server.clone();
            async move { accept(listener, &server).await }
        });
        tokio::spawn({
            let server = server.clone();
            async move { server.drive().await }
        });
        let talk = Talk::new(1, 3, 10.0);
        let mut link = Link::open(addr).await.unwrap();
        for turn in 0..2 {
            let body = talk.conversations[0].body(turn);
            let response = link.chat(body).await.unwrap();
            assert_eq!(response.status(), 200);
            let answer = crate::http1::read(response.into_body()).await.unwrap();
            assert!(answer.ends_with(b"data: [DONE]\n\n"));
            assert!(link.ready().await);
        }
        let counts = server.state().engine.counts();
        assert_eq!(counts.requests, 2);
        assert_eq!(counts.known, talk.conversations[0].kept(0) as u64);
    }
}
