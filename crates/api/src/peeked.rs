//! The fields of a body that routing needs, read before it becomes a job.

use bytes::Bytes;
use http::StatusCode;
use protocol::{
    json::escaped_len,
    openai::{BadBody, Peek, peek, prompt_heads},
    usage::prompt_tokens,
};
use scheduler::Affinity;

use crate::error::{ApiError, Kind};

/// Bodies up to this size, in bytes, are processed at once; larger ones on a thread for blocking work.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Bodies up to this size, in bytes, are not measured in their escaped form: escaping at most
/// doubles a body, so that they always fit into the 60 MiB of a stock worker.
const SURELY_FITS: usize = 29 * 1024 * 1024;

pub(crate) struct PeekedRequest {
    /// The fields that routing needs.
    pub(crate) peek: Peek,
    /// Its size on the wire, in bytes.
    pub(crate) size: u64,
    /// The estimated tokens of its prompt.
    pub(crate) prompt_tokens: u64,
    /// Which conversations the request continues.
    pub(crate) affinity: Affinity,
}

/// Reads the fields that routing needs.
///
/// # Errors
/// 400 when the request cannot be routed.
pub(crate) async fn peek_request(
    body: &Bytes,
    with_affinity: bool,
) -> Result<PeekedRequest, ApiError> {
    let given = body.clone();
    let peeked = off_thread(body.len(), move || PeekedRequest::into(&given, with_affinity)).await?;
    peeked.map_err(|bad| ApiError::from(&bad))
}

/// Runs work on a body of this length; a large one goes to a thread for blocking work.
///
/// # Errors
/// 500 when the work broke off.
pub(crate) async fn off_thread<T: Send + 'static>(
    len: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if len <= INLINE_LIMIT {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let words = "the request body could not be worked on";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Server, words)
    })
}

/// The body's size as a JSON string: of the two forms that it travels in, the larger.
pub(crate) fn wire_size(body: &[u8]) -> u64 {
    if body.len() <= SURELY_FITS {
        return body.len() as u64;
    }
    std::str::from_utf8(body).map_or(body.len(), escaped_len) as u64
}

impl PeekedRequest {
    /// An estimate of the tokens of prompt and answer together.
    pub(crate) fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.peek.most_tokens)
    }

    fn into(body: &[u8], with_affinity: bool) -> Result<Self, BadBody> {
        let peek = peek(body)?;
        let affinity = if with_affinity { affinity(body, &peek) } else { Affinity::default() };
        let (size, prompt_tokens) = (wire_size(body), prompt_tokens(body));
        Ok(Self { size, prompt_tokens, affinity, peek })
    }
}

fn affinity(body: &[u8], peek: &Peek) -> Affinity {
    let prompt = peek.prompt_span.clone().and_then(|span| body.get(span)).unwrap_or_default();
    Affinity { heads: prompt_heads(prompt) }
}
