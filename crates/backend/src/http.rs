//! Model servers over HTTP.
//!
//! Connections are kept for 4 s after an answer, a second less than common servers keep theirs. A request
//! is sent a second time in three cases only. First, if its kept connection ends before any byte of the
//! answer: once more, over a new connection, within the same deadline. Second, if it is refused while the
//! place of the key is not known yet: once more, with the key in the other place. Third, if it is refused
//! and the key's file has a new key: once more, with that one.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{Endpoint, Endpoints};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::timeout;

use crate::{
    address::{BaseUrl, NotABackend},
    client::{Body, Client, Outgoing, SendError},
    config::{BackendConfig, Continues, Timeouts},
    connect,
    error::{BackendError, Phase},
    exchange::{Answer, AnswerBody, BackendRequest},
    facts::{Known, ServerKind},
    headers::{from_backend, to_backend},
    http1,
    manner::{ANTHROPIC, KeyPlace, Manner, Ranking},
    models::{self, ModelList},
};

/// OpenAI's own server.
const OPENAI: &str = "api.openai.com";

/// A model server over HTTP.
#[derive(Debug)]
pub struct HttpBackend {
    client: Client,
    base: BaseUrl,
    shown: Arc<str>,
    pub(crate) manner: Arc<Manner>,
    endpoints: Option<Endpoints>,
    cloud: bool,
    timeouts: Timeouts,
    /// Whether its models and endpoints are all configured, so that it is asked for nothing but
    /// answers.
    pub(crate) is_known: bool,
    /// The length of context that its models are to have, in tokens.
    pub(crate) context: Option<u64>,
    /// How it continues answers, if that is configured.
    pub(crate) continues: Option<Continues>,
    pub(crate) known: Mutex<Known>,
}

impl HttpBackend {
    /// A backend at an address. Connects to nothing yet.
    ///
    /// # Errors
    /// [`NotABackend`] when the address or the key cannot be used.
    pub fn new(config: &BackendConfig) -> Result<Self, NotABackend> {
        let base = BaseUrl::parse(&config.url)?;
        let only = config.address.map(|ip| ip.to_canonical());
        let ca = config.ca.as_deref();
        let client = connect::client(&base, only, config.pin, ca, config.timeouts.connect)?;
        let manner = Manner::new(config.api_key.as_ref(), base.host(), base.names_other_version());
        let manner = manner.ok_or_else(|| NotABackend::Key { url: base.to_string() })?;
        let manner = manner.with_file(config.key_file.clone());
        let shown = base.to_string().into();
        let (cloud, timeouts) = (config.cloud, config.timeouts);
        let endpoints = config.endpoints.or_else(|| cloud.then(|| of_cloud(base.host())));
        let is_anthropic = |only: Endpoints| only.is_within(anthropics());
        let manner = match endpoints.filter(|only| cloud && is_anthropic(*only)) {
            Some(_) => manner.with_anthropic_place(),
            None => manner,
        };
        let manner = Arc::new(manner);
        let (context, known) = (config.context, Mutex::default());
        let is_listed = config.models.is_some() && !config.only_listed;
        let is_known = is_listed && config.endpoints.is_some() && context.is_none();
        Ok(Self {
            client,
            base,
            shown,
            manner,
            endpoints,
            cloud,
            timeouts,
            is_known,
            context,
            continues: config.continues,
            known,
        })
    }

    /// Host and port.
    pub fn label(&self) -> &str {
        self.base.host()
    }

    /// Sends a request. See [`crate::Backend::send`].
    ///
    /// # Errors
    /// [`BackendError`] when no head of an answer came.
    pub async fn send(&self, ask: BackendRequest) -> Result<Answer, BackendError> {
        let response = self.exchange(ask, Phase::FirstByte, self.timeouts.first_byte).await?;
        let (head, body) = response.into_parts();
        let body = AnswerBody::network(body, self.timeouts.idle, Arc::clone(&self.shown));
        Ok(Answer { status: head.status, headers: from_backend(head.headers), body })
    }

    /// The models it has. See [`crate::Backend::models`].
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached or gives no list.
    pub async fn models(&self) -> Result<Vec<String>, BackendError> {
        let listed = self.model_list(models::DEADLINE).await;
        let mut known = self.known();
        known.is_stale |= matches!(listed, Err(BackendError::Unreachable { .. }));
        let list = listed?;
        let kind = list.kind.or(list.is_warren.then_some(ServerKind::Other));
        if let Some(kind) = kind {
            (known.kind, known.is_stale) = (Some(kind), false);
        }
        known.listed = list.facts;
        known.untranslated = list.is_warren.then_some(list.untranslated);
        known.names.clone_from(&list.names);
        Ok(list.names)
    }

