//! Consumer APIs over HTTP.
//!
//! A request becomes a job and its answer a response; bytes pass unchanged in between. This crate
//! knows no provider: it meets them through the scheduler only.
//!
//! - [`state`]: what every handler needs
//! - [`consume`]: from a request to a job, the same for every API
//! - [`read`]: the request's body, within its bounds
//! - `uploads`: the common bound of all bodies; `refusals`: what never became a job, counted
//! - [`head`]: headers on their way in and out
//! - [`body`]: the answer on its way out
//! - [`shape`]: the APIs, a file each: how they tell errors, and how they keep a stream alive
//! - [`error`]: the error table
//! - [`models`], [`health`], [`admin`]: what there is, how it is, and the operator's part
//! - [`cors`]: pages of other origins
//! - [`meter`]: tokens, counted as they pass

pub mod admin;
pub mod body;
pub mod consume;
pub mod cors;
pub mod error;
pub mod head;
pub mod health;
pub mod meter;
pub mod models;
pub mod read;
mod refusals;
pub mod shape;
pub mod state;
mod uploads;

use axum::{
    Router,
    routing::{get, post},
};

pub use error::ApiError;
pub use state::{Api, Limits, Peer};

/// All paths of this crate.
pub fn router(api: Api) -> Router {
    let consumers = shape::ALL.into_iter().fold(Router::new(), |router, shape| {
        router.route(shape.path(), post(move |api, request| consume::consume(shape, api, request)))
    });
    let with_cors = !api.local().allowed_origins.is_empty();
    let router = consumers
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/health", get(health::health))
        .route("/admin/workers", get(admin::workers))
        .route("/admin/stats", get(admin::stats))
        .route("/admin/workers/{id}/drain", post(admin::drain))
        .route("/admin/workers/{id}/refresh", post(admin::refresh))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(api.clone());
    if !with_cors {
        return router;
    }
    router.layer(axum::middleware::from_fn_with_state(api, cors::cors))
}
