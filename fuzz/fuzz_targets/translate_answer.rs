//! Answers of every shape for clients of every other: the same however they are split, and what is
//! complete is what it says to be. The first three bytes of the input say which pair, what kind of
//! answer, and where to split.
#![no_main]

use base::Endpoint;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use translate::{BadAnswer, Body, Context, answer, served_as};

fuzz_target!(|data: &[u8]| {
    let [choice, kind, piece, given @ ..] = data else { return };
    let pairs: Vec<_> = pairs().collect();
    let pair = pairs[usize::from(*choice) % pairs.len()];
    let status = if kind & 4 == 0 { 200 } else { 429 };
    let body = if kind & 1 == 0 { Body::Events } else { Body::Json };
    let streaming = kind & 2 == 0;
    let whole = answered(pair, streaming, status, body, given, given.len().max(1));
    let split = answered(pair, streaming, status, body, given, usize::from(*piece).max(1));
    assert_eq!(split, whole);
    let (kind, written, made) = whole;
    if made.is_ok() {
        is_well_formed(kind, str::from_utf8(&written).unwrap());
    }
});

fn answered(
    (from, to): (Endpoint, Endpoint),
    streaming: bool,
    status: u16,
    body: Body,
    given: &[u8],
    piece: usize,
) -> (Body, Vec<u8>, Result<(), BadAnswer>) {
    let context = Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming };
    let mut map = answer(from, to, &context, b"{\"model\":\"m\"}").unwrap();
    let (_, kind) = map.head(status, body);
    let mut out = Vec::new();
    let fed = given.chunks(piece).try_for_each(|piece| map.feed(piece, &mut out));
    let made = fed.and_then(|()| map.end(&mut out));
    (kind, out, made)
}

fn is_well_formed(kind: Body, text: &str) {
    let is_json = |text: &str| assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "{text}");
    match kind {
        Body::Json | Body::Array => is_json(text),
        Body::Lines | Body::NdJson => text.lines().for_each(is_json),
        Body::Events => {
            let is_whole = text.is_empty() || text.ends_with("\n\n") || text.ends_with("\r\n\r\n");
            assert!(is_whole, "{text}");
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            data.filter(|data| *data != "[DONE]").for_each(is_json);
        }
    }
}

fn pairs() -> impl Iterator<Item = (Endpoint, Endpoint)> {
    let to = |from| served_as(from).iter().map(move |to| (from, to));
    Endpoint::ALL.into_iter().flat_map(to).filter(|(from, to)| from != to)
}
