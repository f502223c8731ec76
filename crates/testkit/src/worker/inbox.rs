//! The messages that a worker gets.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use protocol::relay::binary::{ServerFrame, header_text};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{FakeWorker, Form, Job};
use crate::{sockets::reason, wait::within};

/// The messages that have come and were not asked for yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    jobs: VecDeque<Job>,
    cancels: VecDeque<(String, Value)>,
    others: VecDeque<Value>,
    arriving: HashMap<u32, Arriving>,
    closed: Option<Option<(u16, String)>>,
}

/// A request whose body has not come whole.
#[derive(Debug)]
struct Arriving {
    job: Job,
    body: BytesMut,
    whole: u64,
}

impl FakeWorker {
    /// The next request. In the binary form, once its body is whole.
    pub async fn expect_job(&mut self) -> Job {
        self.hear("a request", |inbox| inbox.jobs.pop_front()).await
    }

    /// The next cancel: the `request_id` and the reason.
    pub async fn expect_cancel(&mut self) -> (String, Value) {
        self.hear("a cancel", |inbox| inbox.cancels.pop_front()).await
    }

    /// The next message of a type that is neither `request` nor `cancel`; of those before it, none
    /// is dropped.
    pub async fn expect_message(&mut self, kind: &str) -> Value {
        let take = |inbox: &mut Inbox| {
            let at = inbox.others.iter().position(|message| message["type"] == kind)?;
            inbox.others.remove(at)
        };
        self.hear(&format!("a {kind}"), take).await
    }

    /// Waits for the server to close: the code and the reason, if it said any.
    pub async fn expect_close(&mut self) -> Option<(u16, String)> {
        self.hear("the server closing the link", |inbox| inbox.closed.clone()).await
    }

    /// Reads until the server has granted `bytes` bytes beyond a job's initial credit.
    pub async fn expect_credit(&mut self, job: &Job, bytes: u64) {
        while self.credit.get(&job.number).is_none_or(|granted| *granted < bytes) {
            self.hear_once("credit").await;
        }
    }

    /// Bytes granted so far beyond the initial credit of a job.
    pub fn credit(&self, job: &Job) -> u64 {
        self.credit.get(&job.number).copied().unwrap_or_default()
    }

    /// Whether requests or cancels were heard that no one has asked for.
    pub fn has_unread(&self) -> bool {
        !self.inbox.jobs.is_empty() || !self.inbox.cancels.is_empty()
    }

    async fn hear<T>(&mut self, what: &str, mut take: impl FnMut(&mut Inbox) -> Option<T>) -> T {
        loop {
            if let Some(taken) = take(&mut self.inbox) {
                return taken;
            }
            if let Some(closed) = &self.inbox.closed {
                panic!("the server closed the link ({closed:?}) where {what} was expected");
            }
            self.hear_once(what).await;
        }
    }

    async fn hear_once(&mut self, what: &str) {
        match within(what, self.socket.next()).await {
            Some(Ok(Message::Text(text))) => self.hear_text(&text).await,
            Some(Ok(Message::Binary(bytes))) => self.hear_frame(bytes),
            Some(Ok(Message::Close(frame))) => {
                self.inbox.closed.get_or_insert(reason(frame));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                self.inbox.closed.get_or_insert(None);
            }
        }
    }

    async fn hear_text(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).expect("the server sends JSON");
        match message["type"].as_str().expect("every message has a type") {
            "ping" => {
                let mut pong = json!({"type": "pong", "current_load": 0});
                if let Some(time) = message.get("timestamp_unix_ms") {
                    pong["timestamp_unix_ms"] = time.clone();
                }
                self.send(&pong).await;
                self.inbox.others.push_back(message);
            }
            "request" => {
                assert_eq!(self.form, Form::Stock, "requests are binary on this link");
                self.inbox.jobs.push_back(stock_job(&message));
            }
            "cancel" => {
                let id = message["request_id"].as_str().expect("a request_id").to_owned();
                self.inbox.cancels.push_back((id, message["reason"].clone()));
            }
            _ => self.inbox.others.push_back(message),
        }
    }

    fn hear_frame(&mut self, bytes: Bytes) {
        assert_eq!(self.form, Form::Binary, "a stock worker is sent no binary frame");
        match ServerFrame::decode(bytes).expect("a frame that can be read") {
            ServerFrame::Request { job, head, body } => {
                let arriving = Arriving {
                    job: Job {
                        request_id: head.request_id,
                        number: job,
                        model: head.model,
                        path: head.endpoint_path,
                        streaming: head.is_streaming,
                        headers: head.headers.iter().map(pair).collect(),
                        body: Bytes::new(),
                    },
                    body: BytesMut::new(),
                    whole: head.body_len,
                };
                let old = self.inbox.arriving.insert(job, arriving);
                assert!(old.is_none(), "job number {job} is in use");
                self.inbox.add_piece(job, &body);
            }
            ServerFrame::Body { job, piece } => self.inbox.add_piece(job, &piece),
            ServerFrame::Credit { job, bytes } => {
                *self.credit.entry(job).or_default() += u64::from(bytes);
            }
        }
    }
}

impl Inbox {
    fn add_piece(&mut self, number: u32, piece: &[u8]) {
        let Entry::Occupied(mut arriving) = self.arriving.entry(number) else {
            panic!("a piece of a body for job {number}, which has none to come");
        };
        arriving.get_mut().body.extend_from_slice(piece);
        let length = arriving.get().body.len() as u64;
        assert!(length <= arriving.get().whole, "job {number} has more body than was said");
        if length == arriving.get().whole {
            let Arriving { job, body, .. } = arriving.remove();
            self.jobs.push_back(Job { body: body.freeze(), ..job });
        }
    }
}

fn stock_job(message: &Value) -> Job {
    let text = |field: &str| {
        message[field].as_str().unwrap_or_else(|| panic!("no {field} in {message}")).to_owned()
    };
    let headers = message["headers"].as_object().cloned().unwrap_or_default();
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name, value.as_str().expect("header values are text").to_owned()));
    Job {
        request_id: text("request_id"),
        number: 0,
        model: text("model"),
        path: text("endpoint_path"),
        streaming: message["is_streaming"].as_bool().expect("is_streaming"),
        headers: headers.collect(),
        body: text("body").into(),
    }
}

/// A header as text.
fn pair((name, value): (&[u8], &[u8])) -> (String, String) {
    (String::from_utf8_lossy(name).into_owned(), header_text(value))
}
