//! Everything has its bound, and garbage does no harm.

use base::{Continuation, Endpoint};
use proptest::{collection::vec, prelude::*};

use super::super::{CannotContinue, Delivered, MAX_HALF, MAX_TEXT, Rest, Seam, closing, request};
use crate::answer::Answer;

const SHAPES: [Endpoint; 4] =
    [Endpoint::ChatCompletions, Endpoint::Completions, Endpoint::Messages, Endpoint::Responses];

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

#[test]
fn a_text_may_reach_its_bound_and_not_pass_it() {
    let piece = "x".repeat(1024);
    let rest = |pieces: usize| {
        let (mut delivered, mut out) =
            (Delivered::new(Endpoint::ChatCompletions).unwrap(), Vec::new());
        for _ in 0..pieces {
            delivered.feed(chunk(&piece).as_bytes(), &mut out);
        }
        assert_eq!(out.len(), pieces * chunk(&piece).len(), "all of it passes");
        (delivered.rest(), delivered.characters())
    };
    assert_eq!(rest(MAX_TEXT / 1024), (Rest::Text, MAX_TEXT as u64));
    let (rest, length) = rest(MAX_TEXT / 1024 + 64);
    assert_eq!((rest, length), (Rest::No(CannotContinue::TooLong), 0));
}

#[test]
fn an_event_that_does_not_end_passes_once_it_is_too_long() {
    let (mut delivered, mut out) = (Delivered::new(Endpoint::Messages).unwrap(), Vec::new());
    let piece = vec![b'x'; MAX_HALF / 2];
    delivered.feed(b"data: ", &mut out);
    delivered.feed(&piece, &mut out);
    assert!(out.is_empty());
    delivered.feed(&piece, &mut out);
    assert_eq!(out.len(), MAX_HALF + 6);
    assert_eq!(delivered.rest(), Rest::No(CannotContinue::TooLong));
    assert_eq!(&delivered.pass(b"more".to_vec().into())[..], b"more");
}

#[test]
fn texts_that_are_repeated_at_the_end_are_held_up_to_a_bound() {
    let delta = |text: &str| {
        format!("data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{text}\"}}\n\n")
    };
    let mut delivered = Delivered::new(Endpoint::Responses).unwrap();
    delivered.feed(delta("a").as_bytes(), &mut Vec::new());
    let (mut seam, mebibyte) = (Seam::new(delivered), delta(&"x".repeat(1024 * 1024)));
    let mut feed = || seam.feed(mebibyte.as_bytes(), &mut Vec::new());
    (0..crate::MAX_KEPT / 1024 / 1024).for_each(|_| feed().unwrap());
    assert!(feed().unwrap_err().to_string().contains("longer than"));
}

#[test]
fn other_endpoints_are_not_continued() {
    let continued =
        Endpoint::ALL.into_iter().filter(|endpoint| Delivered::new(*endpoint).is_some());
    assert_eq!(continued.collect::<Vec<_>>().len(), SHAPES.len());
}

/// Pieces of events, right and wrong.
fn piece() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        r#""choices":[{"index":0,"delta":{"content":"a"},"text":"b","finish_reason":null}]"#,
        r#""choices":[{"delta":7}],"usage":{"prompt_tokens":1,"completion_tokens":-1}"#,
        r#""choices":{},"error":{}"#,
        r#""type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}"#,
        r#""type":"content_block_start""#,
        r#""type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}"#,
        r#""type":"content_block_stop","index":18446744073709551615"#,
        r#""type":"message_delta","usage":{"output_tokens":18446744073709551615}"#,
        r#""type":"response.output_item.added","item":{"type":"message","id":7}"#,
        r#""type":"response.output_item.added""#,
        r#""type":"response.output_item.done","item":{"type":"reasoning","id":"a","content":7}"#,
        r#""type":"response.output_text.delta","delta":"a","output_index":-1"#,
        r#""type":"response.content_part.added","part":{"type":"output_text"}"#,
        r#""type":"response.completed","response":{"output":7,"usage":{}},"sequence_number":18446744073709551614"#,
        r#""type":"response.output_text.done","text":"a""#,
    ]);
    prop_oneof![
        6 => field.prop_map(|field| format!("data: {{{field}}}\n\n")),
        1 => "[a-z{}\":\n\r,\\[\\]]{0,12}".prop_map(|text| text),
        1 => Just("data: [DONE]\n\n".to_owned()),
    ]
}

proptest! {
    #[test]
    fn garbage_does_no_harm(
        shape in 0usize..4,
        first in vec(piece(), 0..6),
        second in vec(piece(), 0..6),
        size in 1usize..90,
    ) {
        let endpoint = SHAPES[shape];
        let mut delivered = Delivered::new(endpoint).unwrap();
        let mut out = Vec::new();
        first.concat().as_bytes().chunks(size).for_each(|bytes| delivered.feed(bytes, &mut out));
        let _ = delivered.rest();
        let body = br#"{"messages":[],"prompt":"a","input":"a","stream":true}"#;
        let _ = request(endpoint, body, &mut delivered, Continuation::LastMessage);
        let mut seam = Seam::new(delivered);
        let fed = second.concat().as_bytes().chunks(size).try_for_each(|bytes| seam.feed(bytes, &mut out));
        let _ = fed.and_then(|()| seam.end(&mut out));
        let mut delivered = seam.into_delivered();
        let _ = (delivered.rest(), delivered.tokens(), delivered.characters());
        let _ = closing(&mut delivered);
    }
}
