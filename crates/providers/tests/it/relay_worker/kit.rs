//! Links to workers in the hands of a test.

use std::{
    net::IpAddr,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use access::{Keys, LenderRules, Token};
use base::{Endpoint, Endpoints, JobId, Live, ModelName};
use bytes::Bytes;
use http::{HeaderMap, Method};
use protocol::relay::binary::{ServerFrame, Version};
use providers::{RelaySettings, RelayWorkers};
use rooms::{Room, Rooms};
use scheduler::{
    Answer, AnswerMap, Failure, Head, Job, JobRequest, Meter, ProviderRequest, Scheduler,
    Translator, Unreadable, Untranslatable,
};
use serde_json::{Value, json};
use wire::Frame;

use crate::kit::FarEnd;
pub(crate) use crate::kit::now;

pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) rooms: Rooms,
    pub(crate) workers: RelayWorkers,
    next: u128,
}

/// The worker's end.
pub(crate) struct Worker(FarEnd);

/// Asks for Messages where they are served, else for Chat Completions; changes nothing but the path.
struct MessagesOrChat;

impl Translator for MessagesOrChat {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        endpoints: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let both = [Endpoint::Messages, Endpoint::ChatCompletions];
        let endpoint = both.into_iter().find(|endpoint| endpoints.contains(*endpoint)).unwrap();
        let path_and_query = endpoint.path().to_owned();
        let request = JobRequest { path_and_query, ..JobRequest::clone(request) };
        Ok(ProviderRequest { request: Arc::new(request), endpoint, answer: None })
    }
}

/// Understands no answer.
struct Senseless;

impl Translator for Senseless {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        _: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let (request, endpoint) = (Arc::clone(request), Endpoint::ChatCompletions);
        Ok(ProviderRequest { request, endpoint, answer: Some(Box::new(Self)) })
    }
}

impl AnswerMap for Senseless {
    fn head(&mut self, head: Head) -> Head {
        head
    }

    fn chunk(&mut self, _: Bytes) -> Result<Bytes, Unreadable> {
        Err(Unreadable { before: Bytes::new(), why: "it makes no sense".to_owned() })
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        Ok(Bytes::new())
    }
}

impl Kit {
    pub(crate) fn new() -> Self {
        let (scheduler, rooms) = (crate::kit::scheduler(), crate::kit::rooms());
        let (secret, keys) = (Some(Token::new(&"s".into())), Keys::default());
        let settings = RelaySettings {
            lenders: LenderRules { secret: Live::new(secret), keys },
            heartbeat: HEARTBEAT,
        };
        let workers = RelayWorkers::new(settings, scheduler.clone(), rooms.clone());
        Self { scheduler, rooms, workers, next: 0 }
    }

    /// A link whose worker has said nothing yet.
    pub(crate) fn link(&self, binary: bool) -> Worker {
        self.link_of(binary.then_some(Version::NEWEST))
    }

    /// The same of a version of the binary form, or of the stock form.
    pub(crate) fn link_of(&self, version: Option<Version>) -> Worker {
        let workers = self.workers.clone();
        Worker(FarEnd::connect(|link, outbox| async move {
            workers.serve(link, outbox, version).await;
        }))
    }

    /// A link into a room, from this address, whose worker has said nothing yet.
    pub(crate) fn room_link(&self, room: &Arc<Room>, from: IpAddr, binary: bool) -> Worker {
        let (workers, room) = (self.workers.clone(), Arc::clone(room));
        let version = binary.then_some(Version::NEWEST);
        Worker(FarEnd::connect(|link, outbox| async move {
            workers.serve_in_room(room, from.into(), link, outbox, version).await;
        }))
    }

    /// A registered worker of the model `m`.
    pub(crate) async fn worker(&self, binary: bool) -> Worker {
        self.worker_with(binary, json!({})).await
    }

    /// The same with further fields in its registration.
    pub(crate) async fn worker_with(&self, binary: bool, further: Value) -> Worker {
        self.registered(self.link(binary), further).await
    }

    /// The same over this link.
    pub(crate) async fn registered(&self, mut worker: Worker, further: Value) -> Worker {
        let mut register = json!({
            "type": "register", "worker_name": "gpu", "models": ["m"], "max_concurrent": 2,
        });
        let fields = register.as_object_mut().unwrap();
        fields.extend(further.as_object().unwrap().clone());
        worker.say(&register);
        assert_eq!(worker.hear().await["type"], "register_ack");
        worker
    }

    pub(crate) fn submit(&mut self, streaming: bool) -> Answer {
        self.submit_with(streaming, Bytes::from_static(BODY), Box::new(()))
    }

