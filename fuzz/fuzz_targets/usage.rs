//! Token counts: the same however the answer is split, and found again after anything.
//! The first byte of the input says where to split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::usage::{MAX_OBJECT, UsageScanner};

fuzz_target!(|data: &[u8]| {
    let Some((&piece, answer)) = data.split_first() else { return };
    let mut whole = UsageScanner::new();
    whole.feed(answer);
    let mut pieces = UsageScanner::new();
    answer.chunks(usize::from(piece).max(1)).for_each(|chunk| pieces.feed(chunk));
    assert_eq!(pieces.usage(), whole.usage());
    whole.feed(&[b'x'; MAX_OBJECT + 1]);
    whole.feed(br#""usage":{"prompt_tokens":7,"completion_tokens":8}"#);
    let usage = whole.usage();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(7), Some(8)));
});
