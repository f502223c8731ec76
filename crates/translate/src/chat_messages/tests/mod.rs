//! Requests of a Chat Completions client to a Messages provider, and the answers.

mod answer;
mod request;

use crate::Context;

fn context(streaming: bool) -> Context {
    let (id, model) = ("0123456789abcdef0123456789abcdef".into(), "fast".into());
    Context { id, created: 1_700_000_000, model, streaming }
}
