//! A model server in the hands of a test: scriptable to the byte, and counting.

mod chat;
mod media;
mod ollama;
mod reply;
mod serve;
mod story;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{net::TcpSocket, sync::watch};

pub use self::{
    chat::{CHAT_MODELS, ChatScript},
    media::{form, form_fields, media_backend, sound},
    ollama::{MockOllama, OLLAMA_CONTEXT, OllamaModel},
    reply::{Gate, Reply, Step},
    story::{STORY_MODELS, Story},
};
use crate::{
    http1::Head,
    sockets::{Task, accept, any_port, listen},
    wait::within,
};

/// How many requests are kept for [`MockBackend::request`]; the oldest are dropped.
const MAX_KEPT: usize = 1_024;

/// The fates of the requests to a backend. Model lists do not count, nor do probes of
/// whether a path is there (see [`is_probe`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub started: u64,
    /// Of those, the ones that were answered to the end of their script.
    pub answered: u64,
    /// Of those, the ones whose connection the far end closed before that.
    pub aborted: u64,
}

impl Counts {
    /// Requests that are neither answered nor aborted.
    pub fn in_flight(&self) -> u64 {
        self.started - self.answered - self.aborted
    }
}

#[derive(Debug, Clone)]
pub struct Received {
    /// `POST` or the like.
    pub method: String,
    pub target: String,
    pub head: Head,
    pub body: Bytes,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as JSON, or null when it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Whether a request only asks if its path is there: it has an empty object for a body, the
/// beginning of one, or a query without documents. It is told so (400, or 404), is not counted or kept, and uses up no reply.
pub fn is_probe(received: &Received) -> bool {
    received.method == "POST" && matches!(&*received.body, b"{}" | b"{" | br#"{"query":""}"#)
}

/// How a request is answered that no reply was lined up for.
type Script = Box<dyn Fn(&Received) -> Reply + Send + Sync>;

/// Replies to requests that do not count, if any.
type Telling = Box<dyn Fn(&Received) -> Option<Reply> + Send + Sync>;

pub(crate) struct Shared {
    counts: watch::Sender<Counts>,
    arrivals: watch::Sender<u64>,
    kept: Mutex<VecDeque<Received>>,
    lined_up: Mutex<VecDeque<Reply>>,
    script: Mutex<Script>,
    telling: Mutex<Telling>,
    models: Mutex<Vec<String>>,
    /// The answers to `GET` at these paths.
    gets: Mutex<HashMap<String, Value>>,
    /// The paths that are answered; `None`: every path.
    only: Mutex<Option<Vec<String>>>,
    /// Whether it still loads its model.
    loads: AtomicBool,
}

impl Shared {
    /// Whether a request asks for a path, without its query, that is not there.
    fn is_missing(&self, received: &Received) -> bool {
        let path = received.target.split('?').next().unwrap_or_default();
        let only = self.only.lock().unwrap();
        only.as_ref().is_some_and(|only| !only.iter().any(|served| served == path))
    }

    fn keep(&self, received: Received) {
        let mut kept = self.kept.lock().unwrap();
        if kept.len() == MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(received);
        self.arrivals.send_modify(|arrivals| *arrivals += 1);
    }

    fn reply_to(&self, received: &Received) -> Reply {
        if self.is_missing(received) {
            return Reply::file_not_found();
        }
        let next = self.lined_up.lock().unwrap().pop_front();
        next.unwrap_or_else(|| (self.script.lock().unwrap())(received))
    }
}

/// A model server on a port of its own. Dropping it closes every connection.
pub struct MockBackend {
    address: SocketAddr,
    shared: Arc<Shared>,
    _server: Task,
}

impl fmt::Debug for MockBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = *self.shared.counts.borrow();
        f.debug_struct("MockBackend")
            .field("address", &self.address)
            .field("counts", &counts)
            .finish()
    }
}

