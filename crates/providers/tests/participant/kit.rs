//! A room, a server's end of its tunnels, and participants in the hands of a test.

use std::{net::IpAddr, sync::Arc, time::Duration};

use access::Moment;
use base::{Endpoint, Endpoints, JobId, ModelName};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, Method};
use protocol::room::{Capabilities, MachineSpecs, RuntimeConfig, Status, selector};
use providers::Participants;
use rooms::{Joining, Kind, NewRoom, Room, Rooms};
use scheduler::{
    Affinity, Answer, Config, Event, Failure, Head, Job, JobRequest, Meter, ProviderRequest, Route,
    Scheduler, Translator, Untranslatable, Usage,
};
use serde_json::{Value, json};
use store::VolatileStore;
use tokio::io::duplex;
use wire::{Frame, Link, Outbox, Role};

/// Where everybody joins from.
pub(crate) const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) rooms: Rooms,
    pub(crate) room: Arc<Room>,
    pub(crate) participants: Participants,
    next: u128,
}

/// A participant's end of its tunnel.
pub(crate) struct Far {
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

/// Asks for Responses where they are served, else for Chat Completions, each time for the provider's
/// own model. What has a path already keeps it, and all else.
struct ResponsesOrChat(Endpoints);

impl Translator for ResponsesOrChat {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let both = [Endpoint::Responses, Endpoint::ChatCompletions].into_iter();
        let mut possible = both.filter(|endpoint| self.0.contains(*endpoint));
        let endpoint = possible.find(|endpoint| endpoints.contains(*endpoint)).unwrap();
        let mut request = JobRequest::clone(request);
        if request.path_and_query.is_empty() {
            request.path_and_query = endpoint.path().to_owned();
            request.body = named(&request.body, model);
        }
        request.model = model.clone();
        Ok(ProviderRequest { request: Arc::new(request), endpoint, answer: None })
    }
}

fn named(body: &[u8], model: &ModelName) -> Bytes {
    let Ok(mut body) = serde_json::from_slice::<Value>(body) else { return body.to_vec().into() };
    body["model"] = model.as_str().into();
    body.to_string().into()
}

pub(crate) fn now() -> u64 {
    Moment::now().wall_ms
}

/// Somebody with the model `m`, who takes one request at once.
pub(crate) fn joining(id: &str, kind: Kind) -> Joining {
    Joining {
        id: id.to_owned(),
        nickname: id.to_owned(),
        models: vec!["m".to_owned()],
        endpoint: "http://localhost:11434".to_owned(),
        specs: MachineSpecs::default(),
        config: RuntimeConfig::default(),
        capabilities: Capabilities::default(),
        kind,
        max_concurrent: 1,
        session: None,
    }
}

