//! Streams that break off and are gone on with by others: no bytes do harm, and it makes no difference how they are
//! split. The first four bytes of the input say which shape, how many bytes are the first provider's, and how they are split.
#![no_main]

use base::{Continuation, Endpoint};
use libfuzzer_sys::fuzz_target;
use translate::{
    Answer,
    continuation::{Delivered, Rest, Seam, closing, request},
};

const SHAPES: [Endpoint; 4] =
    [Endpoint::ChatCompletions, Endpoint::Completions, Endpoint::Messages, Endpoint::Responses];

fuzz_target!(|data: &[u8]| {
    let [shape, cut, more, piece, streams @ ..] = data else { return };
    let endpoint = SHAPES[usize::from(*shape) % SHAPES.len()];
    let cut = usize::from(u16::from_le_bytes([*cut, *more])).min(streams.len());
    let (first, second) = streams.split_at(cut);
    let whole = joined(endpoint, first, second, streams.len().max(1));
    assert_eq!(joined(endpoint, first, second, usize::from(*piece).max(1)), whole);
});

/// All that the client gets, and what is missing then.
fn joined(endpoint: Endpoint, first: &[u8], second: &[u8], piece: usize) -> (Vec<u8>, Rest) {
    let (mut delivered, mut out) = (Delivered::new(endpoint).unwrap(), Vec::new());
    first.chunks(piece).for_each(|bytes| delivered.feed(bytes, &mut out));
    let body = br#"{"messages":[],"prompt":"a","input":"a","stream":true}"#;
    let _ = request(endpoint, body, &mut delivered, Continuation::LastMessage);
    let mut seam = Seam::new(delivered);
    let fed = second.chunks(piece).try_for_each(|bytes| seam.feed(bytes, &mut out));
    let _ = fed.and_then(|()| seam.end(&mut out));
    let mut delivered = seam.into_delivered();
    let rest = delivered.rest();
    out.extend(closing(&mut delivered));
    (out, rest)
}
