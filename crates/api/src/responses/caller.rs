//! A caller of stored responses and conversations, and the reply.

use axum::{body::Body, extract::Request, response::Response};
use base::{Endpoint, KeyId};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, request::Parts};

use super::{failure, keeping::Keeping};
use crate::{
    error::{ApiError, nothing_at},
    head::{self, new_id},
    read,
    refuse::refuse,
    request_scope::RequestScope,
    shape,
    state::{Api, Limits},
};

/// A caller, and the request.
pub(super) struct Caller {
    pub(super) keeping: Keeping,
    pub(super) owner: KeyId,
    pub(super) query: Option<String>,
    /// What was posted.
    pub(super) body: Bytes,
    pub(super) limits: Limits,
}

/// The reply to a caller.
pub(super) enum Reply {
    Json(String),
    Events(Body),
}

/// Answers a request of a caller that may use models here. `missing` is the error where nothing is kept.
pub(super) async fn answered<F: Future<Output = Result<Reply, ApiError>> + Send>(
    api: &Api,
    request: Request,
    missing: ApiError,
    answer: impl FnOnce(Caller) -> F + Send,
) -> Response {
    let (parts, mut body) = request.into_parts();
    let id = new_id();
    let reply = match Caller::enter(api, &parts, &mut body, missing).await {
        Ok(caller) => answer(caller).await,
        Err(error) => Err(error),
    };
    let shape = shape::of(Endpoint::Responses);
    let (kind, content) = match reply {
        Ok(Reply::Json(text)) => ("application/json", text.into()),
        Ok(Reply::Events(events)) => ("text/event-stream", events),
        Err(error) => return refuse(shape, api, &parts, body, &error, id).await,
    };
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    let head = scheduler::Head { status: StatusCode::OK, headers: headers.into_iter().collect() };
    head::for_client(head, shape, id, content)
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
            // Rooms have paths of their own for this.
            return Err(nothing_at(&parts.uri));
        }
        let keeping = api.keeping().ok_or(missing)?.clone();
        let limits = api.limits();
        let body = match parts.method {
            Method::POST => {
                read::expect_json(&parts.headers)?;
                let mut held = api.uploads().hold();
                read::read(&parts.headers, body, limits.max_body, &mut held).await?
            }
            _ => Bytes::new(),
        };
        let (owner, query) = (scope.admitted().id.clone(), parts.uri.query().map(str::to_owned));
        Ok(Self { keeping, owner, query, body, limits })
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = self.query.as_deref().unwrap_or_default().as_bytes();
        let mut all = form_urlencoded::parse(query);
        all.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }

    /// The same, as a number.
    ///
    /// # Errors
    /// 400 when it is another value.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let bad = |_| failure::invalid(name, "must be a number");
        self.parameter(name).map(|value| value.parse().map_err(bad)).transpose()
    }
}