    pub(crate) fn submit_with(
        &mut self,
        streaming: bool,
        body: Bytes,
        meter: Box<dyn Meter>,
    ) -> Answer {
        let job = self.job(Endpoint::ChatCompletions, Kit::request(streaming, body), meter);
        self.scheduler.submit(job)
    }

    /// A request of Messages that can be served as Chat Completions, too.
    pub(crate) fn submit_messages(&mut self, streaming: bool) -> Answer {
        let request = Kit::request(streaming, Bytes::from_static(BODY));
        let job = self.job(Endpoint::Messages, request, Box::new(()));
        let serve_as = job.serve_as.with(Endpoint::ChatCompletions);
        self.scheduler.submit(Job { serve_as, translator: Arc::new(MessagesOrChat), ..job })
    }

    /// A request whose answers make no sense, whatever they are.
    pub(crate) fn submit_senseless(&mut self) -> Answer {
        let request = Kit::request(false, Bytes::from_static(BODY));
        let job = self.job(Endpoint::ChatCompletions, request, Box::new(()));
        self.scheduler.submit(Job { translator: Arc::new(Senseless), ..job })
    }

    fn request(streaming: bool, body: Bytes) -> JobRequest {
        JobRequest {
            method: Method::POST,
            path_and_query: "/v1/chat/completions".into(),
            model: "m".into(),
            streaming,
            headers: HeaderMap::new(),
            body,
        }
    }

    /// A request in a room, to the participant of this name.
    pub(crate) fn submit_in(&mut self, room: &Room, name: &str, method: Method) -> Answer {
        let body = Bytes::from_static(b"{\"model\":\"m\",\"messages\":[]}");
        let request = JobRequest { method, ..Kit::request(false, body) };
        let job = self.job(Endpoint::ChatCompletions, request, Box::new(()));
        self.scheduler.submit(Job { scope: room.scope(), targets: vec![name.into()], ..job })
    }

    fn job(&mut self, endpoint: Endpoint, request: JobRequest, meter: Box<dyn Meter>) -> Job {
        self.next += 1;
        Job::new(JobId::from_random(self.next), endpoint, request, meter)
    }
}

const BODY: &[u8] = b"{\"model\":\"m\"}";

impl Worker {
    /// The next message; pings are answered and passed over.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let Some(Frame::Text(text)) = self.frame().await else { panic!("no message") };
            let message: Value = serde_json::from_str(text.as_str()).unwrap();
            if message["type"] != "ping" {
                return message;
            }
            self.say(&json!({"type": "pong", "current_load": 0}));
        }
    }

    /// Drives the link until something comes that is neither a ping nor credit.
    pub(crate) async fn other_frame(&mut self) -> Frame {
        loop {
            match self.frame().await.expect("the link stands") {
                Frame::Text(text) if text.contains("\"ping\"") => {
                    self.say(&json!({"type": "pong", "current_load": 0}));
                }
                Frame::Binary(bytes) if is_credit(&bytes) => {}
                other => return other,
            }
        }
    }

    /// Waits until the server has taken in all that was said: it pings when there is nothing else to
    /// do.
    pub(crate) async fn heard(&mut self) {
        let Some(Frame::Text(text)) = self.frame().await else { panic!("no ping") };
        assert!(text.contains("\"ping\""), "{text}");
        self.say(&json!({"type": "pong", "current_load": 0}));
    }

    /// The id of the next request.
    pub(crate) async fn request(&mut self) -> String {
        let request = self.hear().await;
        assert_eq!(request["type"], "request");
        request["request_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn chunk(&self, id: &str, chunk: &str) {
        self.say(&json!({"type": "response_chunk", "request_id": id, "chunk": chunk}));
    }

    pub(crate) fn complete(&self, id: &str, status: u16, body: &str) {
        self.say(&json!({
            "type": "response_complete", "request_id": id, "status_code": status,
            "headers": {"content-type": "application/json", "x-back": "1"}, "body": body,
        }));
    }

    pub(crate) fn drive(self) -> tokio::task::JoinHandle<()> {
        self.0.drive()
    }
}

impl Deref for Worker {
    type Target = FarEnd;

    fn deref(&self) -> &FarEnd {
        &self.0
    }
}

impl DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut FarEnd {
        &mut self.0
    }
}

fn is_credit(frame: &Bytes) -> bool {
    matches!(ServerFrame::decode(frame.clone()), Ok(ServerFrame::Credit { .. }))
}

/// The whole answer: status, body, and how it failed if it did.
pub(crate) async fn read(answer: &mut Answer) -> (u16, String, Option<Failure>) {
    let read = crate::kit::read(answer).await;
    (read.status(), read.body, read.failure)
}