    /// The endpoints that it serves. See [`crate::Backend::endpoints`].
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached.
    pub async fn endpoints(&self) -> Result<Option<Endpoints>, BackendError> {
        let asked_natively = self.is_asked_natively().await;
        match self.endpoints {
            Some(known) => Ok(Some(known)),
            // Other endpoints take no context length: the server would load its models with another
            // one.
            None if asked_natively => Ok(Some(chat_and_embeddings())),
            None => self.probe().await,
        }
    }

    /// The endpoints that its list names. See [`crate::Backend::listed_endpoints`].
    pub fn listed_endpoints(&self) -> Option<Endpoints> {
        let listed = self.known().untranslated;
        listed.filter(|_| self.endpoints.is_none())
    }

    /// In which shape it ranks. See [`crate::Backend::ranks_texts`].
    pub fn ranks_texts(&self) -> bool {
        self.manner.ranking() == Ranking::OfTexts
    }

    /// Its list of models, in the OpenAI form or, when that fails or is empty, in Ollama's.
    pub(crate) async fn model_list(&self, deadline: Duration) -> Result<ModelList, BackendError> {
        let listing = async {
            let (status, first) = self.get_models("/v1/models").await?;
            match first {
                Ok(list) if list.is_warren || !list.names.is_empty() => return Ok(list),
                _ => {}
            }
            match self.get_models("/api/tags").await {
                Ok((_, Ok(list))) => Ok(list),
                _ if status == StatusCode::NOT_FOUND && self.base.names_no_version() => {
                    self.get_models_without_v1().await.or(first)
                }
                _ => first,
            }
        };
        timeout(deadline, listing).await.unwrap_or_else(|_| Err(self.late(Phase::Models, deadline)))
    }

    /// Asks for the list at `/models`, for a base URL below which paths have no `/v1`. If there is a list, all later
    /// requests leave `/v1` out. Until then they keep it.
    async fn get_models_without_v1(&self) -> Result<ModelList, BackendError> {
        let read = self.get_models("/models").await;
        let list = read.and_then(|(_, list)| list);
        self.manner.set_without_v1(list.is_ok());
        list
    }

    /// Asks for a list at this path. Returns the status of the answer, and the list in it.
    async fn get_models(
        &self,
        path: &str,
    ) -> Result<(StatusCode, Result<ModelList, BackendError>), BackendError> {
        let (method, path_and_query) = (Method::GET, path.to_owned());
        let ask = BackendRequest { method, path_and_query, ..BackendRequest::default() };
        let response = self.exchange(ask, Phase::Models, models::DEADLINE).await?;
        let status = response.status();
        let list = models::read(response)
            .await
            .map_err(|reason| BackendError::NoModels { backend: Arc::clone(&self.shown), reason });
        Ok((status, list))
    }

    /// Sends a request, with its key if there is one.
    pub(crate) async fn exchange(
        &self,
        ask: BackendRequest,
        phase: Phase,
        deadline: Duration,
    ) -> Result<Response<Body>, BackendError> {
        if self.manner.has_key() {
            // Boxed, because most backends have no key, and their requests' futures stay small.
            return Box::pin(self.exchange_with_key(ask, phase, deadline)).await;
        }
        let (place, headers) = (self.manner.place(), to_backend(ask.headers));
        let request = self.request(ask.method, &ask.path_and_query, headers, ask.body, place)?;
        let response = self.respond(request, phase, deadline).await?;
        self.manner.answered(place, response.status());
        Ok(response)
    }

    /// Sends a request with its key. If the server refuses the key and the key's file has a new
    /// one, the request is sent once more. If a cloud refuses the key, that is an error, and not an
    /// answer for the client.
    async fn exchange_with_key(
        &self,
        ask: BackendRequest,
        phase: Phase,
        deadline: Duration,
    ) -> Result<Response<Body>, BackendError> {
        let again = ask.clone();
        let before = self.manner.key_changes();
        let response = self.exchange_in_either_place(ask, phase, deadline).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        self.read_key_again().await;
        // Another request may have read the new key first.
        let response = match self.manner.key_changes() != before {
            true => self.exchange_in_either_place(again, phase, deadline).await?,
            false => response,
        };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let status = response.status().as_u16();
        if self.manner.is_first_refusal() {
            let backend = &*self.shown;
            tracing::warn!(
                backend,
                status,
                "the backend refuses its API key: is it the right one?"
            );
        }
        match self.cloud {
            true => Err(BackendError::KeyRefused { backend: Arc::clone(&self.shown), status }),
            false => Ok(response),
        }
    }

