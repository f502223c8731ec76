//! A server's end of a link, and a worker in the hands of a test.

use std::{net::IpAddr, sync::Arc, time::Duration};

use access::{Keys, LenderRules, Moment, Token};
use base::{Endpoint, Endpoints, JobId, ModelName, Scope};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, Method};
use protocol::relay::binary::ServerFrame;
use providers::{RelaySettings, RelayWorkers};
use rooms::{Room, Rooms};
use scheduler::{
    Affinity, Answer, AnswerMap, Config, Event, Failure, Head, Job, JobRequest, Meter,
    ProviderRequest, Route, Scheduler, Translator, Untranslatable, Untranslated, Usage,
};
use serde_json::{Value, json};
use store::VolatileStore;
use tokio::io::duplex;
use wire::{Frame, Link, Outbox, Role};

pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) rooms: Rooms,
    pub(crate) workers: RelayWorkers,
    next: u128,
}

/// The worker's end.
pub(crate) struct Worker {
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

    fn chunk(&mut self, _: Bytes) -> Result<Bytes, Untranslatable> {
        Err(Untranslatable("it makes no sense".to_owned()))
    }

    fn end(&mut self) -> Result<Bytes, Untranslatable> {
        Ok(Bytes::new())
    }
}

pub(crate) fn now() -> u64 {
    Moment::now().wall_ms
}

impl Kit {
    pub(crate) fn new() -> Self {
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), Vec::new());
        tokio::spawn(scheduler.clone().run());
        let (secret, keys) = (Some(Token::new(&"s".into())), Keys::default());
        let settings =
            RelaySettings { lenders: LenderRules { secret, keys }, heartbeat: HEARTBEAT };
        let rooms = rooms::Settings { idle: Duration::from_secs(3600) };
        let rooms = Rooms::open(Arc::<VolatileStore>::default(), rooms, now()).unwrap();
        let workers = RelayWorkers::new(settings, scheduler.clone(), rooms.clone());
        Self { scheduler, rooms, workers, next: 0 }
    }

    /// A link whose worker has said nothing yet.
    pub(crate) fn link(&self, binary: bool) -> Worker {
        let (near, far) = duplex(1 << 16);
        let (server, server_outbox) = Link::new(Box::pin(near), Role::Server);
        let workers = self.workers.clone();
        tokio::spawn(async move { workers.serve(server, server_outbox, binary).await });
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Worker { link, outbox }
    }

    /// A link into a room, from this address, whose worker has said nothing yet.
    pub(crate) fn room_link(&self, room: &Arc<Room>, from: IpAddr, binary: bool) -> Worker {
        let (near, far) = duplex(1 << 16);
        let (server, outbox) = Link::new(Box::pin(near), Role::Server);
        let (workers, room) = (self.workers.clone(), Arc::clone(room));
        let serving =
            async move { workers.serve_in_room(room, from, server, outbox, binary).await };
        tokio::spawn(serving);
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Worker { link, outbox }
    }

    /// A registered worker of the model `m`.
    pub(crate) async fn worker(&self, binary: bool) -> Worker {
        self.worker_with(binary, json!({})).await
    }

    /// The same with further fields in its registration.
    pub(crate) async fn worker_with(&self, binary: bool, further: Value) -> Worker {
        let mut worker = self.link(binary);
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
        let body = Bytes::from_static(b"{\"model\":\"m\"}");
        self.submit_with(streaming, body, Box::new(NoMeter))
    }

    pub(crate) fn submit_with(
        &mut self,
        streaming: bool,
        body: Bytes,
        meter: Box<dyn Meter>,
    ) -> Answer {
        let chat = Endpoint::ChatCompletions;
        let request = Kit::request(streaming, body);
        self.submit_job(chat, Endpoints::only(chat), Arc::new(Untranslated(chat)), request, meter)
    }

    /// A request of Messages that can be served as Chat Completions, too.
    pub(crate) fn submit_messages(&mut self, streaming: bool) -> Answer {
        let messages = Endpoint::Messages;
        let serve_as = Endpoints::only(messages).with(Endpoint::ChatCompletions);
        let request = Kit::request(streaming, Bytes::from_static(b"{\"model\":\"m\"}"));
        self.submit_job(messages, serve_as, Arc::new(MessagesOrChat), request, Box::new(NoMeter))
    }

    /// A request whose answers make no sense, whatever they are.
    pub(crate) fn submit_senseless(&mut self) -> Answer {
        let chat = Endpoint::ChatCompletions;
        let request = Kit::request(false, Bytes::from_static(b"{\"model\":\"m\"}"));
        self.submit_job(
            chat,
            Endpoints::only(chat),
            Arc::new(Senseless),
            request,
            Box::new(NoMeter),
        )
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

    /// A request in a room, for whoever is found under this name.
    pub(crate) fn submit_in(&mut self, room: &Room, name: &str, method: Method) -> Answer {
        let chat = Endpoint::ChatCompletions;
        let body = Bytes::from_static(b"{\"model\":\"m\",\"messages\":[]}");
        let request = JobRequest { method, ..Kit::request(false, body) };
        let (serve_as, translator) = (Endpoints::only(chat), Arc::new(Untranslated(chat)));
        let job = self.job(chat, serve_as, translator, request, Box::new(NoMeter));
        self.scheduler.submit(Job { scope: room.scope(), targets: vec![name.into()], ..job })
    }

    fn submit_job(
        &mut self,
        endpoint: Endpoint,
        serve_as: Endpoints,
        translator: Arc<dyn Translator>,
        request: JobRequest,
        meter: Box<dyn Meter>,
    ) -> Answer {
        let job = self.job(endpoint, serve_as, translator, request, meter);
        self.scheduler.submit(job)
    }

    fn job(
        &mut self,
        endpoint: Endpoint,
        serve_as: Endpoints,
        translator: Arc<dyn Translator>,
        request: JobRequest,
        meter: Box<dyn Meter>,
    ) -> Job {
        self.next += 1;
        Job {
            id: JobId::from_random(self.next),
            scope: Scope::server(),
            model: ModelName::from("m"),
            targets: vec!["m".into()],
            endpoint,
            serve_as,
            translator,
            key: "local".into(),
            size: 13,
            affinity: Affinity::default(),
            pinned: None,
            route: Route::default(),
            known: true,
            request,
            meter,
        }
    }
}

