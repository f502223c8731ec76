//! Messages from a server: what is read is written and read again the same; errors stay short.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::relay::{ServerMessage, encoded_request_len};

fuzz_target!(|text: &str| {
    match ServerMessage::decode(text) {
        Ok(message) => {
            let written = message.encode();
            if let ServerMessage::Request(r) = &message {
                let (id, model, path) = (&r.request_id, &r.model, &r.endpoint_path);
                let length =
                    encoded_request_len(id, model, path, r.is_streaming, &r.body, &r.headers);
                assert_eq!(length, written.len());
            }
            assert_eq!(ServerMessage::decode(&written), Ok(message));
        }
        Err(error) => {
            assert!(error.kind.as_ref().is_none_or(|kind| kind.len() <= 64));
            assert!(error.request_id.as_ref().is_none_or(|id| id.len() <= 256));
            assert!(error.to_string().len() < 300);
        }
    }
});
