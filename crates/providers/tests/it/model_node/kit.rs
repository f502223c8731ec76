//! Links to nodes in the hands of a test.

use std::ops::{Deref, DerefMut};

use access::{Keys, LenderRules, Token};
use base::{Endpoint, JobId, Live};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method};
use providers::{ModelNodes, NodeSettings};
use scheduler::{Answer, Job, JobRequest, Scheduler};
use serde_json::{Value, json};

use crate::kit::FarEnd;
pub(crate) use crate::kit::read;

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) keys: Keys,
    nodes: ModelNodes,
    next: u128,
}

/// The node's end.
pub(crate) struct Node(FarEnd);

impl Kit {
    pub(crate) fn new() -> Self {
        let (scheduler, keys) = (crate::kit::scheduler(), Keys::default());
        let secret = Some(Token::new(&"good".into()));
        let settings =
            NodeSettings { lenders: LenderRules { secret: Live::new(secret), keys: keys.clone() } };
        let nodes = ModelNodes::new(settings, scheduler.clone());
        Self { scheduler, keys, nodes, next: 0 }
    }

    /// A link whose node says this of itself.
    pub(crate) fn link(&self, query: &str) -> Node {
        let (nodes, query) = (self.nodes.clone(), query.to_owned());
        Node(FarEnd::connect(|link, outbox| async move { nodes.serve(link, outbox, &query).await }))
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
        let id = JobId::from_random(self.next);
        // Small to the dispatcher: what is too long for a node is for its codec to refuse.
        let job = Job::new(id, Endpoint::ChatCompletions, request, Box::new(()));
        self.scheduler.submit(Job { size: 13, ..job })
    }
}

impl Node {
    /// A piece of a task's text; none ends it.
    pub(crate) fn result(&self, id: i64, text: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_i32(i32::try_from(id).unwrap());
        frame.put_slice(text);
        self.send(frame.freeze());
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

    pub(crate) fn drive(self) {
        drop(self.0.drive());
    }
}

impl Deref for Node {
    type Target = FarEnd;

    fn deref(&self) -> &FarEnd {
        &self.0
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut FarEnd {
        &mut self.0
    }
}
