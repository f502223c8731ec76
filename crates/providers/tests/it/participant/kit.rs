//! A room, and tunnels of its participants in the hands of a test.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use base::{Endpoint, Endpoints, JobId, ModelName};
use bytes::Bytes;
use http::{HeaderMap, Method};
use protocol::room::{Capabilities, MachineSpecs, RuntimeConfig, Status, selector};
use providers::Participants;
use rooms::{JoinRequest, Kind, NewRoom, Room, Rooms};
use scheduler::{Answer, Job, JobRequest, ProviderRequest, Scheduler, Translator, Untranslatable};
use serde_json::{Value, json};

use crate::kit::FarEnd;
pub(crate) use crate::kit::{HERE, now, read};

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) rooms: Rooms,
    pub(crate) room: Arc<Room>,
    pub(crate) participants: Participants,
    next: u128,
}

/// A participant's end of its tunnel.
pub(crate) struct Far(FarEnd);

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

/// Somebody with the model `m`, who takes one request at once.
pub(crate) fn joining(id: &str, kind: Kind) -> JoinRequest {
    JoinRequest {
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
        let (scheduler, rooms) = (crate::kit::scheduler(), crate::kit::rooms());
        let new = NewRoom { name: "friends".to_owned(), ..NewRoom::default() };
        let room = rooms.create(new, now()).unwrap().room;
        let participants = Participants::new(rooms.clone(), scheduler.clone());
        Self { scheduler, rooms, room, participants, next: 0 }
    }

    pub(crate) fn join(&self, id: &str, change: impl FnOnce(&mut JoinRequest)) {
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
        let (participants, room) = (self.participants.clone(), Arc::clone(&self.room));
        let id = id.to_owned();
        Far(FarEnd::connect(|link, outbox| async move {
            participants.serve(room, &id, link, outbox, cancels).await;
        }))
    }

    /// A participant that has joined and is connected, and takes `max_concurrent` requests at once.
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

    /// Asks the participant that is found under this name.
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
        let job = Job::new(JobId::from_random(self.next), endpoint, request, Box::new(()));
        self.scheduler.submit(Job {
            scope: self.room.scope(),
            targets: vec![name.into()],
            serve_as,
            translator: Arc::new(ResponsesOrChat(serve_as)),
            ..job
        })
    }
}

impl Far {
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

    pub(crate) fn drive(self) {
        drop(self.0.drive());
    }
}

impl Deref for Far {
    type Target = FarEnd;

    fn deref(&self) -> &FarEnd {
        &self.0
    }
}

impl DerefMut for Far {
    fn deref_mut(&mut self) -> &mut FarEnd {
        &mut self.0
    }
}
