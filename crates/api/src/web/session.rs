//! Sign-in and sign-out of browsers at `/web/session`, which also names the holder. `POST /web/code` makes a login code,
//! with which another browser signs in with the same rights.

use std::{sync::Arc, time::Duration};

use access::{
    Denied, Holder, Key, Moment, NewPageSession, PageSession, TooManyCodes, has_session_form,
    is_from_own_page,
};
use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base::{ClientAddress, KeyScope, Secret};
use http::{HeaderMap, StatusCode, header, request::Parts};
use protocol::admin::web::{LoginCode, SignedIn};
use serde::Deserialize;
use tokio::time::Instant;

use super::{cookie::PagePath, kept_private, name_of};
use crate::{
    admin::{self, Operator, blocking, keys::timestamp},
    error::{ApiError, Kind},
    read,
    state::{Api, Client, Peer},
};

/// The longest body of a request, in bytes.
const LONGEST: usize = 4 * 1024;

/// The scopes of the server's owner.
const OWNERS: [KeyScope; 5] = [
    KeyScope::Inference,
    KeyScope::WorkspaceAdmin,
    KeyScope::Admin,
    KeyScope::Metrics,
    KeyScope::Rooms,
];

/// The body of `POST /web/session`. It must have one of the two credentials, and not both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: Option<Secret>,
    code: Option<Secret>,
    path: Option<String>,
}

/// The credential with which somebody signs in.
enum Credential {
    Token(Secret),
    Code(Secret),
}

pub(crate) async fn show(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match signed_in(&api, &parts) {
        Ok((session, key)) => kept_private(Json(shown(&session, key.as_deref())).into_response()),
        Err(error) => without_cookie(&api, &parts, error.into_response()),
    }
}

pub(crate) async fn sign_in(
    State(api): State<Api>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    if !is_from_own_page(&parts.uri, &parts.headers) {
        read::discard(&parts.headers, body).await;
        return Err(foreign());
    }
    let mut held = api.uploads().hold();
    let words = "that is no way to sign in: send {\"token\": …} or {\"code\": …}";
    let sign_in: SignIn = read::json(&parts.headers, body, LONGEST, &mut held, words).await?;
    let path = sign_in.path.as_deref().map_or_else(|| Some(PagePath::default()), PagePath::of);
    let (credential, path) = credential(sign_in.token, sign_in.code)
        .zip(path)
        .ok_or_else(|| ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words))?;
    let now = Moment::now();
    let (holder, key) = known(&api, Client::of(&parts.extensions), &credential, now)?;
    let made = begin(&api, &parts, &holder, key.as_deref(), now).await;
    let target = made.as_ref().map_or("", |new| new.session.id().as_str());
    Operator::of(&holder, None).record(&api, credential.action(), target, &made).await;
    let NewPageSession { session, text, displaced } = made?;
    displaced.iter().for_each(|ended| api.scheduler().sign_out(ended));
    let lasts = session.record().expires.saturating_sub(now.seconds());
    let (cookie, secure) = (&api.web().cookie, is_secure(&api, &parts));
    let cookie = cookie.set(&text, &path, Duration::from_secs(lasts), secure);
    let mut answer = kept_private(Json(shown(&session, key.as_deref())).into_response());
    cookie.into_iter().for_each(|line| drop(answer.headers_mut().insert(header::SET_COOKIE, line)));
    Ok(answer)
}

pub(crate) async fn sign_out(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let ended = end(&api, &parts).await;
    let answer =
        ended.map_or_else(ApiError::into_response, |()| StatusCode::NO_CONTENT.into_response());
    without_cookie(&api, &parts, answer)
}

/// The session of a request, with the session's key; without a key it is the owner's.
///
/// # Errors
/// 401 when the request has no session, or one that has ended.
fn signed_in(api: &Api, parts: &Parts) -> Result<(Arc<PageSession>, Option<Arc<Key>>), ApiError> {
    let (keys, now) = (api.keys(), Moment::now());
    let text = access::presented(&parts.headers).filter(|text| has_session_form(text));
    let session = text.and_then(|text| keys.page_sessions().find(text, now)).ok_or_else(nobody)?;
    let key = keys.key_of(&session.holder(), now)?;
    Ok((session, key))
}

async fn begin(
    api: &Api,
    parts: &Parts,
    holder: &Holder,
    key: Option<&Key>,
    now: Moment,
) -> Result<NewPageSession, ApiError> {
    let browser = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let browser = browser.unwrap_or_default().to_owned();
    let expires = key.and_then(|key| key.record().expires);
    let (sessions, holder) = (api.keys().page_sessions().clone(), holder.clone());
    let made = blocking(move || sessions.create(&holder, &browser, expires, now)).await?;
    made.map_err(|error| admin::failed(&error))
}

async fn end(api: &Api, parts: &Parts) -> Result<(), ApiError> {
    let (session, _) = signed_in(api, parts)?;
    let (sessions, id) = (api.keys().page_sessions().clone(), session.id().clone());
    let ended = blocking(move || sessions.revoke(id.as_str())).await?;
    let ended = ended.map_err(|error| admin::failed(&error));
    // Also when the store failed, because in memory the session has already ended.
    api.scheduler().sign_out(session.id());
    let by = Operator::of(&session.holder(), Some(session.id().as_str()));
    by.record(api, "web.session.end", session.id().as_str(), &ended).await;
    ended.map(drop)
}

