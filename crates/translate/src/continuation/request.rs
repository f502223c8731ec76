//! The body for a provider that continues an answer.

use base::{Continuation, Endpoint};

use super::{CannotContinue, Delivered, body::BodyEdits, chat, completions, messages, responses};
use crate::{Context, registry};

/// Whether the answer to a request may be continued, judged by the request alone. `body`: the request as it was sent
/// to a provider at `endpoint`.
///
/// # Errors
/// Why it may not.
pub fn may_continue(endpoint: Endpoint, body: &[u8]) -> Result<(), CannotContinue> {
    match endpoint {
        Endpoint::ChatCompletions => chat::may_continue(body),
        Endpoint::Completions => completions::may_continue(body),
        Endpoint::Messages => messages::may_continue(body),
        Endpoint::Responses => responses::may_continue(body),
        _ => Err(CannotContinue::NotHere),
    }
}

/// The endpoint at which a provider that continues in the way `how` is asked for the rest of an answer of shape
/// `endpoint`. vLLM and its like continue only Chat Completions; Messages and Responses are translated for
/// them.
pub fn endpoint(endpoint: Endpoint, how: Continuation) -> Endpoint {
    match (endpoint, how) {
        (Endpoint::Messages | Endpoint::Responses, Continuation::FinalMessage) => {
            Endpoint::ChatCompletions
        }
        _ => endpoint,
    }
}

/// The body for a provider at `endpoint` that continues an answer. `body` is what the first provider was sent
/// at the same endpoint. It stays as it is if nothing was delivered yet.
///
/// # Errors
/// Why the answer cannot be continued.
pub fn request(
    endpoint: Endpoint,
    body: &[u8],
    delivered: &mut Delivered,
    how: Continuation,
) -> Result<Vec<u8>, CannotContinue> {
    if super::endpoint(endpoint, how) != endpoint {
        return Err(CannotContinue::NotHere);
    }
    beginning(endpoint, body, delivered, how)
}

/// The same for a provider at another endpoint `to`, which serves requests of `from` in translation. The caller
/// translates its answer by [`registry::answer`], with `body`, before the seam gets it.
///
/// # Errors
/// As [`request`].
pub fn translated(
    from: Endpoint,
    to: Endpoint,
    body: &[u8],
    delivered: &mut Delivered,
    how: Continuation,
    context: &Context,
) -> Result<Vec<u8>, CannotContinue> {
    if from == to {
        return request(from, body, delivered, how);
    }
    if super::endpoint(to, how) != to || !keeps_beginning(from, to) {
        return Err(CannotContinue::NotHere);
    }
    let between = beginning(from, body, delivered, Continuation::LastMessage)?;
    let sent = registry::request(from, to, &between, context)?;
    match how {
        Continuation::FinalMessage if !delivered.record.says_nothing() => chat::flagged(&sent),
        _ => Ok(sent),
    }
}

/// Whether a translation keeps a last message of the assistant as one to be continued.
fn keeps_beginning(from: Endpoint, to: Endpoint) -> bool {
    use Endpoint::{ChatCompletions, Messages, Responses};
    matches!((from, to), (Messages | Responses, ChatCompletions) | (ChatCompletions, Messages))
}

fn beginning(
    endpoint: Endpoint,
    body: &[u8],
    delivered: &mut Delivered,
    how: Continuation,
) -> Result<Vec<u8>, CannotContinue> {
    may_continue(endpoint, body)?;
    delivered.read();
    let record = &delivered.record;
    match &record.reason {
        Some(reason) => Err(reason.clone()),
        None if record.says_nothing() => Ok(body.to_vec()),
        None => {
            let mut edits = BodyEdits::of(body)?;
            edits.lower_limits(delivered.shape.limits(), record.tokens())?;
            delivered.shape.append(record, how, &mut edits)?;
            Ok(edits.made())
        }
    }
}
