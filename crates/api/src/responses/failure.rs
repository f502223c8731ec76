//! The errors of stored responses and conversations, with OpenAI's words and codes where it has any.

use std::borrow::Cow;

use base::plain;
use http::StatusCode;
use protocol::json::clip;
use store::StoreError;

use crate::{
    blocking,
    error::{ApiError, Kind},
};

/// The longest id that is repeated in an error, in bytes.
const LONGEST: usize = 128;

/// A field whose value is not valid.
pub(crate) fn invalid(param: &'static str, why: &str) -> ApiError {
    of_param(StatusCode::BAD_REQUEST, param, format!("`{param}` {why}"))
}

/// Two fields that exclude each other.
pub(crate) fn mutually_exclusive(one: &'static str, other: &str) -> ApiError {
    let words = format!("`{one}` and `{other}` cannot be used together: send one of them");
    let error = of_param(StatusCode::BAD_REQUEST, one, words);
    ApiError { code: Some("mutually_exclusive_parameters"), ..error }
}

/// A field that needs stored responses, which this server does not keep.
pub(crate) fn not_kept_here(param: &'static str) -> ApiError {
    let words = format!(
        "`{param}` needs stored responses, and this server keeps none; send the whole conversation in `input`"
    );
    let error = of_param(StatusCode::BAD_REQUEST, param, words);
    ApiError { code: Some("responses_not_kept"), ..error }
}

/// No response of this key has this id.
pub(crate) fn no_response(id: &str) -> ApiError {
    let id = quote(id);
    not_found(format!("Response with id '{id}' not found."))
}

/// No conversation of this key has this id.
pub(crate) fn no_conversation(id: &str) -> ApiError {
    let id = quote(id);
    not_found(format!("Conversation with id '{id}' not found."))
}

/// No item of this conversation has this id.
pub(crate) fn no_item(id: &str) -> ApiError {
    let id = quote(id);
    not_found(format!("Item with id '{id}' not found."))
}

/// The response to continue does not exist.
pub(crate) fn no_previous(id: &str) -> ApiError {
    let id = quote(id);
    previous(format!(
        "Previous response with id '{id}' not found. It was not stored (send `store: true` with each request to continue), has expired or was deleted, or is another key's."
    ))
}

/// The response to continue goes on from an earlier one that does not exist any more.
pub(crate) fn broken_chain(id: &str, missing: &str) -> ApiError {
    let (id, missing) = (quote(id), quote(missing));
    previous(format!(
        "Previous response with id '{id}' cannot be continued: '{missing}', which it goes on from, has expired or was \
         deleted. Send the whole conversation in `input`."
    ))
}

/// The response to continue is still being made, or failed or was cancelled.
pub(crate) fn unfinished(id: &str, status: &str) -> ApiError {
    let (id, status) = (quote(id), quote(status));
    let words =
        format!("Previous response with id '{id}' cannot be continued: its status is {status}.");
    let error = of_param(StatusCode::BAD_REQUEST, "previous_response_id", words);
    ApiError { code: Some("previous_response_not_completed"), ..error }
}

/// A chain of too many responses.
pub(crate) fn chain_too_long(most: u64) -> ApiError {
    let words = format!(
        "`previous_response_id` leads back over more than {most} responses: begin anew, with what matters in `input`"
    );
    let error = of_param(StatusCode::BAD_REQUEST, "previous_response_id", words);
    ApiError { code: Some("chain_too_long"), ..error }
}

/// A request that is too large once the items that it continues are in front of it.
pub(crate) fn too_large_together(param: &'static str, limit: usize) -> ApiError {
    let words = format!(
        "the request is over this server's limit of {limit} bytes together with what `{param}` puts in front of it"
    );
    let error = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, words);
    ApiError { code: Some("request_too_large"), param: Some(param.into()), ..error }
}

/// A request that is too large for its response to be kept.
pub(crate) fn too_large_to_keep(most: usize) -> ApiError {
    let words = format!("a response is kept of requests up to {most} bytes: send `store: false`");
    let error = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, words);
    ApiError { code: Some("request_too_large"), param: Some("store".into()), ..error }
}

/// A reference to an item that is not among what the request continues.
pub(crate) fn no_such_reference(id: &str) -> ApiError {
    let id = quote(id);
    of_param(StatusCode::NOT_FOUND, "input", format!("Item with id '{id}' not found."))
}

/// A conversation that takes no more items.
pub(crate) fn conversation_full(most: usize) -> ApiError {
    let words = format!("the conversation has {most} items, and takes no more: begin another one");
    let error = of_param(StatusCode::BAD_REQUEST, "conversation", words);
    ApiError { code: Some("conversation_full"), ..error }
}

/// Too many responses are being made in the background.
pub(crate) fn too_many_in_background(of_key: bool, most: usize) -> ApiError {
    let whose = if of_key { "of this key" } else { "of this server" };
    let words = format!(
        "{most} responses {whose} are made in the background already: wait for one of them"
    );
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, words);
    let retry_after = Some(std::time::Duration::from_secs(5));
    ApiError { code: Some("too_many_background_responses"), retry_after, ..error }
}

/// A request to cancel a response that was not made in the background.
pub(crate) fn not_in_background() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, "Cannot cancel a synchronous response.")
}

/// A request for the stream of a response that has no stream.
pub(crate) fn no_stream() -> ApiError {
    let words = "only a response that was asked for with `background: true` and `stream: true` can be streamed again";
    of_param(StatusCode::BAD_REQUEST, "stream", words.to_owned())
}

/// The error of the database.
pub(crate) fn of_store(error: &StoreError) -> ApiError {
    blocking::failed(error)
}

fn previous(words: String) -> ApiError {
    let error = of_param(StatusCode::BAD_REQUEST, "previous_response_id", words);
    ApiError { code: Some("previous_response_not_found"), ..error }
}

fn not_found(words: String) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}

fn of_param(status: StatusCode, param: &'static str, words: String) -> ApiError {
    let error = ApiError::new(status, Kind::of_status(status), words);
    ApiError { param: Some(Cow::Borrowed(param)), ..error }
}

/// A client's text, as errors repeat it.
fn quote(id: &str) -> String {
    plain::line(clip(id, LONGEST))
}
