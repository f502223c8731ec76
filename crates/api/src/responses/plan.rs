//! The plan for a response beside its way to the client: made before the job, carried out at the answer's end.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use access::Moment;
use base::KeyId;
use bytes::Bytes;
use http::header;
use protocol::openai::Defaults;
use scheduler::Head;
use store::{ItemRecord, ResponseRecord};

use super::{
    chain, failure,
    items::{self, item_record, new_id},
    keeping::Keeping,
    members::Members,
    response_state::ResponseState,
    stored_body::StoredBody,
    wishes::Wishes,
};
use crate::{
    blocking::off_thread,
    body::AnswerBody,
    error::ApiError,
    head::{is_event_stream, is_json},
    request_scope::RequestScope,
    state::Api,
    uploads::HeldBody,
};

/// The most of an answer that is kept, in bytes.
pub(crate) const MAX_KEPT: usize = 16 * 1024 * 1024;

/// The largest request whose response is kept, in bytes.
pub(crate) const MAX_INPUT: usize = 32 * 1024 * 1024;

/// The handling of a response beside sending it to the client.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) state: ResponseState,
    pub(crate) owner: KeyId,
    /// Whether its client wants a stream.
    pub(crate) stream: bool,
    /// When the response was requested, in milliseconds since 1970.
    pub(crate) created: u64,
    /// The items of the response's own request, without those that the request continues.
    input: Vec<String>,
    /// Whether the response's end is being written, or is written already. Clones share it.
    is_ending: Arc<AtomicBool>,
}

/// Puts the items that a request continues in front of its input, so that any provider can answer it. Returns the
/// request for the provider, and the plan for its response, if the response has state at this server.
///
/// # Errors
/// 400 when its fields contradict each other or need responses that this server does not keep, 404 when its
/// conversation does not exist, 413 when it becomes too large, 503 when the database is away.
pub(crate) async fn settle(
    api: &Api,
    scope: &RequestScope,
    body: Bytes,
    held: &mut HeldBody<'_>,
) -> Result<(Bytes, Option<Box<Plan>>), ApiError> {
    let (len, given) = (body.len(), body.clone());
    let Some((body, wishes)) = off_thread(len, move || read(given)).await?? else {
        // The body is not a JSON object. The client learns that when the body's model is read.
        return Ok((body, None));
    };
    let keeping = api.keeping().filter(|_| api.limits().keep_responses);
    if let Some(param) = wishes.needs_store().filter(|_| keeping.is_none()) {
        return Err(failure::not_kept_here(param));
    }
    let keeps = keeping.is_some() && wishes.keeps(api.limits().keep_unasked);
    if !keeps && wishes.needs_store().is_none() && wishes.store != Some(true) {
        return Ok((off_thread(len, move || not_stored(&body)).await?, None));
    }
    if keeps && len > MAX_INPUT {
        return Err(failure::too_large_to_keep(MAX_INPUT));
    }
    let owner = scope.admitted().id.clone();
    let (limit, created) = (api.limits().max_body, Moment::now().wall_ms);
    let before = match keeping {
        Some(keeping) => before(keeping, &owner, &wishes, limit).await?,
        None => Vec::new(),
    };
    let size = before.iter().map(String::len).sum::<usize>() + body.len();
    if size > limit {
        let param = wishes.needs_store().unwrap_or("input");
        return Err(failure::too_large_together(param, limit));
    }
    // Twice the size: the items are in memory separately, and once more as the request that they make up.
    held.grow(2 * size).await?;
    let (body, input) = off_thread(size, move || stateless(&body, &before)).await??;
    let state = ResponseState {
        id: keeps.then(|| new_id("resp")),
        store: keeps,
        background: wishes.background,
        previous: wishes.previous,
        conversation: wishes.conversation,
    };
    let is_ending = Arc::default();
    let plan = Plan { state, owner, stream: wishes.stream, created, input, is_ending };
    Ok((body, Some(Box::new(plan))))
}

impl Plan {
    /// Whether the response is made in the background.
    pub(crate) fn is_background(&self) -> bool {
        self.state.background
    }

    /// Whether the response's end is being written, or is written already: a client that asks the store may find it
    /// before the last bytes of the answer have passed.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// The response's id at this server; empty for a response that is not kept.
    pub(crate) fn id(&self) -> &str {
        self.state.id.as_deref().unwrap_or_default()
    }

    /// The body of the answer for the client: the response's state is put in as it passes, and it is kept at its end.
    pub(crate) fn around(
        self: Box<Self>,
        api: &Api,
        head: &mut Head,
        body: AnswerBody,
    ) -> axum::body::Body {
        let is_coded = head.headers.contains_key(header::CONTENT_ENCODING);
        if !head.status.is_success() || is_coded {
            return axum::body::Body::new(body);
        }
        let is_stream = is_event_stream(head);
        if !is_stream && !is_json(head) {
            return axum::body::Body::new(body);
        }
        head.headers.remove(header::CONTENT_LENGTH);
        StoredBody::around(body, api.clone(), self, is_stream)
    }