    /// Sends a request. If it is refused and the place of the key is not known yet, sends it once
    /// more with the key in the other place.
    async fn exchange_in_either_place(
        &self,
        ask: BackendRequest,
        phase: Phase,
        deadline: Duration,
    ) -> Result<Response<Body>, BackendError> {
        let place = self.manner.place();
        let headers = to_backend(ask.headers);
        let send = |place| {
            let (method, headers, body) = (ask.method.clone(), headers.clone(), ask.body.clone());
            let request = self.request(method, &ask.path_and_query, headers, body, place);
            async move { self.respond(request?, phase, deadline).await }
        };
        let response = send(place).await?;
        self.manner.answered(place, response.status());
        let Some(other) = self.manner.other_place(place, response.status()) else {
            return Ok(response);
        };
        // The first refusal stands unless the server answers differently in the other place.
        match send(other).await {
            Ok(second) if second.status() != response.status() => {
                self.manner.answered(other, second.status());
                Ok(second)
            }
            _ => Ok(response),
        }
    }

    /// Reads the key's file again, if there is one. Returns whether there is another key now.
    pub async fn read_key_again(&self) -> bool {
        let manner = Arc::clone(&self.manner);
        tokio::task::spawn_blocking(move || manner.read_key_again()).await.unwrap_or(false)
    }

    /// Whether it is a cloud.
    pub fn is_cloud(&self) -> bool {
        self.cloud
    }

    /// A request to a path of the API, with the key in this place.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Vec<bytes::Bytes>,
        place: KeyPlace,
    ) -> Result<Outgoing, BackendError> {
        self.manner.put_key(&mut headers, place);
        let asked = self.manner.path(path, place);
        let path = self.base.join(asked);
        let path = path.ok_or_else(|| BackendError::BadAsk(format!("{asked:?} is no path")))?;
        Ok(Outgoing { method, path, headers, body })
    }

    /// Whether it is still unknown if its paths begin with `/v1`: neither its address nor an answer
    /// has told.
    pub(crate) fn may_be_without_v1(&self) -> bool {
        self.base.names_no_version() && self.manner.path("/v1/", KeyPlace::Bearer) == "/v1/"
    }

    /// Sends a request and waits for the head of its answer. Dropping the wait closes the connection.
    pub(crate) async fn respond(
        &self,
        request: Outgoing,
        phase: Phase,
        deadline: Duration,
    ) -> Result<Response<Body>, BackendError> {
        let Outgoing { method, path, headers, body } = request;
        let sending = async {
            match &self.client {
                Client::Plain(client) => {
                    let host = self.base.host();
                    let request = http1::Request::new(host, &method, &path, &headers, body);
                    drop(headers);
                    Ok::<_, SendError>(client.send(request).await?.map(Body::Plain))
                }
                Client::Secure(client) => {
                    let mut sent = Request::new(body.into());
                    *sent.method_mut() = method;
                    *sent.uri_mut() = self.base.at(path);
                    *sent.headers_mut() = headers;
                    // Boxed, so that requests without TLS do not carry the larger future.
                    Ok(Box::pin(client.send(sent)).await?.map(Body::Secure))
                }
            }
        };
        match timeout(deadline, sending).await {
            Ok(response) => response.map_err(|error| self.failed(error)),
            Err(_) => Err(self.late(phase, deadline)),
        }
    }

    fn failed(&self, error: SendError) -> BackendError {
        let backend = Arc::clone(&self.shown);
        match error {
            SendError::TooLate => self.late(Phase::Connect, self.timeouts.connect),
            SendError::Connect(reason) => BackendError::Unreachable { backend, reason },
            SendError::Broke(reason) => BackendError::Broke { backend, reason },
        }
    }

    pub(crate) fn late(&self, phase: Phase, after: Duration) -> BackendError {
        BackendError::Timeout { backend: Arc::clone(&self.shown), phase, after }
    }
}

fn anthropics() -> Endpoints {
    Endpoints::only(Endpoint::Messages).with(Endpoint::CountTokens)
}

fn chat_and_embeddings() -> Endpoints {
    Endpoints::only(Endpoint::ChatCompletions).with(Endpoint::Embeddings)
}

/// The assumed endpoints of a cloud whose endpoints are not configured. A cloud is never probed.
fn of_cloud(host: &str) -> Endpoints {
    match host {
        ANTHROPIC => anthropics(),
        OPENAI => chat_and_embeddings().with(Endpoint::Responses),
        _ => chat_and_embeddings(),
    }
}
