//! Which endpoints a model server has, found out by asking.
//!
//! An empty object is posted to each endpoint that generates text. A server that has the endpoint answers what is
//! missing from the object. No model is named, so none is loaded and nothing is computed.
//!
//! At the other endpoints, some servers choose a model themselves, and speak or paint even for an empty object. So
//! the beginning of an object is posted there, which cannot be parsed. Such an endpoint counts as served only if the
//! answer shows that its path exists. The server must also be known to distinguish paths: it is first asked at one
//! that no server has.

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
    manner::{RERANK, Ranking},
};

/// How long a server may take to answer a probe.
pub const DEADLINE: Duration = Duration::from_secs(3);

/// The most bytes of its answer that are read.
pub const MAX_ANSWER: usize = 16 * 1024;

/// A path that no server has.
const NOWHERE: &str = "/v1/warren/nowhere";

/// The body for an endpoint that generates text.
const EMPTY: &[u8] = b"{}";

/// The body for any other endpoint: the beginning of an object.
const UNREADABLE: &[u8] = b"{";

/// The body that finds out in which shape a server ranks: its error names the missing field.
const NO_DOCUMENTS: &[u8] = br#"{"query":""}"#;

/// The field whose absence a server of Text Embeddings Inference reports.
const TEXTS: &[u8] = b"texts";

impl HttpBackend {
    /// Probes all endpoints at the same time. See [`crate::Backend::endpoints`].
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
        // If no endpoint seems to be there, the probes have probably failed to reach them.
        Ok(None)
    }

    /// Probes every endpoint.
    async fn probe_all(&self) -> Result<Endpoints, BackendError> {
        let (text, others) = tokio::join!(self.probe_text(), self.probe_others());
        Ok(text?.union(others))
    }

    /// Probes the endpoints that generate text, all at the same time.
    async fn probe_text(&self) -> Result<Endpoints, BackendError> {
        let probes = Endpoints::ASSUMED.iter().map(|endpoint| self.probe_one(endpoint));
        let probed = join_all(probes).await;
        if probed.iter().all(Result::is_err) {
            let all: Result<Vec<_>, _> = probed.into_iter().collect();
            return all.map(|_| Endpoints::ASSUMED);
        }
        let missing = probed.into_iter().flatten().flatten();
        Ok(missing.fold(Endpoints::ASSUMED, Endpoints::without))
    }

    /// Probes one endpoint, and returns it if it is not there.
    async fn probe_one(&self, endpoint: Endpoint) -> Result<Option<Endpoint>, BackendError> {
        let probed = self.ask_at(endpoint.path(), EMPTY).await?;
        Ok(probed.missing.then_some(endpoint))
    }

    /// Probes the other endpoints, all at the same time, if the server distinguishes paths. A Warren is not probed:
    /// it has every path, and its list says which ones its own workers have.
    async fn probe_others(&self) -> Endpoints {
        if let Some(listed) = self.listed_endpoints() {
            return listed;
        }
        let nowhere = self.ask_at(NOWHERE, UNREADABLE).await;
        if !nowhere.is_ok_and(|probed| probed.missing) {
            return Endpoints::NONE;
        }
        let probes = Endpoints::UNTRANSLATED.iter().map(async |endpoint| {
            let is_there = match endpoint {
                Endpoint::Rerank => self.find_ranking().await,
                _ => self.is_there(endpoint.path()).await,
            };
            is_there.then_some(endpoint)
        });
        join_all(probes).await.into_iter().flatten().collect()
    }

    async fn is_there(&self, path: &str) -> bool {
        self.ask_at(path, UNREADABLE).await.is_ok_and(|probed| probed.is_there())
    }

    /// Finds where the server ranks, below `/v1` or at the root, and at the root in which shape. Returns whether it
    /// ranks at all. A known place is kept until it proves wrong, because requests for rankings use it meanwhile.
    async fn find_ranking(&self) -> bool {
        if self.manner.ranking() != Ranking::BelowV1 && !self.is_there(RERANK).await {
            self.manner.set_ranking(Ranking::BelowV1);
        }
        if self.manner.ranking() == Ranking::BelowV1 {
            let is_below = self.is_there(Endpoint::Rerank.path()).await;
            if is_below && !self.manner.is_without_v1() {
                return true;
            }
            if !is_below && !self.is_there(RERANK).await {
                return false;
            }
        }
        let asked = self.ask_at(RERANK, NO_DOCUMENTS).await;
        let of_texts =
            asked.is_ok_and(|probed| memchr::memmem::find(&probed.body, TEXTS).is_some());
        self.manner.set_ranking(if of_texts { Ranking::OfTexts } else { Ranking::AtRoot });
        true
    }

    async fn ask_at(&self, path: &str, body: &'static [u8]) -> Result<Probed, BackendError> {
        let by = Instant::now() + DEADLINE;
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let headers = to_backend(HeaderMap::from_iter([json]));
        let (body, place) = (vec![Bytes::from_static(body)], self.manner.place());
        let request = self.request(Method::POST, path, headers, body, place)?;
        let response = self.respond(request, Phase::FirstByte, DEADLINE).await?;
        let status = response.status().as_u16();
        let body = beginning(status, response, by).await;
        // Only the path or a model can be missing here, since the request names nothing else.
        let missing = missing(status, &body, path, "") != Missing::No;
        tracing::debug!(backend = self.label(), path, status, missing, "probed");
        Ok(Probed { status, missing, body })
    }
}

/// The answer to a probe.
struct Probed {
    status: u16,
    /// Whether the answer says that the path is not there.
    missing: bool,
    /// The beginning of the answer.
    body: Vec<u8>,
}

impl Probed {
    /// Whether the answer shows that the path exists, because its handler has read the request. 500 counts: some
    /// servers report a body that they cannot parse as their own error.
    fn is_there(&self) -> bool {
        let has_looked = matches!(self.status, 200 | 400 | 404 | 411..=415 | 422 | 500);
        !self.missing && has_looked
    }
}

/// The beginning of a body: as much as is needed to judge it, and as came before `by`.
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
