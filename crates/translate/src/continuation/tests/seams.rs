//! The streams of real providers at a seam.

use base::{Continuation, Endpoint};
use serde_json::{Value, json};

use super::{
    super::{CannotContinue, Delivered, Rest, Seam, closing, request},
    streams::read,
};
use crate::answer::Answer;

/// The text that the client has after these streams, each cut where it ends here.
fn joined(endpoint: Endpoint, streams: &[&str]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut delivered = Delivered::new(endpoint).unwrap();
    delivered.feed(streams[0].as_bytes(), &mut out);
    for stream in &streams[1..] {
        assert_eq!(delivered.rest(), Rest::Text);
        let mut seam = Seam::new(delivered);
        seam.feed(stream.as_bytes(), &mut out).unwrap();
        delivered = seam.into_delivered();
    }
    read(&out)
}

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chat(delta: Value) -> Value {
    let mut choice = json!({"index": 0, "finish_reason": null});
    choice["delta"] = delta;
    json!({"id": "a", "created": 1, "model": "m", "choices": [choice]})
}

/// After thoughts that it was sent, llama.cpp numbers its first block as the second and ends the block of thoughts, which
/// it never began.
#[test]
fn llama_cpp_ends_blocks_of_messages_that_it_did_not_begin() {
    let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let start = |id: &str| json!({"type": "message_start", "message": {"id": id}});
    let first = [
        start("first"),
        block(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": " you all"})),
        stop(0),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": " is"})),
    ];
    let end = [
        stop(1),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": null}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let second = [
        start("second"),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": " you"})),
        delta(1, json!({"type": "text_delta", "text": " all"})),
        delta(0, json!({"type": "signature_delta", "signature": ""})),
        stop(0),
    ];
    let answer =
        joined(Endpoint::Messages, &[&events(&first), &events(&[&second[..], &end].concat())]);
    let mut expected = first.to_vec();
    expected.extend([second[2].clone(), second[3].clone()]);
    expected.extend(end);
    let at = expected.len() - 2;
    expected[at]["usage"]["output_tokens"] = 4.into();
    assert_eq!(answer, expected);
}

/// llama.cpp also says in the middle of a message that the thoughts which it was sent are complete, and repeats them in
/// the end.
#[test]
fn llama_cpp_ends_thoughts_of_responses_that_it_did_not_begin() {
    let thoughts = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let delta = |id: &str, piece: &str| json!({"type": "response.output_text.delta", "item_id": id, "delta": piece});
    let first = [
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1", "summary": [], "content": []}}),
        json!({"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "hm"}),
        json!({"type": "response.output_item.done", "item": thoughts}),
        json!({"type": "response.output_item.added", "item": message}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}}),
        delta("msg_1", "You"),
    ];
    let theirs = json!({"type": "reasoning", "id": "rs_9", "summary": [], "content": [{"type": "reasoning_text", "text": "hm\n"}]});
    let second = [
        json!({"type": "response.created", "response": {"id": "resp_9"}}),
        json!({"type": "response.in_progress", "response": {"id": "resp_9"}}),
        json!({"type": "response.output_item.added", "item": {"type": "message", "id": "msg_9", "role": "assistant", "content": []}}),
        json!({"type": "response.content_part.added", "item_id": "msg_9", "part": {"type": "output_text", "text": ""}}),
        delta("msg_9", " are"),
        json!({"type": "response.output_item.done", "item": theirs}),
        json!({"type": "response.output_text.done", "item_id": "msg_9", "text": "You are"}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "id": "msg_9", "role": "assistant",
            "content": [{"type": "output_text", "text": "You are"}]}}),
        json!({"type": "response.completed", "response": {"id": "resp_9", "output": [theirs], "output_text": " are",
            "usage": {"input_tokens": 12, "output_tokens": 1, "total_tokens": 13}}, "timings": {"predicted_n": 1}}),
    ];
    let answer = joined(Endpoint::Responses, &[&events(&first), &events(&second)]);
    let whole = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "You are"}]});
    let rest = [
        json!({"type": "response.in_progress", "response": {"id": "resp_1"}}),
        delta("msg_1", " are"),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "text": "You are"}),
        json!({"type": "response.output_item.done", "item": whole}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "output": [thoughts, whole], "output_text": "You are",
            "usage": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}}}),
    ];
    let read = |events: &[Value]| read(self::events(events).as_bytes());
    assert_eq!(answer, [read(&first), read(&rest)].concat());
}