    /// Keeps the response, and adds its items to its conversation. Returns whether it is kept; the log says why not.
    pub(crate) async fn keep(&self, keeping: &Keeping, response: String) -> bool {
        if !self.state.store {
            return false;
        }
        self.is_ending.store(true, Ordering::Release);
        let (plan, keeping) = (self.clone(), keeping.clone());
        let stored = tokio::task::spawn_blocking(move || plan.write(&keeping, response)).await;
        match stored {
            Ok(Ok(is_kept)) => is_kept,
            Ok(Err(error)) => {
                tracing::warn!(id = self.id(), problem = %error.message, "a response is not kept");
                false
            }
            Err(_) => false,
        }
    }

    /// The record of a response.
    pub(crate) fn record(&self, response: String, beat: Option<u64>) -> ResponseRecord {
        ResponseRecord {
            id: self.id().to_owned(),
            owner: self.owner.clone(),
            previous: self.state.previous.clone(),
            conversation: self.state.conversation.clone(),
            created: self.created,
            beat,
            input: items::list(&self.input),
            response,
        }
    }

    /// Stores the response, and adds its items to its conversation. Returns whether it is kept. Blocks.
    fn write(&self, keeping: &Keeping, response: String) -> Result<bool, ApiError> {
        let answered: Vec<String> =
            items::of_response(&response).iter().map(|raw| raw.get().to_owned()).collect();
        let is_whole = !is_failed(&response);
        let is_kept = match self.state.background {
            true => keeping.end_running(&self.owner, self.id(), &response)?,
            false => {
                keeping.save(&self.record(response, None))?;
                true
            }
        };
        if let Some(conversation) = self.state.conversation.as_ref().filter(|_| is_kept && is_whole)
        {
            let said = self.input.iter().chain(&answered);
            let items: Vec<ItemRecord> = said.map(|item| item_record(item)).collect();
            // The response is kept all the same, and its client is told so.
            if let Err(error) = keeping.add(&self.owner, conversation, items) {
                tracing::warn!(
                    id = self.id(),
                    problem = %error.message,
                    "the items of a response are not added to its conversation"
                );
            }
        }
        Ok(is_kept)
    }
}

fn is_failed(response: &str) -> bool {
    let status = Members::read(response).and_then(|members| members.text("status"));
    status.as_deref() == Some("failed")
}

/// Reads the wishes of a request, and returns them with its body; `None` when it is not a JSON object. A body that is
/// not strict JSON is mended first, because a provider may accept it.
fn read(body: Bytes) -> Result<Option<(Bytes, Wishes)>, ApiError> {
    let wishes = |body: &[u8]| {
        let members = Members::read(std::str::from_utf8(body).ok()?)?;
        Some(Wishes::of(&members))
    };
    if let Some(wishes) = wishes(&body) {
        return Ok(Some((body, wishes?)));
    }
    let Some(mended) = protocol::json::mended(&body).map(Bytes::from) else { return Ok(None) };
    wishes(&mended).transpose().map(|found| found.map(|wishes| (mended, wishes)))
}

/// The request with `store: false`, unless it has the field already: the client did not ask for a response that is
/// kept, so the provider shall not keep it either.
fn not_stored(body: &Bytes) -> Bytes {
    let defaults = Defaults::new([("store".to_owned(), serde_json::Value::Bool(false))]);
    defaults.map_or_else(|_| body.clone(), |defaults| defaults.complete(body))
}

/// The items that a request continues, which come in front of its own.
async fn before(
    keeping: &Keeping,
    owner: &KeyId,
    wishes: &Wishes,
    limit: usize,
) -> Result<Vec<String>, ApiError> {
    if let Some(id) = &wishes.previous {
        return keeping.chain(owner, id, limit).await;
    }
    match &wishes.conversation {
        Some(id) => keeping.said(owner, id, limit).await,
        None => Ok(Vec::new()),
    }
}

/// The request for the provider, with the items `before` in it; and the client's own items.
fn stateless(body: &[u8], before: &[String]) -> Result<(Bytes, Vec<String>), ApiError> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let request = Members::read(text).unwrap_or_default();
    let own = request.get("input").map(items::of_input).transpose()?.unwrap_or_default();
    let own = match before.is_empty() {
        true => own,
        false => chain::without_references(before, own)?,
    };
    Ok((chain::stateless(&request, before, &own).into(), own))
}
