//! `GET /admin/series`: the last minutes of the server, as a series of points.

use axum::{
    Json,
    extract::{Request, State},
};
use http::StatusCode;
use protocol::admin::series::{STEP_SECS, Series};

use super::{operator, usage::parameters};
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

pub(crate) async fn show(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<Series>, ApiError> {
    operator(&api, request.headers())?;
    let since = since(request.uri().query())?;
    let points = api.administration().series.since(since);
    Ok(Json(Series { step_secs: STEP_SECS, points }))
}

/// How far back a query asks for, in seconds. By default all there is.
fn since(query: Option<&str>) -> Result<u64, ApiError> {
    let mut since = u64::MAX;
    for (name, value) in parameters(query) {
        let given = value.parse().ok().filter(|_| name == "since");
        since = given.ok_or_else(|| {
            let words = format!("{name}={value} is no parameter of this: only since=SECONDS is");
            ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
        })?;
    }
    Ok(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_parameter_is_named() {
        for query in ["since=7d", "since=-1", "after=1", "since="] {
            let error = since(Some(query)).unwrap_err();
            assert!(error.message.contains(query), "{}", error.message);
        }
        assert_eq!(since(Some("since=60")).ok(), Some(60));
        assert_eq!(since(None).ok(), Some(u64::MAX));
    }
}
