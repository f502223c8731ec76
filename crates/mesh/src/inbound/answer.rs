//! Passes a job's answer from the exchange to the link.

use std::sync::Arc;

use http::StatusCode;
use protocol::{
    json::clip,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ErrorCode, InferenceChunk, InferenceComplete, InferenceRequest},
    },
};
use scheduler::{Answer, Event};
use serde_json::value::RawValue;

use super::{
    Pass, Shared,
    chunks::Chunks,
    request::{self, LocalRequest},
};
use crate::{
    link::{INLINE_LIMIT, Link, LinkClosed},
    share::Refusal,
};

/// The most that is read of a backend's error, in bytes.
const MAX_ERROR: usize = 64 * 1024;

/// Gets a request answered, and sends the answer to the peer. Dropping the future cancels the job.
///
/// # Errors
/// Why there is no answer, or no more of it. The caller must send this to the peer, after the parts
/// of the answer.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    request: InferenceRequest,
    pass: &Pass,
) -> Result<(), Refusal> {
    // Held until the answer has ended, since the job keeps the request in case another provider
    // gets it.
    let _held = shared.hold(request.request.get().len())?;
    let id = request.request_id.clone();
    let prepared = prepare(shared, request).await?;
    let model = prepared.model.clone();
    let chunks = Chunks::new(prepared.requested_model.clone(), prepared.asked_usage);
    let job = prepared.job(&link.peer, &pass.cost);
    tracing::debug!(request_id = %job.id, peer = %link.peer.short(), model = %model, "a request of a peer");
    let mut answer = shared.scheduler.submit(job);
    let by_server = |failure| Refusal::by_server(&failure, model.as_str());
    let head = answer.head().await.map_err(by_server)?;
    if !head.status.is_success() {
        return Err(backend_error(head.status, &mut answer).await);
    }
    pass_on(link, &id, &mut answer, chunks, model.as_str()).await?;
    let usage = pass.cost.usage();
    let count =
        |tokens: Option<u64>| tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    let complete = InferenceComplete {
        request_id: id,
        tokens_in: count(usage.prompt_tokens),
        tokens_out: count(usage.completion_tokens),
    };
    // The peer may be gone; its link reports that.
    let _ = link.say(&ClusterMessage::InferenceComplete(complete)).await;
    Ok(())
}

async fn prepare(shared: &Arc<Shared>, request: InferenceRequest) -> Result<LocalRequest, Refusal> {
    if request.request.get().len() <= INLINE_LIMIT {
        return request::prepare(&request, &shared.scheduler, &shared.share, &shared.marks);
    }
    let own = Arc::clone(shared);
    let preparing = move || request::prepare(&request, &own.scheduler, &own.share, &own.marks);
    tokio::task::spawn_blocking(preparing).await.unwrap_or_else(|_| {
        let words = "the request could not be worked on";
        Err(Refusal::new(ErrorCode::InternalError, words))
    })
}

/// Sends the chunks to the peer until the answer is complete.
async fn pass_on(
    link: &Link,
    id: &WireId,
    answer: &mut Answer,
    mut chunks: Chunks,
    model: &str,
) -> Result<(), Refusal> {
    loop {
        let mut out = Vec::new();
        let (result, over) = match answer.next().await {
            Event::Chunk(bytes) => (chunks.feed(&bytes, &mut out), false),
            Event::End => (chunks.end(&mut out), true),
            Event::Failed(failure) => (Err(Refusal::by_server(&failure, model)), true),
        };
        for chunk in out {
            say(link, id, chunk)
                .await
                .map_err(|LinkClosed| Refusal::new(ErrorCode::Cancelled, "the link was closed"))?;
        }
        // The chunks before a failure are part of the answer, so they are sent first.
        result?;
        if over {
            return Ok(());
        }
    }
}

async fn say(link: &Link, id: &WireId, chunk: Box<RawValue>) -> Result<(), LinkClosed> {
    let chunk = InferenceChunk { request_id: id.clone(), chunk };
    link.say(&ClusterMessage::InferenceChunk(chunk)).await
}

async fn backend_error(status: StatusCode, answer: &mut Answer) -> Refusal {
    let mut body = Vec::new();
    while let Event::Chunk(bytes) = answer.next().await {
        let room = MAX_ERROR - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // The rest is not read. The job is cancelled when the answer is dropped.
        if body.len() == MAX_ERROR {
            break;
        }
    }
    let body = String::from_utf8_lossy(&body);
    Refusal::by_backend(status, clip(&body, MAX_ERROR).to_owned())
}
