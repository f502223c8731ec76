//! A job's request on its stream: the length of its head, its head, its body.

use std::sync::Arc;

use base::{Endpoint, Endpoints, JobId, ModelName, ProviderId};
use bytes::Bytes;
use http::Method;
use scheduler::JobRequest;
use serde::{Deserialize, Serialize};

use super::answer::headers_of;

/// The longest head of a request, in bytes.
pub(super) const MAX_HEAD: usize = 128 * 1024;

/// The bytes of the head's length.
pub(super) const LENGTH: usize = 4;

#[derive(Serialize, Deserialize)]
struct WireHead<'a> {
    job: u128,
    provider: u64,
    method: &'a str,
    path_and_query: &'a str,
    model: &'a str,
    streaming: bool,
    endpoint: &'a str,
    #[serde(borrow)]
    alternatives: Vec<&'a str>,
    #[serde(borrow)]
    headers: Vec<(&'a str, &'a [u8])>,
    body_len: u64,
}

/// The head of a job's request.
pub(super) struct RequestHead {
    /// The job's id at its home.
    pub(super) job: JobId,
    pub(super) provider: ProviderId,
    pub(super) endpoint: Endpoint,
    /// The other endpoints that the job could be served at.
    pub(super) alternatives: Endpoints,
    pub(super) body_len: u64,
    /// Without its body.
    pub(super) request: JobRequest,
}

/// Bytes that are no head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the head of the request makes no sense")]
pub(super) struct BadRequest;

/// The head of a request with its length before it.
pub(super) fn encode(
    job: JobId,
    provider: ProviderId,
    (endpoint, alternatives): (Endpoint, Endpoints),
    request: &Arc<JobRequest>,
) -> Vec<u8> {
    let head = WireHead {
        job: job.bits(),
        provider: provider.bits(),
        method: request.method.as_str(),
        path_and_query: &request.path_and_query,
        model: request.model.as_str(),
        streaming: request.streaming,
        endpoint: endpoint.path(),
        alternatives: alternatives.iter().map(Endpoint::path).collect(),
        headers: request.headers.iter().map(|(name, it)| (name.as_str(), it.as_bytes())).collect(),
        body_len: request.body.len() as u64,
    };
    // Only a type without a length would not be encoded.
    let encoded = postcard::to_extend(&head, vec![0; LENGTH]);
    let mut encoded: Vec<u8> = encoded.unwrap_or_default();
    if let Some(len) = encoded.len().checked_sub(LENGTH) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        encoded[..LENGTH].copy_from_slice(&len.to_be_bytes());
    }
    encoded
}

/// Reads a head, without its length.
pub(super) fn decode(bytes: &[u8]) -> Result<RequestHead, BadRequest> {
    let head: WireHead<'_> = postcard::from_bytes(bytes).map_err(|_| BadRequest)?;
    let endpoint = Endpoint::of_path(head.endpoint).ok_or(BadRequest)?;
    let known = head.alternatives.iter().filter_map(|path| Endpoint::of_path(path));
    Ok(RequestHead {
        job: JobId::from_random(head.job),
        provider: ProviderId::from_random(head.provider),
        endpoint,
        alternatives: known.fold(Endpoints::NONE, Endpoints::with),
        body_len: head.body_len,
        request: JobRequest {
            method: Method::from_bytes(head.method.as_bytes()).map_err(|_| BadRequest)?,
            path_and_query: head.path_and_query.to_owned(),
            model: ModelName::from(head.model),
            streaming: head.streaming,
            headers: headers_of(&head.headers).ok_or(BadRequest)?,
            body: Bytes::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn request() -> Arc<JobRequest> {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_static("1"));
        headers.append("x-a", HeaderValue::from_bytes(b"\xff").unwrap());
        Arc::new(JobRequest {
            method: Method::POST,
            path_and_query: "/v1/chat/completions?a=b".into(),
            model: "m".into(),
            streaming: true,
            headers,
            body: Bytes::from_static(b"{}"),
        })
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let (job, provider) = (JobId::from_random(7), ProviderId::from_random(9));
        let (chat, messages) = (Endpoint::ChatCompletions, Endpoint::Messages);
        let bytes = encode(job, provider, (chat, Endpoints::only(messages)), &request());
        let len = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!(len as usize, bytes.len() - LENGTH);
        let head = decode(&bytes[LENGTH..]).unwrap();
        assert_eq!((head.job, head.provider, head.endpoint), (job, provider, chat));
        assert_eq!((head.alternatives, head.body_len), (Endpoints::only(messages), 2));
        let (read, written) = (head.request, request());
        assert_eq!(read.headers, written.headers);
        assert_eq!(
            (read.path_and_query.as_str(), read.model.as_str(), read.streaming),
            ("/v1/chat/completions?a=b", "m", true)
        );
        for cut in 0..bytes.len() - LENGTH {
            assert!(decode(&bytes[LENGTH..LENGTH + cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
