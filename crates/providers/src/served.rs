//! What a provider's backend serves: as the provider tells, or else as its answers show.
//!
//! Stock workers tell nothing, and stock participants little. One is taken to serve an endpoint
//! until a backend of its answers that it does not have it. An answer that may say so is held back,
//! head and all, until it is clear; the job that it was for is then served in another shape, and no
//! client sees it.

use base::{Endpoint, Endpoints};
use bytes::Bytes;
use http::header;
use protocol::endpoint::{may_be_unserved, not_served};
use scheduler::Head;

/// The longest body that is held back, in bytes. What is longer is passed on as it is.
pub(crate) const MAX_HELD: usize = 64 * 1024;

/// The endpoints of one provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    endpoints: Endpoints,
    /// Whether the provider itself has not told for certain.
    assumed: bool,
}

impl Served {
    /// What a registration tells.
    pub(crate) fn new(told: Option<Endpoints>) -> Self {
        Self { endpoints: told.unwrap_or(Endpoints::ASSUMED), assumed: told.is_none() }
    }

    /// What is assumed until its answers show otherwise.
    pub(crate) fn assumed(endpoints: Endpoints) -> Self {
        Self { endpoints, assumed: true }
    }

    /// What it is taken to serve now.
    pub(crate) fn endpoints(self) -> Endpoints {
        self.endpoints
    }

    /// The provider tells, from now on.
    pub(crate) fn told(&mut self, endpoints: Endpoints) {
        *self = Self { endpoints, assumed: false };
    }

    /// Whether an answer to this may be learnt from: one that is, costs the job nothing.
    pub(crate) fn may_learn(self, asked: &Asked) -> bool {
        self.assumed && asked.alternatives
    }

    /// This endpoint is not there. Whether that is new.
    pub(crate) fn lacks(&mut self, endpoint: Endpoint) -> bool {
        let new = self.endpoints.contains(endpoint);
        self.endpoints = self.endpoints.without(endpoint);
        new
    }
}

/// What a provider was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The endpoint.
    pub(crate) endpoint: Endpoint,
    /// Whether the job can be served in another shape.
    pub(crate) alternatives: bool,
    /// The model, by the provider's name for it.
    pub(crate) model: String,
}

impl Asked {
    /// Whether a whole answer says that the endpoint is not there.
    pub(crate) fn is_unserved(&self, status: u16, body: &[u8]) -> bool {
        body.len() <= MAX_HELD && not_served(status, body, &self.model)
    }
}

/// An answer that is held back.
#[derive(Debug)]
pub(crate) struct Held {
    head: Head,
    body: Vec<u8>,
}

impl Held {
    /// Holds an answer back, if its head alone does not show that it is a good one.
    ///
    /// # Errors
    /// The head, when it does.
    pub(crate) fn back(head: Head) -> Result<Self, Head> {
        let plain_refusal = matches!(head.status.as_u16(), 404 | 405 | 501);
        if plain_refusal || (is_json(&head) && may_be_unserved(head.status.as_u16(), b"")) {
            Ok(Self { head, body: Vec::new() })
        } else {
            Err(head)
        }
    }

    /// Takes more of the body. Whether it is still to be held back.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        self.body.extend_from_slice(bytes);
        self.body.len() <= MAX_HELD && may_be_unserved(self.head.status.as_u16(), &self.body)
    }

    /// Whether the answer, which is complete, says that the endpoint is not there.
    pub(crate) fn is_unserved(&self, asked: &Asked) -> bool {
        asked.is_unserved(self.head.status.as_u16(), &self.body)
    }

    /// The answer as far as it came.
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

    fn asked(alternatives: bool) -> Asked {
        Asked { endpoint: Endpoint::Messages, alternatives, model: "m".to_owned() }
    }

    #[test]
    fn only_what_was_assumed_is_learnt_and_only_where_it_costs_nothing() {
        let mut served = Served::new(None);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED);
        assert!(served.may_learn(&asked(true)) && !served.may_learn(&asked(false)));
        assert!(served.lacks(Endpoint::Messages));
        assert!(!served.lacks(Endpoint::Messages), "it is known already");
        assert!(!served.endpoints().contains(Endpoint::Messages));
        served.told(Endpoints::only(Endpoint::Messages));
        assert!(!served.may_learn(&asked(true)));
        let told = Served::new(Some(Endpoints::NONE));
        assert!(told.endpoints().is_empty() && !told.may_learn(&asked(true)));
    }

    #[test]
    fn what_cannot_be_a_missing_path_is_not_held_back() {
        for (status, kind) in [(404, "text/plain"), (405, ""), (501, ""), (200, "application/json")]
        {
            assert!(Held::back(head(status, kind)).is_ok(), "{status} {kind}");
        }
        for (status, kind) in [(200, "text/event-stream"), (500, "application/json"), (200, "")] {
            assert!(Held::back(head(status, kind)).is_err(), "{status} {kind}");
        }
    }

    #[test]
    fn a_body_is_held_back_as_long_as_it_is_not_clear_and_no_longer_than_its_bound() {
        let mut good = Held::back(head(200, "application/json")).unwrap();
        assert!(good.take(b"{") && !good.take(b"\"id\":1}"));
        let (_, body) = good.release();
        assert_eq!(body, "{\"id\":1}");
        let mut long = Held::back(head(404, "")).unwrap();
        assert!(long.take(&[b'x'; MAX_HELD]));
        assert!(long.is_unserved(&asked(true)));
        assert!(!long.take(b"x") && !long.is_unserved(&asked(true)));
    }

    #[test]
    fn a_model_that_is_not_there_is_no_missing_path() {
        let mut held = Held::back(head(404, "application/json")).unwrap();
        assert!(held.take(b"{\"error\":\"'m' not found\"}"));
        assert!(!held.is_unserved(&asked(true)));
    }
}
