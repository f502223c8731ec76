//! Model servers over HTTP.
//!
//! Connections are kept for 4 s after an answer, a second less than the common servers keep theirs.
//! A request that meets the end of such a connection all the same, before any byte of its answer, is
//! sent once more over a new one, within the same deadline. No other request is sent twice.

use std::{error::Error, sync::Arc, time::Duration};

use base::Endpoints;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Error as ClientError;
use tokio::time::timeout;
use wire::advised;

use crate::{
    address::{BaseUrl, NotABackend},
    client::Client,
    config::{BackendConfig, Timeouts},
    connect::{Connector, TooLate},
    error::{BackendError, Phase},
    exchange::{Answer, AnswerBody, BackendRequest, Pieces},
    headers::{from_backend, to_backend},
    models::{self, ModelList},
};

/// A model server over HTTP.
#[derive(Debug)]
pub struct HttpBackend {
    client: Client,
    base: BaseUrl,
    shown: Arc<str>,
    pub(crate) credential: Option<HeaderValue>,
    endpoints: Option<Endpoints>,
    timeouts: Timeouts,
}

impl HttpBackend {
    /// A backend at an address. Connects to nothing yet.
    ///
    /// # Errors
    /// [`NotABackend`] when the address or the key cannot be used.
    pub fn new(config: &BackendConfig) -> Result<Self, NotABackend> {
        let base = BaseUrl::parse(&config.url)?;
        let only = config.address.map(|ip| ip.to_canonical());
        let client = Client::new(Connector::new(&base, only, config.timeouts.connect)?);
        let credential = credential(config, &base)?;
        let shown = base.to_string().into();
        let (endpoints, timeouts) = (config.endpoints, config.timeouts);
        Ok(Self { client, base, shown, credential, endpoints, timeouts })
    }

    /// Host and port.
    pub fn label(&self) -> &str {
        self.base.host()
    }

    /// Posts an ask. See [`crate::Backend::send`].
    ///
    /// # Errors
    /// [`BackendError`] when no head of an answer came.
    pub async fn send(&self, ask: BackendRequest) -> Result<Answer, BackendError> {
        self.ask(Method::POST, ask).await
    }

    /// The same with another method than `POST`, for what asks about an earlier answer.
    ///
    /// # Errors
    /// [`BackendError`] when no head of an answer came.
    pub async fn ask(&self, method: Method, ask: BackendRequest) -> Result<Answer, BackendError> {
        let headers = to_backend(ask.headers, self.credential.as_ref());
        let request = self.request(method, &ask.path_and_query, headers, ask.body)?;
        let response = self.respond(request, Phase::FirstByte, self.timeouts.first_byte).await?;
        let (head, body) = response.into_parts();
        let body = AnswerBody::network(body, self.timeouts.idle, Arc::clone(&self.shown));
        Ok(Answer { status: head.status, headers: from_backend(head.headers), body })
    }

    /// The models it has. See [`crate::Backend::models`].
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached or gives no list.
    pub async fn models(&self) -> Result<Vec<String>, BackendError> {
        self.model_list(models::DEADLINE).await.map(|list| list.names)
    }

    /// The endpoints that it serves. See [`crate::Backend::endpoints`].
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached.
    pub async fn endpoints(&self) -> Result<Option<Endpoints>, BackendError> {
        match self.endpoints {
            Some(known) => Ok(Some(known)),
            None => self.probe().await,
        }
    }

    /// Its list of models, in the OpenAI form or, when that fails or is empty, in Ollama's.
    pub(crate) async fn model_list(&self, deadline: Duration) -> Result<ModelList, BackendError> {
        let listing = async {
            match self.get_models("/v1/models").await {
                Ok(list) if list.is_warren || !list.names.is_empty() => Ok(list),
                Err(error @ BackendError::Unreachable { .. }) => Err(error),
                first => self.get_models("/api/tags").await.or(first),
            }
        };
        timeout(deadline, listing).await.unwrap_or_else(|_| Err(self.late(Phase::Models, deadline)))
    }

    async fn get_models(&self, path: &str) -> Result<ModelList, BackendError> {
        let headers = to_backend(HeaderMap::new(), self.credential.as_ref());
        let request = self.request(Method::GET, path, headers, Vec::new())?;
        let response = self.respond(request, Phase::Models, models::DEADLINE).await?;
        models::read(response)
            .await
            .map_err(|reason| BackendError::NoModels { backend: Arc::clone(&self.shown), reason })
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Vec<bytes::Bytes>,
    ) -> Result<Request<Pieces>, BackendError> {
        let uri = self.base.join(path);
        let uri = uri.ok_or_else(|| BackendError::BadAsk(format!("{path:?} is no path")))?;
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    pub(crate) async fn respond(
        &self,
        request: Request<Pieces>,
        phase: Phase,
        deadline: Duration,
    ) -> Result<Response<Incoming>, BackendError> {
        match timeout(deadline, self.client.send(request)).await {
            Ok(response) => response.map_err(|error| self.failed(&error)),
            Err(_) => Err(self.late(phase, deadline)),
        }
    }

    fn failed(&self, error: &ClientError) -> BackendError {
        let backend = Arc::clone(&self.shown);
        if causes(error).any(|cause| cause.is::<TooLate>()) {
            return self.late(Phase::Connect, self.timeouts.connect);
        }
        let reason = advised(error.source().unwrap_or(error));
        if error.is_connect() {
            BackendError::Unreachable { backend, reason }
        } else {
            BackendError::Broke { backend, reason }
        }
    }

    fn late(&self, phase: Phase, after: Duration) -> BackendError {
        BackendError::Timeout { backend: Arc::clone(&self.shown), phase, after }
    }
}

fn credential(config: &BackendConfig, base: &BaseUrl) -> Result<Option<HeaderValue>, NotABackend> {
    let Some(key) = &config.api_key else { return Ok(None) };
    let value = HeaderValue::try_from(format!("Bearer {}", key.expose()));
    let mut value = value.map_err(|_| NotABackend::Key { url: base.to_string() })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn causes<'a>(error: &'a ClientError) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next: Option<&'a (dyn Error + 'static)> = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}
