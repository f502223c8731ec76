//! Messages between clients and daemons of the workspace: nothing panics, errors stay short and
//! fit for a terminal, and what is read is written and read again the same. The first byte of the
//! input says whether it is a request, a reply, a binary frame or the bytes of one.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::workspace::{BadMessage, base64, decode_reply, decode_request, frame};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    match (choice % 4, std::str::from_utf8(body)) {
        (0, Ok(text)) => match decode_request(text) {
            Ok(read) => assert_eq!(decode_request(&read.encode()), Ok(read)),
            Err(bad) => short(&bad),
        },
        (1, Ok(text)) => match decode_reply(text) {
            // The last digit of a number may change the first time that it is written.
            Ok(read) => {
                let again = decode_reply(&read.encode()).expect("what is written is read");
                assert_eq!(again.name(), read.name());
            }
            Err(bad) => short(&bad),
        },
        (2, Ok(text)) => {
            if let Ok(bytes) = base64::decode(text, 1024) {
                assert!(bytes.len() <= 1024);
                assert_eq!(base64::encode(&bytes), text);
            }
        }
        (3, _) => output(Bytes::copy_from_slice(body)),
        _ => {}
    }
});

fn output(wire: Bytes) {
    if let Ok(read) = frame::decode(wire.clone()) {
        assert_eq!(frame::encode(read.session_id, read.seq, &read.data), wire);
        assert!(std::str::from_utf8(&read.data).is_ok());
    }
}

fn short(bad: &BadMessage) {
    let words = bad.to_string();
    assert!(words.len() < 2048 && !words.contains(char::is_control), "{words:?}");
    assert!(bad.kind.as_ref().is_none_or(|kind| kind.len() <= 64));
    assert!(bad.request_id.as_ref().is_none_or(|id| id.len() <= 256));
}
