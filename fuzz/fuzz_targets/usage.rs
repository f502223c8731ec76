//! Token counts: the same however the answer is split, and found again after anything.
//! The first byte of the input says where to split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::usage::{GeneratedCounter, MAX_OBJECT, UsageScanner};

fuzz_target!(|data: &[u8]| {
    let Some((&piece, answer)) = data.split_first() else { return };
    let mut whole = UsageScanner::new();
    whole.feed(answer);
    let mut pieces = UsageScanner::new();
    answer.chunks(usize::from(piece).max(1)).for_each(|chunk| pieces.feed(chunk));
    assert_eq!(pieces.usage(), whole.usage());
    // Of single bytes nothing is skipped.
    let generated = generated(answer, 1);
    assert_eq!(self::generated(answer, answer.len()), generated);
    assert_eq!(self::generated(answer, piece.into()), generated);
    whole.feed(&[b'x'; MAX_OBJECT + 1]);
    whole.feed(br#""usage":{"prompt_tokens":7,"completion_tokens":8}"#);
    let usage = whole.usage();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(7), Some(8)));
});

/// The tokens of an answer, and of it as a stream, in pieces of this length.
fn generated(answer: &[u8], piece: usize) -> [u64; 2] {
    [&b""[..], b"data: {"].map(|beginning| {
        let mut counter = GeneratedCounter::default();
        counter.feed(beginning);
        answer.chunks(piece.max(1)).for_each(|chunk| counter.feed(chunk));
        counter.tokens()
    })
}