/// A call that begins after the seam passes, with numbers that follow.
#[test]
fn calls_of_tools_after_the_seam_have_the_next_numbers() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    let first = events(&[chat(json!({"role": "assistant", "content": "You"}))]);
    let answer = joined(Endpoint::ChatCompletions, &[&first, &events(&[chat(call.clone())])]);
    assert_eq!(answer[1]["choices"][0]["delta"], call);

    let first = events(&[
        json!({"type": "message_start", "message": {"id": "a"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "You"}}),
    ]);
    let tool = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
    let second = events(&[
        json!({"type": "message_start", "message": {"id": "b"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": tool}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    let answer = joined(Endpoint::Messages, &[&first, &second]);
    let places: Vec<(&str, u64)> = answer[3..]
        .iter()
        .map(|event| (event["type"].as_str().unwrap(), event["index"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            ("content_block_stop", 0),
            ("content_block_start", 1),
            ("content_block_delta", 1),
            ("content_block_stop", 1)
        ]
    );

    let added = |item: Value| json!({"type": "response.output_item.added", "output_index": 0, "sequence_number": 1, "item": item});
    let first = events(&[
        json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}}),
        added(json!({"type": "message", "id": "msg_1"})),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "sequence_number": 2, "delta": "You"}),
    ]);
    let tool = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""});
    let second = events(&[
        json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_2"}}),
        added(tool.clone()),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0,
            "sequence_number": 2, "delta": "{}"}),
        json!({"type": "response.output_item.done", "item": tool, "output_index": 0, "sequence_number": 3}),
        json!({"type": "response.completed", "response": {"id": "resp_2", "output": [tool]}, "sequence_number": 4}),
    ]);
    let answer = joined(Endpoint::Responses, &[&first, &second]);
    let numbers: Vec<u64> =
        answer.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..answer.len() as u64).collect::<Vec<_>>());
    let call =
        answer.iter().filter(|event| event["item_id"] == "fc_1" || event["item"]["id"] == "fc_1");
    assert!(call.clone().all(|event| event["output_index"] == 1), "{answer:#?}");
    assert_eq!(call.count(), 3);
    let output = answer.last().unwrap()["response"]["output"].as_array().unwrap();
    assert_eq!((&output[0]["content"][0]["text"], &output[1]), (&json!("You"), &tool));
}

#[test]
fn a_beginning_that_is_repeated_in_one_piece_is_dropped() {
    let pieces: Vec<String> = (0..8).map(|n| format!(" {n}")).collect();
    let first =
        events(&pieces.iter().map(|piece| chat(json!({"content": piece}))).collect::<Vec<_>>());
    let all = pieces.concat();
    let text = |second: &[&str]| {
        let second: Vec<Value> =
            second.iter().map(|piece| chat(json!({"content": piece}))).collect();
        let answer = joined(Endpoint::ChatCompletions, &[&first, &events(&second)]);
        answer
            .iter()
            .map(|event| event["choices"][0]["delta"]["content"].as_str().unwrap().to_owned())
            .collect::<String>()
    };
    assert_eq!(text(&[&format!("{all} 8"), " 9"]), format!("{all} 8 9"));
    assert_eq!(text(&[&all, " 8"]), format!("{all} 8"));
    // A model that repeats itself does so piece by piece.
    assert_eq!(text(&[" 0", &all]), format!("{all} 0{all}"));
}

#[test]
fn inside_and_after_calls_nothing_is_continued() {
    let tool = json!({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}});
    let added =
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": "f"}});
    for (endpoint, event, reason) in [
        (Endpoint::ChatCompletions, chat(json!({"tool_calls": [tool]})), CannotContinue::ToolCall),
        (Endpoint::ChatCompletions, chat(json!({"refusal": "No"})), CannotContinue::Refusal),
        (
            Endpoint::ChatCompletions,
            json!({"choices": [{"index": 1, "delta": {"content": "a"}}]}),
            CannotContinue::SeveralChoices,
        ),
        (Endpoint::ChatCompletions, json!({"error": {"message": "boom"}}), CannotContinue::Failed),
        (Endpoint::Completions, json!({"error": {"message": "boom"}}), CannotContinue::Failed),
        (
            Endpoint::Completions,
            json!({"choices": [{"index": 1, "text": "a"}]}),
            CannotContinue::SeveralChoices,
        ),
        (
            Endpoint::Messages,
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}),
            CannotContinue::ToolCall,
        ),
        (
            Endpoint::Messages,
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta"}}),
            CannotContinue::Citations,
        ),
        (Endpoint::Messages, json!({"type": "error", "error": {}}), CannotContinue::Failed),
        (Endpoint::Responses, added, CannotContinue::ToolCall),
        (
            Endpoint::Responses,
            json!({"type": "response.refusal.delta", "delta": "No"}),
            CannotContinue::Refusal,
        ),
        (Endpoint::Responses, json!({"type": "response.failed"}), CannotContinue::Failed),
    ] {
        let mut delivered = Delivered::new(endpoint).unwrap();
        delivered.feed(events(std::slice::from_ref(&event)).as_bytes(), &mut Vec::new());
        assert_eq!(delivered.rest(), Rest::No(reason.clone()), "{event}");
        let body = br#"{"messages":[],"prompt":"a","input":"a","stream":true}"#;
        assert_eq!(request(endpoint, body, &mut delivered, Continuation::LastMessage), Err(reason));
    }
}

