//! Messages between peers: nothing panics, errors stay short, and what is read is written and read
//! again as the same message, in either form.
#![no_main]

use std::mem::discriminant;

use libfuzzer_sys::fuzz_target;
use protocol::mesh::{
    cluster::{BadMessage, ClusterMessage, Dialect, FailedRequest, decode, encode},
    wire_id::MAX_ID,
};

/// Shorter messages are never refused for their length. What is unknown may be written longer than
/// it came.
const SHORT: usize = 256 * 1024;

fuzz_target!(|data: &[u8]| {
    let decoded = match decode(data) {
        Ok(decoded) => decoded,
        Err(bad) => return short(&bad),
    };
    for dialect in [Dialect::Flat, Dialect::Wrapped] {
        let written = encode(&decoded.message, dialect);
        if written.len() > SHORT {
            continue;
        }
        let again = decode(&written).expect("what is written is read");
        assert_eq!(again.dialect, dialect);
        assert_eq!(discriminant(&again.message), discriminant(&decoded.message));
        word_for_word(&decoded.message, &again.message);
    }
});

fn word_for_word(one: &ClusterMessage, other: &ClusterMessage) {
    match (one, other) {
        (ClusterMessage::InferenceRequest(one), ClusterMessage::InferenceRequest(other)) => {
            assert_eq!(one.request.get(), other.request.get());
            assert_eq!(one.request_id.as_str(), other.request_id.as_str());
        }
        (ClusterMessage::InferenceChunk(one), ClusterMessage::InferenceChunk(other)) => {
            assert_eq!(one.chunk.get(), other.chunk.get());
        }
        (ClusterMessage::ModelTransferChunk(one), ClusterMessage::ModelTransferChunk(other)) => {
            assert_eq!(one, other);
        }
        (ClusterMessage::InferenceError(one), ClusterMessage::InferenceError(other)) => {
            assert_eq!(one, other);
        }
        _ => {}
    }
}

fn short(bad: &BadMessage) {
    assert!(bad.kind.len() <= 64 && bad.why.len() <= 256);
    let length = match &bad.request {
        Some(
            FailedRequest::Inference(id) | FailedRequest::Transfer(id) | FailedRequest::Nothing(id),
        ) => id.as_str().len(),
        Some(FailedRequest::Model(model)) => model.len(),
        Some(FailedRequest::Load(id, model)) => id.as_str().len().max(model.len()),
        None => 0,
    };
    assert!(length <= 4 * MAX_ID);
}
