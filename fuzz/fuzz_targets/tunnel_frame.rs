//! Frames of a participant's tunnel, both ways: what is read is written and read again the same, and
//! errors stay short.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::room::tunnel::{BadFrame, FromParticipant, ToParticipant, operation};

fuzz_target!(|text: &str| {
    match FromParticipant::decode(text) {
        Ok(frame) => assert_eq!(FromParticipant::decode(&frame.encode()), Ok(frame)),
        Err(bad) => short(&bad),
    }
    match ToParticipant::decode(text) {
        Ok(frame) => {
            let written = frame.encode();
            assert_eq!(ToParticipant::decode(&written).unwrap().encode(), written);
            if let ToParticipant::Request(request) = &frame {
                assert!(!operation(&request.method, &request.path).is_empty());
            }
        }
        Err(bad) => short(&bad),
    }
});

fn short(bad: &BadFrame) {
    assert!(bad.kind.as_ref().is_none_or(|kind| kind.len() <= 64));
    assert!(bad.request_id.as_ref().is_none_or(|id| id.len() <= 256));
    assert!(bad.to_string().len() < 300);
}
