//! The HTTP API by which stock clients manage rooms: `/v1/health` and `/v1/rooms…`. Every answer is
//! in an envelope, `{"data", "meta"}` or `{"error", "meta"}`.
//!
//! - [`rooms`]: creates, lists, changes and closes rooms
//! - [`participants`]: the participants of a room

pub(super) mod participants;
pub(super) mod rooms;

use access::Moment;
use axum::{
    Json, Router,
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use http::StatusCode;
use protocol::room::plane::{Envelope, Meta, PlaneHealth};
use serde::Serialize;

use super::failure::Failure;
use crate::state::Api;

type Answer = Result<Response, Failure>;

type Code = Result<Path<String>, PathRejection>;

type Ids = Result<Path<(String, String)>, PathRejection>;

pub(super) fn routes() -> Router<Api> {
    let participant = put(participants::put).get(participants::show).delete(participants::remove);
    Router::new()
        .route("/v1/health", get(health))
        .route("/v1/rooms", get(rooms::list).post(rooms::create))
        .route("/v1/rooms/{code}", get(rooms::show).patch(rooms::change).delete(rooms::close))
        .route("/v1/rooms/{code}/participants", get(participants::list))
        .route("/v1/rooms/{code}/participants/{id}", participant)
        .route("/v1/rooms/{code}/participants/{id}/heartbeat", post(participants::heartbeat))
}

async fn health() -> Response {
    let (status, timestamp) = ("ok".to_owned(), Moment::now().wall_ms);
    good(StatusCode::OK, PlaneHealth { status, timestamp })
}

/// A successful answer in its envelope.
fn good<T: Serialize>(status: StatusCode, data: T) -> Response {
    let meta = Meta { request_id: ::rooms::uuid() };
    (status, Json(Envelope { data, meta })).into_response()
}

/// The parameters of a path; a path that is not UTF-8 is an error.
fn named<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Failure> {
    path.map(|Path(names)| names).map_err(|_| Failure::no_route())
}
