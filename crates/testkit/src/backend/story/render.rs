//! The events, as llama.cpp streams them.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{
    answer::{ARGUMENTS, Answer},
    request::{Request, Shape},
};

/// Makes ids that no two answers share.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

/// The events of an answer.
pub(super) fn events(request: &Request, answer: &Answer) -> Vec<String> {
    let id = ANSWERS.fetch_add(1, Ordering::Relaxed);
    match request.shape {
        Shape::Chat => chat(request, answer, id),
        Shape::Completions => completions(request, answer, id),
        Shape::Messages => messages(request, answer, id),
        Shape::Responses => responses(request, answer, id),
    }
}

/// An answer that is no stream.
pub(super) fn whole(request: &Request, answer: &Answer) -> Value {
    let text = request.begun.clone() + &answer.text.concat();
    let message = json!({"role": "assistant", "content": text});
    match request.shape {
        Shape::Chat => {
            json!({"id": "c", "object": "chat.completion", "created": 1, "model": request.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish(answer)}], "usage": usage(request, answer)})
        }
        Shape::Completions => {
            json!({"id": "c", "object": "text_completion", "created": 1, "model": request.model,
            "choices": [{"index": 0, "text": text, "finish_reason": finish(answer)}], "usage": usage(request, answer)})
        }
        Shape::Messages => {
            json!({"id": "c", "type": "message", "role": "assistant", "model": request.model,
            "content": [{"type": "text", "text": text}], "stop_reason": stop_reason(answer),
            "usage": {"input_tokens": prompt(request), "output_tokens": tokens(answer)}})
        }
        Shape::Responses => {
            let item = json!({"type": "message", "id": "msg", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]});
            response(request, answer, "c", &json!([item]))
        }
    }
}

fn tokens(answer: &Answer) -> usize {
    answer.thoughts.len() + answer.text.len()
}

/// A guess, which counts the beginning of the answer by its pieces: each has a space or is short.
fn prompt(request: &Request) -> usize {
    let begun = format!("{}{}", request.begun_thoughts, request.begun);
    let begun = begun.chars().filter(|c| matches!(c, ' ' | ',' | '.' | '\n')).count();
    10 + begun
}

fn finish(answer: &Answer) -> &'static str {
    match (answer.cut, &answer.call) {
        (true, _) => "length",
        (false, Some(_)) => "tool_calls",
        (false, None) => "stop",
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match finish(answer) {
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        _ => "end_turn",
    }
}

fn usage(request: &Request, answer: &Answer) -> Value {
    let (prompt, output) = (prompt(request), tokens(answer));
    json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output})
}

fn chat(request: &Request, answer: &Answer, id: u64) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk", "created": 1_700_000_000 + id,
            "model": request.model, "system_fingerprint": "b11549-mock", "choices": choices})
    };
    let delta = |delta: Value, finish: Value| {
        data(&chunk(json!([{"finish_reason": finish, "index": 0, "delta": delta}])))
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": null}), Value::Null)];
    let thoughts = answer.thoughts.iter();
    events.extend(thoughts.map(|piece| delta(json!({"reasoning_content": piece}), Value::Null)));
    events.extend(answer.text.iter().map(|piece| delta(json!({"content": piece}), Value::Null)));
    if let Some(tool) = &answer.call {
        let call = json!({"index": 0, "id": format!("call_{id}"), "type": "function",
            "function": {"name": tool, "arguments": ""}});
        events.push(delta(json!({"tool_calls": [call]}), Value::Null));
        events.extend(ARGUMENTS.iter().map(|piece| {
            let piece = json!({"index": 0, "function": {"arguments": piece}});
            delta(json!({"tool_calls": [piece]}), Value::Null)
        }));
    }
    events.push(delta(json!({}), finish(answer).into()));
    if request.usage {
        let mut last = chunk(json!([]));
        last["usage"] = usage(request, answer);
        events.push(data(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn completions(request: &Request, answer: &Answer, id: u64) -> Vec<String> {
    let chunk = |text: &str, finish: Value| {
        json!({"id": format!("chatcmpl-{id}"), "object": "text_completion", "created": 1_700_000_000 + id,
            "model": request.model, "choices": [{"text": text, "index": 0, "logprobs": null, "finish_reason": finish}]})
    };
    let mut events: Vec<String> =
        answer.text.iter().map(|piece| data(&chunk(piece, Value::Null))).collect();
    let mut last = chunk("", finish(answer).into());
    last["usage"] = usage(request, answer);
    events.push(data(&last));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn messages(request: &Request, answer: &Answer, id: u64) -> Vec<String> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": format!("msg_{id}"), "type": "message",
        "role": "assistant", "content": [], "model": request.model, "stop_reason": null, "stop_sequence": null,
        "usage": {"cache_read_input_tokens": 0, "input_tokens": prompt(request), "output_tokens": 0}}}),
    ];
    let mut block = |begin: Value, deltas: Vec<Value>, index: usize| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        events.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    let mut index = 0;
    if !answer.thoughts.is_empty() {
        let deltas = answer.thoughts.iter();
        let deltas = deltas.map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
        block(json!({"type": "thinking", "thinking": ""}), deltas.collect(), index);
        index += 1;
    }
    if !answer.text.is_empty() {
        let deltas = answer.text.iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect(), index);
        index += 1;
    }
    if let Some(tool) = &answer.call {
        let deltas = ARGUMENTS.iter();
        let deltas = deltas.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        let begin =
            json!({"type": "tool_use", "id": format!("call_{id}"), "name": tool, "input": {}});
        block(begin, deltas.collect(), index);
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let usage = json!({"output_tokens": tokens(answer)});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(named).collect()
}