impl Kit {
    pub(crate) fn new() -> Self {
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), Vec::new());
        tokio::spawn(scheduler.clone().run());
        let settings = rooms::Settings { idle: Duration::from_secs(3600) };
        let rooms = Rooms::open(Arc::<VolatileStore>::default(), settings, now()).unwrap();
        let new = NewRoom { name: "friends".to_owned(), ..NewRoom::default() };
        let room = rooms.create(new, now()).unwrap().room;
        let participants = Participants::new(rooms.clone(), scheduler.clone());
        Self { scheduler, rooms, room, participants, next: 0 }
    }

    pub(crate) fn join(&self, id: &str, change: impl FnOnce(&mut Joining)) {
        let mut joining = joining(id, Kind::Tunnel);
        change(&mut joining);
        self.room.join(joining, HERE, now()).unwrap();
    }

    /// A tunnel of a participant that has joined.
    pub(crate) async fn tunnel(&self, id: &str) -> Far {
        self.tunnel_as(id, false).await
    }

    /// The same; `cancels` means that it can be told to stop.
    pub(crate) async fn tunnel_as(&self, id: &str, cancels: bool) -> Far {
        let before = self.scheduler.status().workers.len();
        let far = self.knock_as(id, cancels);
        while self.scheduler.status().workers.len() == before {
            tokio::task::yield_now().await;
        }
        far
    }

    /// A tunnel that may be refused, or take the place of another.
    pub(crate) fn knock(&self, id: &str) -> Far {
        self.knock_as(id, false)
    }

    fn knock_as(&self, id: &str, cancels: bool) -> Far {
        let (near, far) = duplex(1 << 16);
        let (server, server_outbox) = Link::new(Box::pin(near), Role::Server);
        let (participants, room) = (self.participants.clone(), Arc::clone(&self.room));
        let id = id.to_owned();
        tokio::spawn(async move {
            participants.serve(room, &id, server, server_outbox, cancels).await;
        });
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Far { link, outbox }
    }

    /// A participant that has joined and is connected, and takes so many requests at once.
    pub(crate) async fn participant(&self, id: &str, max_concurrent: u32) -> Far {
        self.join(id, |joining| joining.max_concurrent = max_concurrent);
        self.tunnel(id).await
    }

    pub(crate) fn status(&self, id: &str) -> Status {
        self.room.participant(id).unwrap().status
    }

    /// Waits until a participant is not connected any more.
    pub(crate) async fn gone(&self, id: &str) {
        while self.room.participant(id).is_some_and(|info| info.status != Status::Offline) {
            tokio::task::yield_now().await;
        }
    }

    /// Asks anybody.
    pub(crate) fn ask(&mut self) -> Answer {
        self.ask_for(selector::ANY)
    }

    /// Asks whoever is found under this name.
    pub(crate) fn ask_for(&mut self, name: &str) -> Answer {
        let body = json!({"model": "*", "messages": [{"role": "user", "content": "hi"}]});
        self.submit(name, Endpoint::ChatCompletions, Method::POST, "", body.to_string())
    }

    /// Asks anybody for Responses, which Chat Completions would do for, too.
    pub(crate) fn ask_responses(&mut self) -> Answer {
        let body = json!({"model": "*", "input": "hi"}).to_string();
        self.submit(selector::ANY, Endpoint::Responses, Method::POST, "", body)
    }

    /// Asks anybody about an earlier answer.
    pub(crate) fn ask_about(&mut self, method: Method, path: &str) -> Answer {
        self.submit(selector::ANY, Endpoint::Responses, method, path, String::new())
    }

    pub(crate) fn submit(
        &mut self,
        name: &str,
        endpoint: Endpoint,
        method: Method,
        path: &str,
        body: String,
    ) -> Answer {
        self.next += 1;
        let serve_as = match (endpoint, path) {
            (Endpoint::Responses, "") => {
                Endpoints::only(Endpoint::Responses).with(Endpoint::ChatCompletions)
            }
            _ => Endpoints::only(endpoint),
        };
        let request = JobRequest {
            method,
            path_and_query: path.to_owned(),
            model: "*".into(),
            streaming: false,
            headers: HeaderMap::new(),
            body: body.into(),
        };
        self.scheduler.submit(Job {
            id: JobId::from_random(self.next),
            scope: self.room.scope(),
            model: ModelName::from("*"),
            targets: vec![name.into()],
            endpoint,
            serve_as,
            translator: Arc::new(ResponsesOrChat(serve_as)),
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

impl Far {
    pub(crate) fn say(&self, message: &Value) {
        self.outbox.push(message.to_string()).unwrap();
    }

    pub(crate) fn send(&self, frame: impl Into<Frame>) {
        self.outbox.push(frame).unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let Some(Frame::Text(text)) = self.link.next().await.unwrap() else { panic!("no text") };
        serde_json::from_str(text.as_str()).unwrap()
    }

    /// The id of the next request.
    pub(crate) async fn request(&mut self) -> String {
        let request = self.hear().await;
        assert_eq!(request["type"], "tunnel.request", "{request}");
        request["requestId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn start(&self, id: &str, status: u16) {
        let headers = json!({"content-type": "application/json"});
        self.say(&json!({
            "type": "tunnel.response.start", "requestId": id, "status": status, "headers": headers,
        }));
    }

    /// A chunk whose text must be base64 already.
    pub(crate) fn chunk(&self, id: &str, base64: &str) {
        self.say(&json!({"type": "tunnel.response.chunk", "requestId": id, "chunk": base64}));
    }

    pub(crate) fn end(&self, id: &str) {
        self.say(&json!({"type": "tunnel.response.end", "requestId": id}));
    }

    pub(crate) fn fail(&self, id: &str, words: &str) {
        self.say(&json!({
            "type": "tunnel.response.error", "requestId": id, "stage": "proxy", "message": words,
        }));
    }

    /// The whole answer `hi`.
    pub(crate) fn answer(&self, id: &str) {
        self.start(id, 200);
        self.chunk(id, "aGk=");
        self.end(id);
    }

    /// Has all that was said taken in by the server.
    pub(crate) async fn settle(&mut self) {
        let heard = tokio::time::timeout(Duration::from_millis(50), self.link.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// Drives the tunnel until the server closes it; its code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        while self.link.next().await.unwrap().is_some() {}
        self.link.close_reason().expect("closed with a reason")
    }

    /// Drives the tunnel in the background.
    pub(crate) fn drive(mut self) {
        tokio::spawn(async move { while let Ok(Some(_)) = self.link.next().await {} });
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

    /// Status and body of an answer that is whole.
    pub(crate) fn whole(&self) -> (u16, &str) {
        assert_eq!(self.failure, None);
        (self.status(), &self.body)
    }

    /// What was said of a failure.
    pub(crate) fn detail(&self) -> &str {
        self.failure.as_ref().expect("a failure").detail.as_deref().unwrap_or_default()
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
