//! Makes the message for a job.

use bytes::Bytes;
use protocol::{
    mesh::{WireId, cluster::InferenceRequest},
    openai::streamed,
    via::VIA,
};
use rand::RngExt;
use scheduler::JobRequest;
use serde_json::value::RawValue;

/// A new id for a request. It is a UUID, since stock peers accept no other form.
pub(super) fn new_id() -> WireId {
    WireId::from_random(rand::rng().random())
}

/// The message that asks a peer for a job. It always asks for a stream and for the usage. Otherwise
/// nothing would show that an answer makes progress, and what it cost.
///
/// # Errors
/// Why the request is not valid.
pub(super) fn message(
    id: WireId,
    request: &JobRequest,
    warren: bool,
) -> Result<InferenceRequest, String> {
    let body = streamed(&request.body, None).map_err(|bad| bad.to_string())?.body;
    let via = request.headers.get(VIA).and_then(|via| via.to_str().ok());
    let via = via.filter(|_| warren).map(str::to_owned);
    let (request, hops) = (raw(&body)?, warren.then_some(1));
    Ok(InferenceRequest { request_id: id, request, streaming: true, hops, via })
}

fn raw(body: &Bytes) -> Result<Box<RawValue>, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn request(body: &'static str) -> JobRequest {
        JobRequest {
            method: Method::POST,
            path_and_query: "/v1/chat/completions".to_owned(),
            model: "m".into(),
            streaming: false,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn every_parameter_survives_and_a_stream_is_asked_for() {
        let body = r#"{"model":"m","messages":[],"top_k":3,"min_p":0.10,"logit_bias":{"7":-1}}"#;
        let sent = message("a".into(), &request(body), true).unwrap();
        let expected = concat!(
            r#"{"model":"m","messages":[],"top_k":3,"min_p":0.10,"logit_bias":{"7":-1},"#,
            r#""stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!((sent.request.get(), sent.streaming, sent.hops), (expected, true, Some(1)));
        assert_eq!(message("a".into(), &request(body), false).unwrap().hops, None);
        let mut marked = request(body);
        marked.headers.insert(VIA, http::HeaderValue::from_static("0123456789abcdef"));
        let via = |warren| message("a".into(), &marked, warren).unwrap().via;
        assert_eq!((via(true).as_deref(), via(false)), (Some("0123456789abcdef"), None));
        assert!(message("a".into(), &request("[]"), false).is_err());
    }

    #[test]
    fn ids_are_uuids_and_differ() {
        assert!(new_id().uuid().is_some());
        assert_ne!(new_id(), new_id());
    }
}
