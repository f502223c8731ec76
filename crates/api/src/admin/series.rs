//! `GET /admin/series`: the last minutes of the server, as a series of points.

use axum::{
    Json,
    extract::{Request, State},
};
use protocol::admin::series::{STEP_SECS, Series};

use super::{operator, usage::numbers};
use crate::{error::ApiError, state::Api};

pub(crate) async fn show(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<Series>, ApiError> {
    operator(&api, request.headers())?;
    // How far the series reaches back, in seconds; by default it has all points.
    let known = [("since", u64::MAX)];
    let [since] = numbers(request.uri().query(), known, "since=SECONDS is")?;
    let points = api.administration().series.since(since);
    Ok(Json(Series { step_secs: STEP_SECS, points }))
}
