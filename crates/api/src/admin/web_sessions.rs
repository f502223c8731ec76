//! `/admin/web/sessions`: lists and revokes sessions of the web page.

use access::{Moment, PageSession};
use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    response::IntoResponse,
};
use base::PageSessionId;
use http::{HeaderMap, StatusCode};
use protocol::admin::web::{PageSessionJson, PageSessionList};

use super::{blocking, failed, keys::timestamp, operator};
use crate::{
    error::{ApiError, Kind},
    state::Api,
    web::{holder_id, name_of},
};

pub(crate) async fn list(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let (sessions, now) = (api.keys().page_sessions(), Moment::now());
    let own = access::presented(&headers).and_then(|text| sessions.find(text, now));
    let own = own.as_ref().map(|session| session.id().as_str());
    let sessions = sessions.list(now);
    let shown = sessions.iter().filter_map(|session| shown(&api, session, own, now));
    Ok(Json(PageSessionList { sessions: shown.collect() }))
}

pub(crate) async fn revoke(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let Path(id) = id.map_err(|_| unknown(""))?;
    let (sessions, named) = (api.keys().page_sessions().clone(), id.clone());
    let revoked = blocking(move || sessions.revoke(&named)).await?;
    // Also when the store failed, because in memory the session has already ended.
    api.scheduler().sign_out(&PageSessionId::from(id.as_str()));
    let revoked = revoked.map_err(|error| failed(&error));
    let revoked = revoked.and_then(|session| session.ok_or_else(|| unknown(&id)));
    operator.record(&api, "web.session.revoke", protocol::json::clip(&id, 64), &revoked).await;
    Ok(Json(json_of(&api, &*revoked?, None, Moment::now())))
}

/// A session as it is shown. `None` when the key of its holder has ended: then the session has ended, too.
fn shown(
    api: &Api,
    session: &PageSession,
    own: Option<&str>,
    now: Moment,
) -> Option<PageSessionJson> {
    api.keys().key_of(&session.holder(), now).ok()?;
    Some(json_of(api, session, own, now))
}

fn json_of(api: &Api, session: &PageSession, own: Option<&str>, now: Moment) -> PageSessionJson {
    let (record, holder) = (session.record(), session.holder());
    let key = api.keys().key_of(&holder, now);
    PageSessionJson {
        holder: holder_id(&holder),
        // A key that has ended is not found: its id is shown instead of its name.
        name: key.map_or_else(|_| holder_id(&holder), |key| name_of(key.as_deref())),
        created_at: timestamp(record.created),
        expires_at: timestamp(record.expires),
        last_used_at: record.last_used.map(timestamp),
        browser: record.browser,
        current: own == Some(&*record.id),
        id: record.id,
    }
}

fn unknown(id: &str) -> ApiError {
    let words = format!("the page has no session {id:?}: `warren web list` shows all");
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}
