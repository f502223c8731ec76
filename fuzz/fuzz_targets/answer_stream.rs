//! A stream on its way through the server: the same however it is split. The first byte of the input says
//! where to split.
#![no_main]

use base::Endpoint;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::{
    openai::{SequenceReader, UsageFilter},
    sse::StreamEnd,
};

fn filtered(pieces: &[&[u8]]) -> Vec<u8> {
    let mut filter = UsageFilter::default();
    let mut out: Vec<u8> =
        pieces.iter().flat_map(|piece| filter.feed(Bytes::copy_from_slice(piece))).collect();
    out.extend_from_slice(&filter.end());
    out
}

fn number(pieces: &[&[u8]]) -> u64 {
    let mut reader = SequenceReader::default();
    pieces.iter().for_each(|piece| reader.feed(piece));
    reader.next_number()
}

fn taken(endpoint: Endpoint, pieces: &[&[u8]]) -> usize {
    let mut end = StreamEnd::of(endpoint);
    pieces.iter().map(|piece| end.feed(piece)).sum()
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, stream)) = data.split_first() else { return };
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(size).max(1)).collect();
    let passed = filtered(&pieces);
    assert_eq!(passed, filtered(&[stream]));
    number(&pieces);
    for endpoint in [Endpoint::ChatCompletions, Endpoint::Messages, Endpoint::Responses] {
        // Of the line ends behind the last event, some may be missing.
        assert!(taken(endpoint, &[stream]).abs_diff(taken(endpoint, &pieces)) <= 2);
    }
});
