//! `POST /web/code`: a login code, by which another browser signs in with the same rights.

use access::{Moment, TooManyCodes};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use base::Secret;
use http::{HeaderMap, StatusCode};
use protocol::admin::web::LoginCode;

use super::kept_private;
use crate::{
    admin::{Operator, keys::timestamp},
    error::{ApiError, Kind},
    state::Api,
};

pub(crate) async fn create(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let presented = access::presented(&headers).ok_or_else(unknown)?;
    let (keys, now) = (api.keys(), Moment::now());
    let holder = keys.holder(presented, now)?;
    let session = keys.page_sessions().find(presented, now);
    let by = Operator::of(&holder, session.as_ref().map(|session| session.id().as_str()));
    let made = keys.page_sessions().codes().create(holder, now).map_err(ApiError::from);
    by.did(&api, "web.code.create", "", &made).await;
    let expires = timestamp(now.after(access::page_sessions::GOOD_FOR).seconds());
    let code = LoginCode { code: Secret::expose(&made?).to_owned(), expires };
    Ok(kept_private(Json(code).into_response()))
}

fn unknown() -> ApiError {
    let words = "a login code is made by the administrator's token, a key or a session of the page";
    ApiError::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
}

impl From<TooManyCodes> for ApiError {
    fn from(error: TooManyCodes) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, error.to_string())
    }
}
