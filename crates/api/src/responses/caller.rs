//! A client's request about stored responses or conversations, and the reply.

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use base::{Endpoint, JobId, KeyId};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use serde::de::DeserializeOwned;

use super::{failure, keeping::Keeping};
use crate::{
    error::{ApiError, nothing_at},
    head::{self, new_id},
    read,
    refuse::refuse,
    request_scope::RequestScope,
    shape::{self, Shape},
    state::{Api, Limits},
    uploads::HeldMemory,
};

/// A client's request about stored responses or conversations.
pub(super) struct Caller {
    pub(super) keeping: Keeping,
    pub(super) owner: KeyId,
    pub(super) query: Option<String>,
    /// The body of a `POST`; empty for other methods.
    pub(super) body: Bytes,
    /// The memory that the body holds.
    _held: HeldMemory,
    pub(super) limits: Limits,
}

/// The reply to a caller.
pub(super) enum Reply {
    Json(String),
    Events(Body),
}

/// The outcome of a request: its reply, or its error.
pub(super) type Answer = Result<Reply, ApiError>;

/// Routes a method to `answer`, for clients that may use models at this server. `N` are the names in the path.
/// `missing` makes the error for a server that keeps no responses.
pub(super) fn answering<N, F>(
    method: MethodFilter,
    missing: fn(&N) -> ApiError,
    answer: impl Fn(Caller, N) -> F + Clone + Send + Sync + 'static,
) -> MethodRouter<Api>
where
    N: DeserializeOwned + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    on(method, async move |State(api): State<Api>, Path(names): Path<N>, request: Request| {
        let (parts, mut body) = request.into_parts();
        let reply = match Caller::enter(&api, &parts, &mut body, missing(&names)).await {
            Ok(caller) => answer(caller, names).await,
            Err(error) => Err(error),
        };
        let (shape, id) = (shape::of(Endpoint::Responses), new_id());
        match reply {
            Ok(reply) => reply.response(shape, id),
            Err(error) => refuse(shape, &api, &parts, body, &error, id).await,
        }
    })
}

impl Reply {
    pub(super) fn response(self, shape: &dyn Shape, id: JobId) -> Response {
        let (kind, content) = match self {
            Self::Json(text) => ("application/json", text.into()),
            Self::Events(events) => ("text/event-stream", events),
        };
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let head =
            scheduler::Head { status: StatusCode::OK, headers: [kind].into_iter().collect() };
        head::for_client(head, shape, id, content)
    }
}

impl Caller {
    async fn enter(
        api: &Api,
        parts: &Parts,
        body: &mut Body,
        missing: ApiError,
    ) -> Result<Self, ApiError> {
        let scope = RequestScope::of_plain(api, parts)?;
        if scope.room().is_some() {
            // A room keeps no responses itself: its own paths lead to the participants that do.
            return Err(nothing_at(&parts.uri));
        }
        let keeping = api.keeping().ok_or(missing)?.clone();
        let limits = api.limits();
        let mut held = api.uploads().hold();
        let body = match parts.method {
            Method::POST => {
                read::expect_json(&parts.headers)?;
                read::read(&parts.headers, body, limits.max_body, &mut held).await?
            }
            _ => Bytes::new(),
        };
        let (owner, query) = (scope.admitted().id.clone(), parts.uri.query().map(str::to_owned));
        Ok(Self { keeping, owner, query, body, _held: held.take(), limits })
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = self.query.as_deref().unwrap_or_default().as_bytes();
        let mut all = form_urlencoded::parse(query);
        all.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }

    /// A parameter of the query as a number.
    ///
    /// # Errors
    /// 400 when the value is not a number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let bad = |_| failure::invalid(name, "must be a number");
        self.parameter(name).map(|value| value.parse().map_err(bad)).transpose()
    }
}
