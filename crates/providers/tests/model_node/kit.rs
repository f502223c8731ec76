//! A server's end of a link, and a node in the hands of a test.

use std::sync::Arc;

use access::{Keys, LenderRules, Token};
use base::{Endpoint, Endpoints, JobId, ModelName, Scope};
use bytes::{BufMut, Bytes, BytesMut};
use dispatch::route::LeastLoaded;
use http::{HeaderMap, Method};
use providers::{ModelNodes, NodeSettings};
use scheduler::{
    Affinity, Answer, Config, Event, Failure, Head, Job, JobRequest, Meter, Route, Scheduler,
    Untranslated, Usage,
};
use serde_json::{Value, json};
use tokio::io::duplex;
use wire::{Frame, Link, Outbox, Role};

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) keys: Keys,
    nodes: ModelNodes,
    next: u128,
}

/// The node's end.
pub(crate) struct Node {
    link: Link,
    outbox: Outbox,
}

struct NoMeter;

impl Meter for NoMeter {
    fn feed(&mut self, _: &[u8]) {}
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

impl Kit {
    pub(crate) fn new() -> Self {
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), Vec::new());
        tokio::spawn(scheduler.clone().run());
        let keys = Keys::default();
        let secret = Some(Token::new(&"good".into()));
        let settings = NodeSettings { lenders: LenderRules { secret, keys: keys.clone() } };
        let nodes = ModelNodes::new(settings, scheduler.clone());
        Self { scheduler, keys, nodes, next: 0 }
    }

    /// A link whose node says this of itself.
    pub(crate) fn link(&self, query: &str) -> Node {
        let (near, far) = duplex(1 << 16);
        let (server, server_outbox) = Link::new(Box::pin(near), Role::Server);
        let (nodes, query) = (self.nodes.clone(), query.to_owned());
        tokio::spawn(async move { nodes.serve(server, server_outbox, &query).await });
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Node { link, outbox }
    }

    /// A node of the model `m`, with room for two tasks.
    pub(crate) async fn node(&self, name: &str) -> Node {
        let before = self.scheduler.status().workers.len();
        let node = self.link(&format!("token=good&model=m&max_concurrency=2&name={name}"));
        while self.scheduler.status().workers.len() == before {
            tokio::task::yield_now().await;
        }
        node
    }

    pub(crate) fn ask(&mut self, with: &Value) -> Answer {
        let mut chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        chat.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        self.submit(chat["stream"] == true, chat.to_string().into())
    }

    pub(crate) fn stream(&mut self) -> Answer {
        self.ask(&json!({"stream": true}))
    }

    pub(crate) fn submit(&mut self, streaming: bool, body: Bytes) -> Answer {
        self.submit_as(Method::POST, streaming, body)
    }

    pub(crate) fn submit_as(&mut self, method: Method, streaming: bool, body: Bytes) -> Answer {
        self.next += 1;
        let request = JobRequest {
            method,
            path_and_query: "/v1/chat/completions".into(),
            model: "m".into(),
            streaming,
            headers: HeaderMap::new(),
            body,
        };
        self.scheduler.submit(Job {
            id: JobId::from_random(self.next),
            scope: Scope::server(),
            model: ModelName::from("m"),
            targets: vec!["m".into()],
            endpoint: Endpoint::ChatCompletions,
            serve_as: Endpoints::only(Endpoint::ChatCompletions),
            translator: Arc::new(Untranslated(Endpoint::ChatCompletions)),
            key: "local".into(),
            size: 13,
            affinity: Affinity::default(),
            pinned: None,
            route: Route::default(),
            known: true,
            request,
            meter: Box::new(NoMeter),
        })
    }
}

impl Node {
    pub(crate) fn say(&self, frame: impl Into<Frame>) {
        self.outbox.push(frame).unwrap();
    }

    /// A piece of a task's text; none ends it.
    pub(crate) fn result(&self, id: i64, text: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_i32(i32::try_from(id).unwrap());
        frame.put_slice(text);
        self.say(frame.freeze());
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let Some(Frame::Text(text)) = self.link.next().await.unwrap() else { panic!("no text") };
        serde_json::from_str(text.as_str()).unwrap()
    }

    /// The next task.
    pub(crate) async fn task(&mut self) -> Value {
        let task = self.hear().await;
        assert_eq!(task["state"], 0, "{task}");
        task
    }

    /// The id of the next task.
    pub(crate) async fn id(&mut self) -> i64 {
        self.task().await["id"].as_i64().unwrap()
    }

    /// The next message must stop this task.
    pub(crate) async fn stopped(&mut self, id: i64) {
        assert_eq!(self.hear().await, json!({"id": id, "stop": true}));
    }

    /// Drives the link until the server closes it; its code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        while self.link.next().await.unwrap().is_some() {}
        self.link.close_reason().expect("closed with a reason")
    }

    /// Drives the link in the background.
    pub(crate) fn drive(mut self) {
        tokio::spawn(async move { while let Ok(Some(_)) = self.link.next().await {} });
    }

    /// Has all that was said taken in by the server.
    pub(crate) async fn settle(&mut self) {
        let long = std::time::Duration::from_millis(50);
        let heard = tokio::time::timeout(long, self.link.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// How many messages come until there is a pause.
    pub(crate) async fn messages(&mut self) -> usize {
        let pause = std::time::Duration::from_millis(50);
        let mut count = 0;
        while let Ok(Ok(Some(_))) = tokio::time::timeout(pause, self.link.next()).await {
            count += 1;
        }
        count
    }
}

/// The whole answer, and how it failed if it did.
pub(crate) struct Read {
    pub(crate) head: Option<Head>,
    pub(crate) body: String,
    pub(crate) failure: Option<Failure>,
}

impl Read {
    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status.as_u16())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let head = self.head.as_ref().expect("a head");
        head.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The text of a stream, or of a completion.
    pub(crate) fn text(&self) -> String {
        if self.header("content-type") == "application/json" {
            let whole: Value = serde_json::from_str(&self.body).unwrap();
            return whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        }
        let data = self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
        let text = |data: &str| {
            let chunk: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
        };
        data.map(text).collect()
    }
}

pub(crate) async fn read(answer: &mut Answer) -> Read {
    let head = match answer.head().await {
        Ok(head) => head,
        Err(failure) => return Read { head: None, body: String::new(), failure: Some(failure) },
    };
    let (head, mut body) = (Some(head), Vec::new());
    let failure = loop {
        match answer.next().await {
            Event::Chunk(chunk) => body.extend_from_slice(&chunk),
            Event::End => break None,
            Event::Failed(failure) => break Some(failure),
        }
    };
    Read { head, body: String::from_utf8(body).unwrap(), failure }
}
