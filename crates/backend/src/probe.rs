//! Which endpoints a model server has, found out by asking.
//!
//! Each is posted an empty object. A server that has the endpoint says what is missing from it; no
//! model is named, so none is loaded and nothing is computed.

use std::{future::poll_fn, time::Duration};

use base::{Endpoint, Endpoints};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use protocol::endpoint::{Missing, may_be_missing, missing};
use tokio::time::{Instant, timeout_at};

use crate::{
    client::Body,
    error::{BackendError, Phase},
    headers::to_backend,
    http::HttpBackend,
};

/// How long a server may take to answer a probe.
pub const DEADLINE: Duration = Duration::from_secs(3);

/// The most that is read of its answer, in bytes.
pub const MAX_ANSWER: usize = 16 * 1024;

impl HttpBackend {
    /// Asks at every endpoint at once. See [`crate::Backend::endpoints`].
    ///
    /// # Errors
    /// [`BackendError`] when none of the probes had an answer.
    pub(crate) async fn probe(&self) -> Result<Option<Endpoints>, BackendError> {
        let served = self.probe_all().await?;
        if !served.is_empty() {
            return Ok(Some(served));
        }
        if self.may_be_without_v1() {
            self.manner.set_without_v1(true);
            let served = self.probe_all().await.unwrap_or(served);
            self.manner.set_without_v1(!served.is_empty());
            return Ok(Some(served).filter(|served| !served.is_empty()));
        }
        // A server with models and no endpoint is more likely one that probes do not reach.
        Ok(None)
    }

    async fn probe_all(&self) -> Result<Endpoints, BackendError> {
        let probes = Endpoints::ASSUMED.iter().map(|endpoint| self.probe_one(endpoint));
        let probed = join_all(probes).await;
        if probed.iter().all(Result::is_err) {
            let all: Result<Vec<_>, _> = probed.into_iter().collect();
            return all.map(|_| Endpoints::ASSUMED);
        }
        let missing = probed.into_iter().flatten().flatten();
        Ok(missing.fold(Endpoints::ASSUMED, Endpoints::without))
    }

    /// The endpoint, if it is not there.
    async fn probe_one(&self, endpoint: Endpoint) -> Result<Option<Endpoint>, BackendError> {
        let by = Instant::now() + DEADLINE;
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let headers = to_backend(HeaderMap::from_iter([json]));
        let (body, place) = (vec![Bytes::from_static(b"{}")], self.manner.place());
        let request = self.request(Method::POST, endpoint.path(), headers, body, place)?;
        let response = self.respond(request, Phase::FirstByte, DEADLINE).await?;
        let status = response.status().as_u16();
        let body = beginning(status, response, by).await;
        // The request names nothing that could be missing but the path and a model.
        let missing = missing(status, &body, endpoint.path(), "") != Missing::No;
        tracing::debug!(backend = self.label(), %endpoint, status, missing, "probed");
        Ok(missing.then_some(endpoint))
    }
}

/// The beginning of a body, to judge by: no more than it takes, nor longer than it may take.
async fn beginning(status: u16, response: Response<Body>, by: Instant) -> Vec<u8> {
    let mut body = response.into_body();
    let mut read = Vec::new();
    while read.len() < MAX_ANSWER && may_be_missing(status, &read) {
        let next = poll_fn(|cx| body.poll_next(cx));
        let Ok(Some(Ok(piece))) = timeout_at(by, next).await else { break };
        read.extend_from_slice(&piece);
    }
    read.truncate(MAX_ANSWER);
    read
}
