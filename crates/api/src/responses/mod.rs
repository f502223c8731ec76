//! Responses with state: kept, continued, made while nobody waits, and gathered in conversations.
//!
//! A request that continues something becomes one that any provider can answer, before it becomes a job. The
//! response's state here is put into the answer as it passes.
//!
//! - `asked`: what a request asks of stored responses
//! - `chain`: what it continues, in front of its own input; `items`: the items of both
//! - `plan`: what becomes of its response; `kept_body`, `told`: its answer on the way out
//! - `background`: responses that are made while nobody waits; `running`: those at once; `log`: their streams
//! - `keeping`: where all of it is kept
//! - `stored`, `conversations`: the paths of stored responses and conversations; `caller`: the key behind a request to
//!   them; `page`: the pages of their lists
//! - `members`: the members of a JSON object; `failure`: errors

mod asked;
pub(crate) mod background;
mod caller;
mod chain;
mod conversations;
mod failure;
mod ids;
mod items;
pub(crate) mod keeping;
mod kept_body;
mod log;
mod members;
mod page;
pub(crate) mod plan;
mod running;
mod stored;
mod told;

use axum::{
    Router,
    routing::{get, post},
};

use crate::state::Api;

/// The paths of stored responses and of conversations.
pub(crate) fn routes() -> Router<Api> {
    const RESPONSE: &str = "/v1/responses/{id}";
    const CONVERSATION: &str = "/v1/conversations/{id}";
    Router::new()
        .route(RESPONSE, get(stored::show).delete(stored::delete))
        .route(&format!("{RESPONSE}/cancel"), post(stored::cancel))
        .route(&format!("{RESPONSE}/input_items"), get(stored::input_items))
        .route("/v1/conversations", post(conversations::create))
        .route(
            CONVERSATION,
            get(conversations::show).post(conversations::change).delete(conversations::delete),
        )
        .route(
            &format!("{CONVERSATION}/items"),
            get(conversations::list_items).post(conversations::add_items),
        )
        .route(
            &format!("{CONVERSATION}/items/{{item}}"),
            get(conversations::show_item).delete(conversations::delete_item),
        )
}
