//! The endpoints that a provider's backend serves: announced by the provider, or learned from its
//! answers.
//!
//! Stock workers announce nothing, and stock participants little. Such a provider is assumed to
//! serve an endpoint until an answer shows that its backend does not have it. An answer that may
//! show this is held back, head included, until that is clear. The job is then served in another
//! shape, and no client sees the answer.

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use http::header;
use protocol::endpoint::{may_be_unserved, not_served};
use scheduler::{Head, Membership};

use crate::incoming::Incoming;

/// The longest body that is held back, in bytes. A longer one is passed on as it is.
pub(crate) const MAX_HELD: usize = 64 * 1024;

/// The endpoints of one provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServedEndpoints {
    endpoints: Endpoints,
    /// Whether some endpoints are assumed rather than announced.
    assumed: bool,
}

impl ServedEndpoints {
    /// The endpoints that a registration announces.
    pub(crate) fn new(announced: Option<Endpoints>) -> Self {
        let endpoints = announced.unwrap_or(Endpoints::ASSUMED);
        Self { endpoints, assumed: announced.is_none() }
    }

    /// The endpoints that are assumed until answers show otherwise.
    pub(crate) fn assumed(endpoints: Endpoints) -> Self {
        Self { endpoints, assumed: true }
    }

    pub(crate) fn endpoints(self) -> Endpoints {
        self.endpoints
    }

    /// Records the endpoints that the provider has announced.
    pub(crate) fn announce(&mut self, endpoints: Endpoints) {
        *self = Self { endpoints, assumed: false };
    }

    /// Whether the answer to such a request may be held back to learn from it. A job with other
    /// shapes loses nothing by this.
    pub(crate) fn may_learn(self, shape: &RequestShape) -> bool {
        self.assumed && shape.alternatives
    }

    /// Records that the backend does not have the endpoint that a job was sent to: the job is
    /// served in another shape. `provider` names it in the log.
    pub(crate) fn unserved(
        &mut self,
        membership: &Membership,
        incoming: Incoming,
        provider: &'static str,
    ) {
        let endpoint = incoming.shape.endpoint;
        if self.lacks(endpoint) {
            tracing::info!(%endpoint, "the {provider}'s backend does not serve this: translating");
            membership.endpoints(self.endpoints);
        }
        incoming.writer.unserved();
    }

    /// Removes an endpoint. Returns whether it was there.
    fn lacks(&mut self, endpoint: Endpoint) -> bool {
        let new = self.endpoints.contains(endpoint);
        self.endpoints = self.endpoints.without(endpoint);
        new
    }
}

/// The request that a provider was sent, as far as its answer can teach something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestShape {
    pub(crate) endpoint: Endpoint,
    /// Whether the job can be served in another shape.
    pub(crate) alternatives: bool,
    /// The model, by the provider's name for it.
    pub(crate) model: String,
}

impl RequestShape {
    pub(crate) fn new(endpoint: Endpoint, alternatives: bool, model: &ModelName) -> Self {
        Self { endpoint, alternatives, model: model.as_str().to_owned() }
    }

    /// Whether a complete answer says that the endpoint does not exist.
    pub(crate) fn is_unserved(&self, status: u16, body: &[u8]) -> bool {
        body.len() <= MAX_HELD && not_served(status, body, &self.model)
    }
}

/// An answer that is held back.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    head: Head,
    body: Vec<u8>,
}

impl HeldAnswer {
    /// Holds an answer back, unless its head alone shows that it is a good one: then returns the
    /// head.
    pub(crate) fn of(head: Head) -> Result<Self, Head> {
        let plain_refusal = matches!(head.status.as_u16(), 404 | 405 | 501);
        if plain_refusal || (is_json(&head) && may_be_unserved(head.status.as_u16(), b"")) {
            Ok(Self { head, body: Vec::new() })
        } else {
            Err(head)
        }
    }

    /// Takes more of the body. Returns whether it must still be held back.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        self.body.extend_from_slice(bytes);
        self.body.len() <= MAX_HELD && may_be_unserved(self.head.status.as_u16(), &self.body)
    }

    /// Whether the complete answer says that the endpoint does not exist.
    pub(crate) fn is_unserved(&self, shape: &RequestShape) -> bool {
        shape.is_unserved(self.head.status.as_u16(), &self.body)
    }

    /// The answer so far.
    pub(crate) fn release(self) -> (Head, Bytes) {
        (self.head, self.body.into())
    }
}

fn is_json(head: &Head) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn head(status: u16, kind: &'static str) -> Head {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let status = StatusCode::from_u16(status).unwrap();
        Head { status, headers: HeaderMap::from_iter([kind]) }
    }

    fn asked(alternatives: bool) -> RequestShape {
        RequestShape { endpoint: Endpoint::Messages, alternatives, model: "m".to_owned() }
    }

    #[test]
    fn assumed_endpoints_are_learnt_where_the_job_has_alternatives() {
        let mut served = ServedEndpoints::new(None);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED);
        assert!(served.may_learn(&asked(true)) && !served.may_learn(&asked(false)));
        assert!(served.lacks(Endpoint::Messages));
        assert!(!served.lacks(Endpoint::Messages), "it is known already");
        assert!(!served.endpoints().contains(Endpoint::Messages));
        served.announce(Endpoints::only(Endpoint::Messages));
        assert!(!served.may_learn(&asked(true)));
        let told = ServedEndpoints::new(Some(Endpoints::NONE));
        assert!(told.endpoints().is_empty() && !told.may_learn(&asked(true)));
    }

    #[test]
    fn an_answer_that_cannot_mean_a_missing_path_is_not_held_back() {
        for (status, kind) in [(404, "text/plain"), (405, ""), (501, ""), (200, "application/json")]
        {
            assert!(HeldAnswer::of(head(status, kind)).is_ok(), "{status} {kind}");
        }
        for (status, kind) in [(200, "text/event-stream"), (500, "application/json"), (200, "")] {
            assert!(HeldAnswer::of(head(status, kind)).is_err(), "{status} {kind}");
        }
    }

    #[test]
    fn a_body_is_held_back_until_it_is_clear_and_within_its_bound() {
        let mut good = HeldAnswer::of(head(200, "application/json")).unwrap();
        assert!(good.take(b"{") && !good.take(b"\"id\":1}"));
        let (_, body) = good.release();
        assert_eq!(body, "{\"id\":1}");
        let mut long = HeldAnswer::of(head(404, "")).unwrap();
        assert!(long.take(&[b'x'; MAX_HELD]));
        assert!(long.is_unserved(&asked(true)));
        assert!(!long.take(b"x") && !long.is_unserved(&asked(true)));
    }

    #[test]
    fn a_missing_model_is_not_a_missing_path() {
        let mut held = HeldAnswer::of(head(404, "application/json")).unwrap();
        assert!(held.take(b"{\"error\":\"'m' not found\"}"));
        assert!(!held.is_unserved(&asked(true)));
    }
}