/// The holder of a credential. Wrong credentials are counted by address. The lock is held from the look at the count
/// to the new count, so that an address gets no more tries by sending many at once.
///
/// # Errors
/// 401 when the credential is wrong, 429 after too many wrong ones.
fn known(
    api: &Api,
    from: ClientAddress,
    credential: &Credential,
    now: Moment,
) -> Result<(Holder, Option<Arc<Key>>), ApiError> {
    let mut lock_out = api.web().lock_out();
    let at = Instant::now().into_std();
    lock_out.check(from, at).map_err(|wait| ApiError { retry_after: Some(wait), ..too_many() })?;
    let found = credential.holder(api, now);
    match &found {
        Ok(_) => lock_out.succeeded(from),
        Err(error) => {
            lock_out.failed(from, at);
            tracing::info!(outcome = "refused", message = %error.message, "signing in at the page");
        }
    }
    found
}

impl Credential {
    fn holder(&self, api: &Api, now: Moment) -> Result<(Holder, Option<Arc<Key>>), ApiError> {
        let keys = api.keys();
        let holder = match self {
            // A session is for one browser: another session cannot be made from it, which would prolong it.
            Self::Token(text) if has_session_form(text.expose()) => return Err(wrong_token()),
            Self::Token(text) => {
                keys.holder(text.expose(), now).map_err(|denied| match denied {
                    Denied::KeyUnknown => wrong_token(),
                    known => known.into(),
                })?
            }
            Self::Code(text) => {
                keys.page_sessions().codes().take(text.expose(), now).ok_or_else(wrong_code)?
            }
        };
        let key = keys.key_of(&holder, now)?;
        Ok((holder, key))
    }

    /// The name of signing in with it in the audit log.
    const fn action(&self) -> &'static str {
        match self {
            Self::Token(_) => "web.session.create",
            Self::Code(_) => "web.code.use",
        }
    }
}

fn credential(token: Option<Secret>, code: Option<Secret>) -> Option<Credential> {
    match (token, code) {
        (Some(token), None) => Some(Credential::Token(token)),
        (None, Some(code)) => Some(Credential::Code(code)),
        _ => None,
    }
}

/// Makes the browser delete the cookie of the request, whose session has ended. Otherwise the browser would send it
/// again and again.
fn without_cookie(api: &Api, parts: &Parts, mut answer: Response) -> Response {
    let (cookie, presented) = (&api.web().cookie, access::presented(&parts.headers));
    let content =
        cookie.content(&parts.headers).filter(|content| presented == Some(content.text()));
    if let Some(line) =
        content.and_then(|content| cookie.deleted(content.path(), is_secure(api, parts)))
    {
        answer.headers_mut().insert(header::SET_COOKIE, line);
    }
    kept_private(answer)
}

/// Whether the browser's request came over TLS, to this server or to a proxy that it trusts.
fn is_secure(api: &Api, parts: &Parts) -> bool {
    let rules = api.rules();
    let proxies = &rules.local.trusted_proxies;
    api.rooms().tls || proxies.tell_of_tls(Peer::of(&parts.extensions), &parts.headers)
}

fn shown(session: &PageSession, key: Option<&Key>) -> SignedIn {
    let scopes = key.map_or_else(|| OWNERS.to_vec(), |key| key.record().scopes);
    SignedIn { name: name_of(key), scopes, expires: timestamp(session.record().expires) }
}

fn nobody() -> ApiError {
    let words =
        "nobody is signed in here: sign in at the page, with a key or a login code of `warren web`";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

fn foreign() -> ApiError {
    let words = "people sign in at this server's own page only; a proxy in front of the server has to pass the Host \
                 header on";
    ApiError::new(StatusCode::FORBIDDEN, Kind::Permission, words)
}

fn wrong_token() -> ApiError {
    let words = "this server knows no such token: take a key of `warren key create`, or the content of admin.token in \
                 the server's data directory";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

fn wrong_code() -> ApiError {
    let words = "this login code is unknown, used or too old: `warren web` on the server's machine makes a new one";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

fn too_many() -> ApiError {
    let words = "too many wrong tokens and codes came from your address: try again later";
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, words)
}

/// Makes a login code.
pub(crate) async fn create_code(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let presented = access::presented(&headers).ok_or_else(no_credential)?;
    let (keys, now) = (api.keys(), Moment::now());
    let holder = keys.holder(presented, now)?;
    let session = keys.page_sessions().find(presented, now);
    let by = Operator::of(&holder, session.as_ref().map(|session| session.id().as_str()));
    let made = keys.page_sessions().codes().create(holder, now).map_err(ApiError::from);
    by.record(&api, "web.code.create", "", &made).await;
    let expires = timestamp(now.after(access::page_sessions::GOOD_FOR).seconds());
    let code = LoginCode { code: Secret::expose(&made?).to_owned(), expires };
    Ok(kept_private(Json(code).into_response()))
}

fn no_credential() -> ApiError {
    let words = "a login code is made by the administrator's token, a key or a session of the page";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

impl From<TooManyCodes> for ApiError {
    fn from(error: TooManyCodes) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, error.to_string())
    }
}