impl MockBackend {
    /// A backend with these models that answers every request with [`Reply::completion`].
    pub async fn start(models: &[&str]) -> Self {
        Self::start_at(any_port(), models).await
    }

    /// The same at a given address, such as that of a backend that was stopped.
    pub async fn start_at(address: SocketAddr, models: &[&str]) -> Self {
        let (listener, address) = listen(address).await;
        let shared = Arc::new(Shared {
            counts: watch::Sender::new(Counts::default()),
            arrivals: watch::Sender::new(0),
            kept: Mutex::default(),
            lined_up: Mutex::default(),
            script: Mutex::new(Box::new(|_| Reply::completion("hello"))),
            telling: Mutex::new(Box::new(|_| None)),
            models: Mutex::new(models.iter().map(|&model| model.to_owned()).collect()),
            gets: Mutex::default(),
            only: Mutex::default(),
            loads: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let server = accept(listener, move |stream| {
            let shared = Arc::clone(&own);
            async move {
                // A connection that breaks is a matter of the test, not of the backend.
                let _broken = serve::connection(stream, &shared).await;
            }
        });
        Self { address, shared, _server: server }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lines up the reply for the next request that has none; each is used once, in order.
    pub fn then(&self, reply: Reply) {
        self.shared.lined_up.lock().unwrap().push_back(reply);
    }

    /// Decides how to answer every request that no reply is lined up for.
    pub fn answer_with(&self, script: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// Answers what only asks how things are: it is not counted or kept, and uses up no reply.
    pub fn tell_with(&self, telling: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) {
        *self.shared.telling.lock().unwrap() = Box::new(telling);
    }

    /// Answers posts to these paths only. Any other is not found, in the words of llama.cpp; such a
    /// request counts, but uses up no reply.
    pub fn answers_only(&self, paths: &[&str]) {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        *self.shared.only.lock().unwrap() = Some(paths);
    }

    pub fn set_models(&self, models: &[&str]) {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        *self.shared.models.lock().unwrap() = models;
    }

    /// Whether it says of every request that its model is still being loaded, as llama.cpp does (503).
    pub fn set_loading(&self, loads: bool) {
        self.shared.loads.store(loads, Ordering::SeqCst);
    }

    /// Answers `GET` at this path with this JSON.
    pub fn set_get(&self, path: &str, json: Value) {
        self.shared.gets.lock().unwrap().insert(path.to_owned(), json);
    }

    /// The next request, in the order they came in.
    pub async fn request(&self) -> Received {
        let mut arrivals = self.shared.arrivals.subscribe();
        within("a request at the backend", async move {
            loop {
                arrivals.borrow_and_update();
                let next = self.shared.kept.lock().unwrap().pop_front();
                if let Some(received) = next {
                    return received;
                }
                arrivals.changed().await.expect("the backend is there");
            }
        })
        .await
    }

    pub fn counts(&self) -> Counts {
        *self.shared.counts.borrow()
    }

    pub async fn reaches(&self, what: &str, wished: impl Fn(Counts) -> bool) -> Counts {
        let mut counts = self.shared.counts.subscribe();
        let reached = counts.wait_for(|counts| wished(*counts));
        *within(what, reached).await.expect("the backend is there")
    }

    pub async fn aborted(&self, times: u64) {
        self.reaches("an abort at the backend", |counts| counts.aborted >= times).await;
    }
}

/// A port where connections are refused: it is taken, but nobody listens. Dropping it frees it.
#[derive(Debug)]
pub struct RefusingPort(TcpSocket);

impl RefusingPort {
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(any_port()).expect("a port");
        Self(socket)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn answers_counts_and_keeps_what_it_got() {
        let backend = MockBackend::start(&["m"]).await;
        let client = Client::new(backend.address()).with_header("x-one", "1");
        let answer = client.post_json("/v1/chat/completions?a=b", &json!({"model": "m"})).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
        let got = backend.request().await;
        assert_eq!(
            (got.method.as_str(), got.target.as_str()),
            ("POST", "/v1/chat/completions?a=b")
        );
        assert_eq!((got.header("x-one"), got.json()), (Some("1"), json!({"model": "m"})));
        assert_eq!(backend.counts(), Counts { started: 1, answered: 1, aborted: 0 });
        let models = client.get("/v1/models").await.json();
        assert_eq!(models["data"][0]["id"], "m");
    }

    #[tokio::test]
    async fn a_stream_comes_step_by_step_and_its_abort_is_seen() {
        let backend = MockBackend::start(&["m"]).await;
        let gate = Gate::closed();
        backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
        let client = Client::new(backend.address());
        let mut answer = client.post("/v1/chat/completions", &json!({"model": "m"})).start().await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        gate.open(1);
        assert_eq!(answer.next_chunk().await.unwrap(), "data: 1\n\n");
        assert_eq!(backend.counts().in_flight(), 1);
        drop(answer);
        backend.aborted(1).await;
        assert_eq!(backend.counts().in_flight(), 0);
    }

    #[tokio::test]
    async fn a_connection_is_kept_and_can_be_reset_mid_stream() {
        let backend = MockBackend::start(&["m"]).await;
        let client = Client::new(backend.address());
        let request = client.post("/v1/chat/completions", &json!({"model": "m"}));
        let (_, mut connection) = request.clone().start().await.finish_and_keep().await;
        backend.then(Reply::stream(["data: 1\n\n"], &Gate::opened()).broken());
        connection.send(&request).await;
        let answer = connection.answer().await;
        assert!(answer.try_finish().await.is_err());
        assert_eq!(backend.counts().started, 2);
    }

    #[tokio::test]
    async fn a_missing_path_uses_up_no_reply_and_a_probe_does_not_count() {
        let backend = MockBackend::start(&["m"]).await;
        backend.answers_only(&["/v1/chat/completions"]);
        backend.then(Reply::completion("kept"));
        let client = Client::new(backend.address());
        let probe = async |path| client.post_json(path, &json!({})).await;
        assert_eq!(probe("/v1/chat/completions").await.status, 400);
        assert_eq!(probe("/v1/messages").await.status, 404);
        assert_eq!(backend.counts().started, 0);
        let ask = async |path| client.post_json(path, &json!({"model": "m"})).await;
        let missing = ask("/v1/messages?a=b").await;
        assert_eq!(
            (missing.status, &missing.json()["error"]["message"]),
            (404, &"File Not Found".into())
        );
        assert!(ask("/v1/chat/completions").await.text().contains("kept"));
        assert_eq!(backend.counts().answered, 2);
    }

    #[tokio::test]
    async fn while_it_loads_everything_is_unavailable() {
        let backend = MockBackend::start(&["m"]).await;
        let client = Client::new(backend.address());
        backend.set_loading(true);
        let answer = client.get("/v1/models").await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (503, &"Loading model".into())
        );
        let asked = client.post_json("/v1/chat/completions", &json!({"model": "m"})).await;
        assert_eq!((asked.status, backend.counts().started), (503, 0));
        backend.set_loading(false);
        assert_eq!(client.get("/v1/models").await.status, 200);
    }

    #[tokio::test]
    async fn a_refusing_port_refuses() {
        let port = RefusingPort::take();
        assert!(crate::Connection::try_open(port.address()).await.is_err());
    }

    #[tokio::test]
    async fn kept_requests_are_bounded() {
        let backend = MockBackend::start(&[]).await;
        let received = Received {
            method: String::new(),
            target: String::new(),
            head: Head::default(),
            body: Bytes::new(),
        };
        for _ in 0..=MAX_KEPT {
            backend.shared.keep(received.clone());
        }
        assert_eq!(backend.shared.kept.lock().unwrap().len(), MAX_KEPT);
    }
}