impl Worker {
    pub(crate) fn say(&self, message: &Value) {
        self.outbox.push(message.to_string()).unwrap();
    }

    pub(crate) fn send(&self, frame: impl Into<Frame>) {
        self.outbox.push(frame).unwrap();
    }

    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        self.link.next().await.unwrap()
    }

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

    /// Drives the link, saying nothing, until the server closes it; its code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        while self.frame().await.is_some() {}
        self.link.close_reason().expect("closed with a reason")
    }

    /// Drives the link in the background.
    pub(crate) fn drive(mut self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { while let Ok(Some(_)) = self.link.next().await {} })
    }
}

fn is_credit(frame: &Bytes) -> bool {
    matches!(ServerFrame::decode(frame.clone()), Ok(ServerFrame::Credit { .. }))
}

/// The whole answer: status, body, and how it failed if it did.
pub(crate) async fn read(answer: &mut Answer) -> (u16, String, Option<Failure>) {
    let head = match answer.head().await {
        Ok(head) => head,
        Err(failure) => return (0, String::new(), Some(failure)),
    };
    let mut body = Vec::new();
    loop {
        match answer.next().await {
            Event::Chunk(chunk) => body.extend_from_slice(&chunk),
            Event::End => return (head.status.as_u16(), String::from_utf8(body).unwrap(), None),
            Event::Failed(failure) => {
                return (head.status.as_u16(), String::from_utf8(body).unwrap(), Some(failure));
            }
        }
    }
}
