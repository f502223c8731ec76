//! Responses with state at this server: kept, continued, made in the background, and gathered in conversations.
//!
//! A request that continues a response or a conversation is first made into one that any provider can answer, and only
//! then becomes a job. The response's state is put into the answer as it passes.
//!
//! - `wishes`: what a request asks for in matters of stored responses
//! - `chain`: puts what a request continues in front of its own input; `items`: the items of both
//! - `plan`: how a response is made and kept; `stored_body`, `response_state`: its answer on the way out
//! - `background`: responses that are made in the background; `running`: which of them run now; `log`: their streams
//! - `keeping`: the store of responses and conversations
//! - `stored`, `conversations`: the paths of stored responses and conversations; `caller`: a request to these paths
//!   and its reply; `page`: the pages of their lists
//! - `members`: the members of a JSON object; `failure`: errors

pub(crate) mod background;
mod caller;
mod chain;
mod conversations;
mod failure;
mod items;
pub(crate) mod keeping;
mod log;
mod members;
mod page;
pub(crate) mod plan;
mod response_state;
mod running;
mod stored;
mod stored_body;
mod wishes;

use axum::{Router, routing::MethodFilter};

use self::caller::answering;
use crate::state::Api;

/// The paths of stored responses and of conversations.
pub(crate) fn routes() -> Router<Api> {
    const RESPONSE: &str = "/v1/responses/{id}";
    const CONVERSATION: &str = "/v1/conversations/{id}";
    const GET: MethodFilter = MethodFilter::GET;
    const POST: MethodFilter = MethodFilter::POST;
    const DELETE: MethodFilter = MethodFilter::DELETE;
    let (items, item) =
        (&format!("{CONVERSATION}/items"), &format!("{CONVERSATION}/items/{{item}}"));
    let response = |id: &String| failure::no_response(id);
    let conversation = |id: &String| failure::no_conversation(id);
    let of_item = |(id, _): &(String, String)| failure::no_conversation(id);
    let any = |(): &()| failure::not_kept_here("conversation");
    Router::new()
        .route(RESPONSE, answering(GET, response, stored::show))
        .route(RESPONSE, answering(DELETE, response, stored::delete))
        .route(&format!("{RESPONSE}/cancel"), answering(POST, response, stored::cancel))
        .route(&format!("{RESPONSE}/input_items"), answering(GET, response, stored::input_items))
        .route("/v1/conversations", answering(POST, any, conversations::create))
        .route(CONVERSATION, answering(GET, conversation, conversations::show))
        .route(CONVERSATION, answering(POST, conversation, conversations::change))
        .route(CONVERSATION, answering(DELETE, conversation, conversations::delete))
        .route(items, answering(GET, conversation, conversations::list_items))
        .route(items, answering(POST, conversation, conversations::add_items))
        .route(item, answering(GET, of_item, conversations::show_item))
        .route(item, answering(DELETE, of_item, conversations::delete_item))
}
