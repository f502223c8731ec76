//! The handling that a request's headers ask for.

use base::{NotResumeAnswers, ProviderId, ResumeAnswers, trace::RequestTrace};
use http::{HeaderMap, StatusCode, header};
use protocol::headers::ROUTE;
use scheduler::{NoRoute, Route};

use crate::{
    answer::RESUME,
    error::{ApiError, Kind},
    request_scope::RequestScope,
    state::Api,
    trace,
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// The handling that a request's headers ask for, or else its key or the settings.
pub(crate) struct Handling {
    /// The only provider that may serve it.
    pub(crate) pinned: Option<ProviderId>,
    pub(crate) route: Route,
    /// Whether its answer may be gone on with by another provider.
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
            trace: trace::of(api.sampler(), headers),
            route: route(headers)?.unwrap_or(api.limits().route),
            resumes: resumes(api, scope, headers)?,
        })
    }

    /// That of a request that the server itself makes.
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

/// Whether an answer may be gone on with by another provider: the request says so, or its key, or the setting. In a
/// room nobody goes on: each of its participants speaks for itself.
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
