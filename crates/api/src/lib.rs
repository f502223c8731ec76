//! Consumer APIs over HTTP.
//!
//! A request becomes a job and its answer a response; bytes pass unchanged in between. This crate
//! knows no provider: it meets them through the scheduler only.
//!
//! - [`state`]: what every handler needs
//! - [`consume`]: from a request to a job, the same for every API; `handling`: the provider, route and trace that its
//!   headers ask for; `draft`: admits a request that was read, and makes a job of it
//! - `answer`: from a job to its response
//! - `early`: the head of a streamed answer that is sent before the provider's
//! - `request_scope`: where a request is served: the server, or one room
//! - `admission`: whether a key may have a request served now
//! - `count_tokens`: a message's tokens, by a model's server or estimated
//! - [`elsewhere`]: requests of keys whose models are at other servers
//! - `content`: the fields of a body, JSON or a form, that routing needs
//! - `blocking`: work on large bodies, and work that waits for a disk or a database
//! - [`aliases`]: names that stand for models
//! - `translation`: a request in the shape of its provider, and the answer back
//! - [`read`]: the request's body, within its bounds
//! - `unpack`: bodies that come compressed
//! - `uploads`: the common bound of all bodies; `refuse`, `refusals`: requests that never became jobs, answered and
//!   counted
//! - [`head`]: headers on their way in and out
//! - [`body`]: the answer on its way out
//! - [`shape`]: the APIs, a file each: their errors, and how they keep a stream alive
//! - [`error`]: the error table; [`respond`]: errors as responses, and paths that no route has
//! - [`paths`]: a path without its room; the path that a client with a wrong base URL meant
//! - [`room`]: rooms: their management, messages, events and inference
//! - `responses`: responses with state: kept, continued, or made in the background; and conversations
//! - `response_makers`: which participant of a room made which response
//! - `gemini`: Gemini's paths, which name the model, and its list of models
//! - `ollama`: the parts of Ollama's API that need no job: the lists and facts of models, and what is refused
//! - [`models`], [`health`], [`admin`]: the models, the server's health, and the operator's part;
//!   `condition`: problems of the server's other parts
//! - [`joining`]: the codes by which machines join
//! - `nearest`: the models with names most like an unknown name
//! - [`cors`]: requests of web pages of other origins
//! - `web`: the web page

pub mod admin;
mod admission;
pub mod aliases;
mod answer;
mod blocking;
pub mod body;
mod condition;
pub mod consume;
mod content;
pub mod cors;
mod count_tokens;
mod draft;
mod early;
pub mod elsewhere;
pub mod error;
mod gemini;
mod handling;
pub mod head;
pub mod health;
pub mod joining;
pub mod models;
mod nearest;
mod ollama;
pub mod paths;
pub mod read;
mod refusals;
mod refuse;
mod request_scope;
pub mod respond;
mod response_makers;
mod responses;
pub mod room;
pub mod shape;
pub mod state;
mod translation;
mod unpack;
mod uploads;
mod web;

use axum::{
    Router,
    routing::{MethodRouter, delete, get, post},
};
use protocol::invitation::messages;

pub use admin::Administration;
pub use aliases::{Alias, Aliases, BadAlias};
pub use condition::Condition;
pub use cors::Cors;
pub use elsewhere::Elsewhere;
pub use error::ApiError;
pub use joining::{Joining, Whereabouts};
pub use room::{MessageJobs, PassedOn, RoomHomes};
pub use state::{
    Api, Changeable, Client, Identity, Limits, Names, Peer, RoomPermissions, RoomRules,
};
pub use web::cookie::SessionCookie;

/// All paths of this crate.
pub fn router(api: Api) -> Router {
    let consumers = shape::first_at_each_path().fold(Router::new(), |router, shape| {
        router.route(shape.endpoint().path(), consumer(shape))
    });
    consumers
        .route("/health", get(health::health))
        .route(messages::JOIN, post(joining::join::join))
        .route(messages::PROOF, post(joining::join::prove))
        .merge(gemini::routes())
        .merge(ollama::routes())
        .merge(ollama::routes_of_rooms())
        .merge(responses::routes())
        .merge(administration())
        .merge(web::routes())
        .merge(room::router())
        .fallback(respond::not_found)
        .method_not_allowed_fallback(respond::method_not_allowed)
        .with_state(api)
}

/// The paths of consumers alone, for requests that another server carries to this one.
pub fn consumers(api: Api) -> Router {
    let router = shape::first_at_each_path().fold(Router::new(), |router, shape| {
        router.route(shape.endpoint().path(), consumer(shape))
    });
    router
        .merge(gemini::calls())
        .fallback(respond::not_found)
        .method_not_allowed_fallback(respond::method_not_allowed)
        .with_state(api)
}

fn administration() -> Router<Api> {
    use admin::{
        audit, invitations, keys, model_changes, requests, series, usage, web_sessions, workers,
    };
    Router::new()
        .route("/admin/workers", get(workers::workers))
        .route("/admin/stats", get(workers::stats))
        .route("/admin/workers/{id}/drain", post(workers::drain))
        .route("/admin/workers/{id}/refresh", post(workers::refresh))
        .route("/admin/workers/{id}/models/{model}/load", post(model_changes::load))
        .route("/admin/workers/{id}/models/{model}/unload", post(model_changes::unload))
        .route("/admin/keys", get(keys::list).post(keys::create))
        .route("/admin/keys/{id}", get(keys::show).delete(keys::revoke))
        .route("/admin/keys/{id}/rotate", post(keys::rotate))
        .route("/admin/invitations", get(invitations::list).post(invitations::create))
        .route("/admin/invitations/room", post(invitations::create_for_room))
        .route("/admin/invitations/{id}", delete(invitations::revoke))
        .route("/admin/usage", get(usage::show))
        .route("/admin/requests", get(requests::list))
        .route("/admin/requests/running", get(requests::running))
        .route("/admin/series", get(series::show))
        .route("/admin/audit", get(audit::list))
        .route(protocol::admin::web::SESSIONS, get(web_sessions::list))
        .route("/admin/web/sessions/{id}", delete(web_sessions::revoke))
}

fn consumer(shape: &'static dyn shape::Shape) -> MethodRouter<Api> {
    post(move |api, request| consume::consume(shape, api, request))
}
