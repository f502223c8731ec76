//! Jobs, and how they can fail.

use std::sync::Arc;

pub use base::JobUsage as Usage;
use base::{
    Endpoint, Endpoints, JobId, KeyId, ModelName, PageSessionId, ProviderId, Scope,
    trace::{RequestTrace, TRACEPARENT, TraceContext},
};
use bytes::Bytes;
use dispatch::{Affinity, Ending, Route};
use http::{HeaderMap, HeaderValue, Method};

use crate::translate::{Translator, Untranslated};

/// One inference request, as an API submits it.
pub struct Job {
    /// Its id, unique for all time.
    pub id: JobId,
    /// The scope that its providers belong to.
    pub scope: Scope,
    /// The model that it names; usage is counted under this name.
    pub model: ModelName,
    /// The models that may serve it, in order: the model itself, or an alias's targets. Not empty.
    pub targets: Vec<ModelName>,
    /// The shape of its request.
    pub endpoint: Endpoint,
    /// The shapes that it can be served in.
    pub serve_as: Endpoints,
    /// Converts its request into the provider's.
    pub translator: Arc<dyn Translator>,
    /// The key that it counts towards.
    pub key: KeyId,
    /// The page session through which it came, if it came from the web page.
    pub page_session: Option<PageSessionId>,
    /// Its size on the wire in its largest form, in bytes.
    pub size: u64,
    /// How its prompt begins.
    pub affinity: Affinity,
    /// The only provider that may serve it, if the consumer named one.
    pub pinned: Option<ProviderId>,
    /// Whose job it is, if it is a fellow's job. Then it is pinned, and takes a slot that is lent
    /// to fellows, or ends.
    pub lent: Option<LentFor>,
    /// How far it may go.
    pub route: Route,
    /// Whether it may go to a cloud when no own provider can answer.
    pub clouds: bool,
    /// Whether the job should wait when no provider serves its model now.
    pub known: bool,
    /// Whether another provider may resume its answer if that breaks off.
    pub resumes: bool,
    /// Its trace, if it is traced.
    pub trace: Option<RequestTrace>,
    /// The client's request.
    pub request: JobRequest,
    /// Counts tokens as the answer passes.
    pub meter: Box<dyn Meter>,
}

impl Job {
    /// A job for any provider of the server that has the request's model, sent unchanged and
    /// counted for the local user. The caller changes fields where its job differs.
    pub fn new(id: JobId, endpoint: Endpoint, request: JobRequest, meter: Box<dyn Meter>) -> Self {
        Self {
            id,
            scope: Scope::server(),
            model: request.model.clone(),
            targets: vec![request.model.clone()],
            endpoint,
            serve_as: Endpoints::only(endpoint),
            translator: Arc::new(Untranslated(endpoint)),
            key: "local".into(),
            page_session: None,
            size: request.body.len() as u64,
            affinity: Affinity::default(),
            pinned: None,
            lent: None,
            route: Route::default(),
            clouds: true,
            known: true,
            resumes: false,
            trace: None,
            request,
            meter,
        }
    }
}

/// Whose job a lent job is. Another server of the fleet has its client, and is its home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentFor {
    /// The name of that server.
    pub home: Arc<str>,
    /// The job's id there.
    pub job: JobId,
}

/// A request for a provider, with the client's bytes.
#[derive(Debug, Clone)]
pub struct JobRequest {
    /// `POST`, except for requests about an earlier answer.
    pub method: Method,
    /// Path and query, such as `/v1/chat/completions?x=1`.
    pub path_and_query: String,
    /// The model that it names.
    pub model: ModelName,
    /// Whether the client asked for a stream.
    pub streaming: bool,
    /// The headers, without credentials and without those of the connection.
    pub headers: HeaderMap,
    /// The body as the client sent it. UTF-8.
    pub body: Bytes,
}

impl JobRequest {
    /// The same request, sent as a part of this span.
    #[must_use]
    pub(crate) fn within(&self, span: TraceContext) -> Self {
        let mut request = self.clone();
        // The text of a trace context has only digits, letters and hyphens, so this never fails.
        if let Ok(value) = HeaderValue::try_from(span.to_string()) {
            request.headers.insert(TRACEPARENT, value);
        }
        request
    }
}

/// Counts tokens as an answer passes. It sees every byte once, in order, as the provider sent it.
/// If another provider resumed the answer, it sees the rest as the first provider would have sent
/// it.
pub trait Meter: Send {
    /// The next bytes of the answer.
    fn feed(&mut self, chunk: &[u8]);

    /// The usage that the answer has reported so far.
    fn usage(&self) -> Usage;

    /// Whether text of the model has passed. It is asked after each chunk until it says yes.
    fn has_text(&self) -> bool {
        false
    }

    /// This meter's own estimate of the usage so far, for counts that no provider reports. Used
    /// only for answers with a good status.
    fn estimate(&self) -> Usage {
        Usage::default()
    }
}

/// Counts nothing.
impl Meter for () {
    fn feed(&mut self, _: &[u8]) {}

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// Why a job has no answer, or an incomplete one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The ending.
    pub ending: Ending,
    /// The last provider's message about it, if there was one.
    pub detail: Option<String>,
}

impl From<Ending> for Failure {
    fn from(ending: Ending) -> Self {
        Self { ending, detail: None }
    }
}