/// Where no more tokens may come, the answer has reached its length.
#[test]
fn an_answer_that_is_full_is_closed_as_too_long() {
    let closed = |endpoint, first: &[Value]| {
        let mut delivered = Delivered::new(endpoint).unwrap();
        delivered.feed(events(first).as_bytes(), &mut Vec::new());
        let closing = closing(&mut delivered);
        let mut second = Delivered::new(endpoint).unwrap();
        second.feed(events(first).as_bytes(), &mut Vec::new());
        second.feed(&closing, &mut Vec::new());
        assert_eq!(second.rest(), Rest::Nothing);
        assert!(super::super::closing(&mut second).is_empty(), "it is over");
        read(&closing)
    };
    let answer = closed(Endpoint::ChatCompletions, &[chat(json!({"content": "You"}))]);
    let chunk = json!({"id": "a", "created": 1, "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]});
    assert_eq!(answer, [chunk, json!("[DONE]")]);
    let answer = closed(Endpoint::Completions, &[json!({"id": "a", "choices": [{"text": "You"}]})]);
    assert_eq!(answer[0]["choices"][0]["finish_reason"], "length");
    let begun = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "You"}}),
    ];
    let answer = closed(Endpoint::Messages, &begun);
    let kinds: Vec<&str> = answer.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["content_block_stop", "message_delta", "message_stop"]);
    assert_eq!(
        (&answer[1]["delta"]["stop_reason"], &answer[1]["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(1))
    );
    let begun = [
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1"}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": "You"}),
    ];
    let answer = closed(Endpoint::Responses, &begun);
    let last = &answer.last().unwrap()["response"];
    assert_eq!((&last["id"], &last["status"]), (&json!("resp_1"), &json!("incomplete")));
    assert_eq!(last["output"][0]["content"][0]["text"], "You");
    // Of this one only the last event is missing.
    let finished = chat(json!({"content": "You"})).to_string().replace("null", "\"stop\"");
    let answer = closed(Endpoint::ChatCompletions, &[serde_json::from_str(&finished).unwrap()]);
    assert_eq!(answer, [json!("[DONE]")]);
}

/// The answer of a client of another shape does not show the seam either.
#[test]
fn a_translation_that_lives_over_the_seam_gives_one_message() {
    let context =
        crate::Context { id: "0".repeat(32), model: "m".to_owned(), streaming: true, created: 1 };
    let body = br#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":9}"#;
    let map = || {
        let mut map =
            crate::answer(Endpoint::Messages, Endpoint::ChatCompletions, &context, body).unwrap();
        map.head(200, crate::Body::Events);
        map
    };
    let piece = |text: &str| events(&[chat(json!({"content": text}))]);
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (mut undisturbed, mut whole) = (map(), Vec::new());
    undisturbed.feed([&piece("You"), &piece(" are"), end].concat().as_bytes(), &mut whole).unwrap();

    let (mut other, mut out, mut answer) = (map(), Vec::new(), Vec::new());
    let mut delivered = Delivered::new(Endpoint::ChatCompletions).unwrap();
    delivered.feed((piece("You") + "data: {\"choi").as_bytes(), &mut out);
    other.feed(&out, &mut answer).unwrap();
    let mut seam = Seam::new(delivered);
    out.clear();
    seam.feed([&piece(" are"), end].concat().as_bytes(), &mut out).unwrap();
    assert!(seam.is_over());
    other.feed(&out, &mut answer).unwrap();
    assert_eq!(read(&answer), read(&whole));
}
