//! `/admin`: the operator's endpoints. They need the administrator's token or a key of scope
//! `admin`, also for requests from this machine. Every change is written to the audit log.
//!
//! - [`workers`]: the connected providers, and the queues
//! - [`keys`]: creates, rotates and revokes keys; [`bound`]: the rooms that they are bound to
//! - [`model_changes`]: has a worker load or unload a model
//! - [`invitations`]: makes, lists and revokes invitations of machines
//! - [`usage`]: the usage, summed up
//! - [`requests`]: the most recently ended requests, which `recent` keeps, and those that have not ended
//! - `series`: the last minutes as a series of points, which `steps` keeps
//! - `web_sessions`: lists and revokes sessions of the web page
//! - [`audit`]: the log of the operator's actions

pub(crate) mod administration;
pub mod audit;
pub mod bound;
pub mod invitations;
pub mod keys;
pub mod model_changes;
mod recent;
pub mod requests;
pub(crate) mod series;
mod steps;
pub mod usage;
pub(crate) mod web_sessions;
pub mod workers;

use std::sync::Arc;

use access::{Holder, Moment};
use axum::extract::Request;
use base::{KeyId, KeyScope};
use bytes::Bytes;
use http::{Extensions, HeaderMap, StatusCode, Uri};
use store::Action;

pub(crate) use crate::blocking::{blocking, failed};
use crate::{
    error::{ApiError, Kind},
    read,
    state::{Api, Peer},
};
pub use administration::Administration;
pub use recent::RecentRequests;
pub use steps::RecentSeries;

/// The name of the administrator's token in the audit log.
const ADMIN_TOKEN: &str = "admin-token";

/// A caller that may administer.
pub struct Operator {
    who: String,
}

/// Checks that the caller may administer.
///
/// # Errors
/// 401 without the token or a valid key, 403 with a key that lacks the scope `admin`.
pub fn operator(api: &Api, headers: &HeaderMap) -> Result<Operator, ApiError> {
    let found = known_operator(api, headers);
    if let Err(error) = &found {
        // Not written to the audit log: strangers could fill it.
        let status = error.status.as_u16();
        tracing::info!(outcome = "refused", status, message = %error.message, "administration");
    }
    found
}

/// Checks that the caller may administer, then reads the body, of at most `longest` bytes. A
/// stranger's body is not read.
///
/// # Errors
/// As [`operator`]; and when the body is too long or does not arrive.
pub async fn posted(
    api: &Api,
    request: Request,
    longest: usize,
) -> Result<(Operator, Bytes), ApiError> {
    let (parts, mut body) = request.into_parts();
    let read = async {
        let operator = operator(api, &parts.headers)?;
        let mut held = api.uploads().hold();
        Ok((operator, read::read(&parts.headers, &mut body, longest, &mut held).await?))
    };
    let read = read.await;
    if read.is_err() {
        read::discard(&parts.headers, body).await;
    }
    read
}

/// The operator, if the caller is one. For requests that need no operator: a refusal is not logged.
pub(crate) fn operator_if_any(api: &Api, headers: &HeaderMap) -> Option<Operator> {
    known_operator(api, headers).ok()
}

fn known_operator(api: &Api, headers: &HeaderMap) -> Result<Operator, ApiError> {
    let presented = access::presented(headers).ok_or_else(unknown)?;
    if api.administration().token.matches(presented) {
        return Ok(Operator { who: ADMIN_TOKEN.to_owned() });
    }
    let (keys, now) = (api.keys(), Moment::now());
    let has_key = keys.present(presented, KeyScope::Admin, now)?.is_some();
    if !has_key && !keys.is_owners_session(presented, now) {
        return Err(unknown());
    }
    let session = keys.page_sessions().find(presented, now);
    let session = session.as_ref().map(|session| session.id().as_str());
    Ok(Operator::of(&keys.holder(presented, now)?, session))
}

fn unknown() -> ApiError {
    let words = "the administrator's token, or a key of scope admin, is required: send the content \
                 of admin.token in the server's data directory as `Authorization: Bearer TOKEN`";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

impl Operator {
    /// The operator that holds a credential. `session`: the id of the page session by which the request came, if any.
    pub(crate) fn of(holder: &Holder, session: Option<&str>) -> Self {
        let holder = holder.key().map_or(ADMIN_TOKEN, KeyId::as_str);
        let session = session.map(|id| format!(" (page session {id})")).unwrap_or_default();
        Self { who: format!("{holder}{session}") }
    }

    /// Writes an action and its outcome to the audit log. A failed write does not stop the action.
    pub async fn record<T>(&self, api: &Api, what: &str, target: &str, went: &Result<T, ApiError>) {
        let outcome = went.as_ref().map_or_else(|error| error.message.to_string(), |_| done());
        let action = action(&self.who, what, target, outcome);
        tracing::info!(who = action.who, what, target, outcome = action.outcome, "administration");
        let audit = Arc::clone(&api.administration().audit);
        let noted = blocking(move || audit.add_action(&action)).await;
        if let Err(error) | Ok(Err(error)) = noted.map(|noted| noted.map_err(|e| failed(&e))) {
            tracing::warn!(error = %error.message, "an action is not in the audit log");
        }
    }
}

fn done() -> String {
    "done".to_owned()
}

/// An entry for the audit log, with the current time.
pub fn action(who: &str, what: &str, target: &str, outcome: String) -> Action {
    let (who, what, target) = (who.to_owned(), what.to_owned(), target.to_owned());
    Action { at: Moment::now().seconds(), who, what, target, outcome }
}

impl Api {
    /// Whether a request comes from the operator, or is local and carries no invalid key.
    pub fn is_own(&self, extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.rules().is_local(Peer::of(extensions), uri, headers, Moment::now())
            || operator(self, headers).is_ok()
    }

    /// Whether a request may see the server's state: it is the server's own ([`Api::is_own`]), or
    /// carries a valid key of any scope that is not bound to a room, or a session of the page.
    pub fn is_trusted(&self, extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.is_own(extensions, uri, headers) || self.rules().has_key(headers, Moment::now())
    }

    /// Whether a request may read `/metrics`: it is local, or carries the administrator's token or
    /// a key of scope `admin` or `metrics`.
    pub fn may_read_metrics(&self, ext: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        let has_key = |text| self.keys().present(text, KeyScope::Metrics, Moment::now());
        self.is_own(ext, uri, headers)
            || access::presented(headers).is_some_and(|text| matches!(has_key(text), Ok(Some(_))))
    }
}
