//! A node's frames: nothing panics, and text is the same however its characters are split.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::node::{ResultFrame, ResultReader, text_frame};

fuzz_target!(|data: (u8, Vec<u8>)| {
    let (size, frame) = data;
    let Ok(result) = ResultFrame::decode(Bytes::from(frame.clone())) else {
        return assert!(frame.len() < 4);
    };
    let whole = str::from_utf8(&result.text).ok();
    if let Some(text) = whole {
        assert_eq!(text_frame(result.id, text), frame);
    }
    let mut reader = ResultReader::default();
    let mut read = String::new();
    for piece in result.text.chunks(usize::from(size).max(1)) {
        match reader.feed(piece) {
            Ok(text) => read.push_str(&text),
            Err(_) => return assert_eq!(whole, None),
        }
    }
    let read = reader.end().is_ok().then_some(&*read);
    assert_eq!(read, whole);
});
