//! Event boundaries: the same however the stream is split, and as a plain reading of it says.
//! The first byte of the input says where to split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::sse::{Boundary, looks_like_sse};

fuzz_target!(|data: &[u8]| {
    let Some((&piece, stream)) = data.split_first() else { return };
    let mut whole = Boundary::new();
    whole.feed(stream);
    let mut pieces = Boundary::new();
    stream.chunks(usize::from(piece).max(1)).for_each(|chunk| pieces.feed(chunk));
    assert_eq!(pieces, whole);
    assert_eq!(whole.at_event_start(), ends_between_events(stream));
    let mut closed = whole.clone();
    closed.feed(whole.closing());
    assert!(closed.at_event_start());
    assert_eq!(whole.closing().is_empty(), whole.at_event_start());
    looks_like_sse(stream);
});

fn ends_between_events(stream: &[u8]) -> bool {
    let text: String = stream.iter().copied().map(char::from).collect();
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.is_empty() || lines == "\n" || lines.ends_with("\n\n")
}
