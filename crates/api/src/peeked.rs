//! The fields of a body that routing needs, read before it becomes a job.

use access::Tokens;
use bytes::Bytes;
use http::StatusCode;
use protocol::{
    json::{escaped_len, mended},
    multipart::{Boundary, Form},
    openai::{BadBody, Peek, peek},
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
    /// How the prompt begins; nothing unless it is asked for.
    pub(crate) affinity: Affinity,
}

/// Reads the fields that routing needs, and returns the body with them: the client's own, unless
/// readers could disagree about it.
///
/// # Errors
/// 400 when the request cannot be routed.
pub(crate) async fn peek_request(
    body: Bytes,
    with_affinity: bool,
) -> Result<(Bytes, PeekedRequest), ApiError> {
    let len = body.len();
    let peeked = off_thread(len, move || PeekedRequest::of_any(body, with_affinity)).await?;
    peeked.map_err(|bad| ApiError::from(&bad))
}

/// The same of a form. It passes as it is, and its files are not looked into.
///
/// # Errors
/// 400 when the form cannot be routed.
pub(crate) async fn peek_form(
    body: Bytes,
    boundary: Boundary,
) -> Result<(Bytes, PeekedRequest), ApiError> {
    let len = body.len();
    let (body, form) = off_thread(len, move || {
        let form = Form::read(&boundary, &body);
        (body, form)
    })
    .await?;
    let (size, affinity) = (wire_size(&body), Affinity::default());
    let peeked = PeekedRequest { peek: form?.into(), size, prompt_tokens: 0, affinity };
    Ok((body, peeked))
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

    /// The same, as prices tell them apart.
    pub(crate) fn priced_tokens(&self) -> Tokens {
        Tokens { prompt: self.prompt_tokens, cached: 0, completion: self.peek.most_tokens }
    }

    /// Of a body that is not strict JSON, or names a field of routing twice, the mended form goes on.
    fn of_any(body: Bytes, with_affinity: bool) -> Result<(Bytes, Self), BadBody> {
        match Self::into(&body, with_affinity) {
            Ok(peeked) => Ok((body, peeked)),
            Err(bad @ (BadBody::NotJson { .. } | BadBody::Twice(_))) => {
                let mended = Bytes::from(mended(&body).ok_or_else(|| bad.clone())?);
                let peeked = Self::into(&mended, with_affinity).map_err(|_| bad)?;
                Ok((mended, peeked))
            }
            Err(bad) => Err(bad),
        }
    }

    fn into(body: &[u8], with_affinity: bool) -> Result<Self, BadBody> {
        let peek = peek(body)?;
        let affinity = if with_affinity { affinity(body, &peek) } else { Affinity::default() };
        let (size, prompt_tokens) = (wire_size(body), prompt_tokens(body));
        Ok(Self { size, prompt_tokens, affinity, peek })
    }
}

fn affinity(body: &[u8], peek: &Peek) -> Affinity {
    let [tools, instructions, prompt] = peek.prompt_parts(body);
    Affinity::of(&[tools, instructions], prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Result<(Bytes, PeekedRequest), BadBody> {
        PeekedRequest::of_any(Bytes::copy_from_slice(body.as_bytes()), false)
    }

    #[test]
    fn the_last_of_a_repeated_field_counts_for_everybody() {
        let (body, peeked) =
            of(r#"{"model":"a","stream":false,"x":1, "model":"b","stream":true}"#).unwrap();
        assert_eq!((peeked.peek.model.as_str(), peeked.peek.stream), ("b", true));
        assert_eq!(body, r#"{"x":1,"model":"b","stream":true}"#);
    }

    #[test]
    fn no_number_in_a_field_that_nobody_reads_is_null() {
        let (body, _) = of(r#"{"model":"a","x":[NaN,-Infinity],"y":1.0}"#).unwrap();
        assert_eq!(body, r#"{"model":"a","x":[null,null],"y":1.0}"#);
    }

    #[test]
    fn what_routing_can_read_passes_unchanged() {
        let given = r#"{"x":1, "x":2,"y":"\ud83c","model" : "a"}"#;
        assert_eq!(of(given).unwrap().0, given);
        assert!(matches!(of("{\"model\":"), Err(BadBody::NotJson { .. })));
    }
}
