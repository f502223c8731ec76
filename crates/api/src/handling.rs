//! The handling that a request's headers ask for.

use base::{
    NotResumeAnswers, ProviderId, ResumeAnswers,
    trace::{RequestTrace, Sampler, TRACEPARENT, TraceContext},
};
use http::{HeaderMap, StatusCode, header};
use protocol::headers::ROUTE;
use rand::RngExt;
use scheduler::{NoRoute, Route};

use crate::{
    error::{ApiError, Kind},
    head::{PIN, RESUME},
    request_scope::RequestScope,
    state::Api,
};

/// The handling that a request's headers ask for. What they do not say, the request's key or the settings decide.
pub(crate) struct Handling {
    /// The only provider that may serve the request.
    pub(crate) pinned: Option<ProviderId>,
    pub(crate) route: Route,
    /// Whether another provider may go on with the answer.
    pub(crate) resumes: bool,
    pub(crate) trace: Option<RequestTrace>,
}

impl Handling {
    /// # Errors
    /// 400 for a header that cannot be read.
    pub(crate) fn of(
        api: &Api,
        scope: &RequestScope,
        headers: &HeaderMap,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            pinned: pinned(headers)?,
            trace: trace(api.sampler(), headers),
            route: route(headers)?.unwrap_or(api.limits().route),
            resumes: resumes(api, scope, headers)?,
        })
    }

    /// The handling of a request that the server itself makes.
    pub(crate) fn usual(api: &Api) -> Self {
        Self { pinned: None, route: api.limits().route, resumes: false, trace: None }
    }
}

/// Whether a client reads trailers.
pub(crate) fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let mut all = values.flat_map(|value| value.split(','));
    all.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

fn pinned(headers: &HeaderMap) -> Result<Option<ProviderId>, ApiError> {
    let Some(value) = headers.get(PIN) else { return Ok(None) };
    let pinned = value.to_str().ok().and_then(|value| value.parse().ok());
    let bad = || {
        let words = format!("{PIN} must name a worker by its id, such as w-0123456789abcdef");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    pinned.map(Some).ok_or_else(bad)
}

/// Whether another provider may go on with an answer: the request says so, else its key, else the setting. In a room
/// no provider goes on with another's answer: each participant speaks for itself.
fn resumes(api: &Api, scope: &RequestScope, headers: &HeaderMap) -> Result<bool, ApiError> {
    let of_key = || scope.admitted().key.as_ref()?.resume_answers();
    let how = match headers.get(RESUME) {
        None => of_key().unwrap_or(api.limits().resume_answers),
        Some(value) => {
            let bad = |why: NotResumeAnswers| {
                let given = String::from_utf8_lossy(value.as_bytes());
                let words = format!("{RESUME}: {why}, not {given:?}");
                ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
            };
            value.to_str().map_err(|_| NotResumeAnswers).and_then(str::parse).map_err(bad)?
        }
    };
    Ok(how == ResumeAnswers::SameModel && scope.room().is_none())
}

fn route(headers: &HeaderMap) -> Result<Option<Route>, ApiError> {
    let Some(value) = headers.get(ROUTE) else { return Ok(None) };
    let bad = |why: NoRoute| {
        let words = format!("{ROUTE}: {:?} is {why}", String::from_utf8_lossy(value.as_bytes()));
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    value.to_str().map_err(|_| NoRoute).and_then(str::parse).map(Some).map_err(bad)
}

/// The trace of a request with these headers, if it is traced. If the client sent a trace context, it decides; of the
/// other requests the sampler takes a share. Without a sampler nothing is traced, and headers pass as they came.
fn trace(sampler: Option<Sampler>, headers: &HeaderMap) -> Option<RequestTrace> {
    let sampler = sampler?;
    // Zero is not a valid id. It is drawn once in 2^64 times.
    let span = rand::rng().random::<u64>().max(1).to_be_bytes();
    match trace_context(headers) {
        // The client decides for the whole trace.
        Some(client) => {
            let own = TraceContext { span, ..client };
            client.sampled.then_some(RequestTrace { own, parent: Some(client.span) })
        }
        None => {
            let trace = rand::rng().random::<u128>().max(1).to_be_bytes();
            let own = TraceContext { trace, span, sampled: true };
            sampler.takes(&trace).then_some(RequestTrace { own, parent: None })
        }
    }
}

/// The trace context that a client sent. Two headers count as no context.
fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let one = all.next().filter(|_| all.next().is_none())?;
    TraceContext::parse(one.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(all: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in all {
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        headers
    }

    fn traced(ratio: f64, all: &[&str]) -> Option<RequestTrace> {
        trace(Some(Sampler::of_ratio(ratio)), &headers(all))
    }

    #[test]
    fn a_clients_trace_goes_on_as_it_decided() {
        let client = TraceContext::parse(PARENT).unwrap();
        let found = traced(0.0, &[PARENT]).unwrap();
        assert_eq!((found.own.trace, found.parent), (client.trace, Some(client.span)));
        assert_ne!(found.own.span, client.span);
        assert_eq!(traced(1.0, &[&PARENT.replace("-01", "-00")]), None);
    }

    #[test]
    fn other_requests_begin_a_trace_if_they_are_of_the_share() {
        for none in [&[][..], &["nonsense"], &[PARENT, PARENT]] {
            let begun = traced(1.0, none).unwrap();
            assert_eq!(begun.parent, None);
            assert!(begun.own.sampled && begun.own.trace != [0; 16]);
            assert_eq!(traced(0.0, none), None);
        }
        assert_eq!(trace(None, &headers(&[PARENT])), None, "nothing is traced here");
    }
}