/// As llama.cpp streams them: without numbers, and where texts are repeated, with the beginning that was sent along.
fn responses(request: &Request, answer: &Answer, id: u64) -> Vec<String> {
    let name = format!("resp_{id}");
    let begun = json!({"id": name, "object": "response", "status": "in_progress"});
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    let mut output = Vec::new();
    if !answer.thoughts.is_empty() {
        let id = format!("rs_{id}");
        let item = json!({"type": "reasoning", "id": id, "summary": [], "content": [], "encrypted_content": ""});
        events.push(json!({"type": "response.output_item.added", "item": item}));
        events.extend(answer.thoughts.iter().map(
            |piece| json!({"type": "response.reasoning_text.delta", "item_id": id, "delta": piece}),
        ));
        let all = request.begun_thoughts.clone() + &answer.thoughts.concat();
        let mut item = item;
        item["content"] = json!([{"type": "reasoning_text", "text": all}]);
        events.push(json!({"type": "response.output_item.done", "item": item}));
        output.push(item);
    }
    if !answer.text.is_empty() {
        output.push(message(request, answer, &format!("msg_{id}"), &mut events));
    }
    if let Some(tool) = &answer.call {
        let item_id = format!("fc_{id}");
        let mut item = json!({"type": "function_call", "id": item_id, "call_id": format!("call_{id}"), "name": tool,
            "arguments": "", "status": "in_progress"});
        events.push(json!({"type": "response.output_item.added", "item": item}));
        events.extend(ARGUMENTS.iter().map(|piece| {
            json!({"type": "response.function_call_arguments.delta", "item_id": item_id, "delta": piece})
        }));
        item["arguments"] = ARGUMENTS.concat().into();
        item["status"] = "completed".into();
        events.push(json!({"type": "response.output_item.done", "item": item}));
        output.push(item);
    }
    let kind = if answer.cut { "response.incomplete" } else { "response.completed" };
    events
        .push(json!({"type": kind, "response": response(request, answer, &name, &output.into())}));
    events.iter().map(named).collect()
}

fn message(request: &Request, answer: &Answer, id: &str, events: &mut Vec<Value>) -> Value {
    let mut item = json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []});
    events.push(json!({"type": "response.output_item.added", "item": item}));
    let part = json!({"type": "output_text", "text": ""});
    events.push(json!({"type": "response.content_part.added", "item_id": id, "part": part}));
    events.extend(
        answer.text.iter().map(
            |piece| json!({"type": "response.output_text.delta", "item_id": id, "delta": piece}),
        ),
    );
    let all = request.begun.clone() + &answer.text.concat();
    events.push(json!({"type": "response.output_text.done", "item_id": id, "text": all}));
    let part = json!({"type": "output_text", "annotations": [], "logprobs": [], "text": all});
    events.push(json!({"type": "response.content_part.done", "item_id": id, "part": part}));
    item["status"] = "completed".into();
    item["content"] = json!([part]);
    events.push(json!({"type": "response.output_item.done", "item": item}));
    item
}

fn response(request: &Request, answer: &Answer, id: &str, output: &Value) -> Value {
    let (input, generated) = (prompt(request), tokens(answer));
    let status = if answer.cut { "incomplete" } else { "completed" };
    let details = answer.cut.then(|| json!({"reason": "max_output_tokens"}));
    json!({"id": id, "object": "response", "created_at": 1_700_000_000, "status": status, "model": request.model,
        "incomplete_details": details, "output": output, "usage": {"input_tokens": input, "output_tokens": generated,
            "total_tokens": input + generated, "input_tokens_details": {"cached_tokens": 0}}})
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
