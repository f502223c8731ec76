//! Streams of every kind that backends send.

use serde_json::{Value, json};

use super::{answered, context, delta, events, finish, streamed};
use crate::answer::Body;

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The response that the last event holds.
fn response(events: &[Value]) -> &Value {
    &events.last().unwrap()["response"]
}

#[test]
fn text_comes_in_the_whole_sequence() {
    let stream = events(&[
        delta(&json!({"role": "assistant", "content": null})),
        delta(&json!({"content": "Hel"})),
        delta(&json!({"content": "lo\n\"you\""})),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}}),
    ]);
    let events = streamed(&json!({"model": "m", "input": "hi", "stream": true}), &stream);
    assert_eq!(
        types(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert_eq!(
        events[4],
        json!({"type": "response.output_text.delta", "item_id": "msg_0123456789abcdef0123456789abcdef0", "output_index": 0, "content_index": 0, "logprobs": [], "sequence_number": 4, "delta": "Hel"})
    );
    assert_eq!(
        response(&events)["output"],
        json!([{"type": "message", "id": "msg_0123456789abcdef0123456789abcdef0", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Hello\n\"you\"", "annotations": [], "logprobs": []}]}])
    );
    assert_eq!(
        response(&events)["usage"],
        json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12})
    );
}

#[test]
fn thoughts_are_an_item_before_the_message() {
    for field in ["reasoning_content", "reasoning"] {
        let stream = events(&[
            delta(&json!({field: "Let me"})),
            delta(&json!({field: " see.", "content": ""})),
            delta(&json!({"content": "Yes."})),
            finish("stop"),
        ]);
        let events = streamed(&json!({}), &stream);
        let output = &response(&events)["output"];
        assert_eq!(output[0]["type"], "reasoning");
        assert_eq!(output[0]["summary"], json!([]));
        assert_eq!(
            output[0]["content"],
            json!([{"type": "reasoning_text", "text": "Let me see."}])
        );
        assert_eq!(output[1]["content"][0]["text"], "Yes.");
        assert!(types(&events).contains(&"response.reasoning_text.delta"));
    }
}

#[test]
fn parallel_calls_come_one_after_the_other() {
    let piece = |call: &Value| delta(&json!({"tool_calls": [call]}));
    let stream = events(&[
        delta(&json!({"content": "Both."})),
        piece(
            &json!({"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}),
        ),
        piece(
            &json!({"index": 1, "id": "b", "type": "function", "function": {"name": "ls", "arguments": "{\"p\":"}}),
        ),
        piece(&json!({"index": 0, "function": {"arguments": "{\"p\":1}"}})),
        piece(&json!({"index": 1, "function": {"arguments": "2}"}})),
        finish("tool_calls"),
    ]);
    let events = streamed(&json!({"tools": [{"type": "function", "name": "ls"}]}), &stream);
    let output = response(&events)["output"].as_array().unwrap();
    assert_eq!(output.len(), 3);
    for (item, id, arguments) in [(&output[1], "a", r#"{"p":1}"#), (&output[2], "b", r#"{"p":2}"#)]
    {
        assert_eq!(item["type"], "function_call");
        assert_eq!((&item["call_id"], &item["name"]), (&json!(id), &json!("ls")));
        assert_eq!((&item["arguments"], &item["status"]), (&json!(arguments), &json!("completed")));
        assert_eq!(item.get("namespace"), None);
    }
    assert_eq!(response(&events)["status"], "completed");
}

#[test]
fn a_call_without_arguments_or_id_gets_them() {
    let stream = events(&[
        delta(&json!({"tool_calls": [{"index": 0, "function": {"name": "now"}}]})),
        finish("tool_calls"),
    ]);
    let events = streamed(&json!({}), &stream);
    let call = &response(&events)["output"][0];
    assert_eq!(call["arguments"], "{}");
    assert_eq!(call["call_id"], "call_0123456789abcdef0123456789abcdef0");
}

#[test]
fn a_custom_tool_gets_its_text() {
    let request = json!({"tools": [{"type": "custom", "name": "apply_patch"}]});
    let call = |arguments: &str| {
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "apply_patch", "arguments": arguments}}]}),
        )
    };
    let stream = events(&[call("{\"input\": \"*** Be"), call("gin\\n\"}"), finish("tool_calls")]);
    let answer = streamed(&request, &stream);
    let item = &response(&answer)["output"][0];
    assert_eq!(item["type"], "custom_tool_call");
    assert_eq!(item["input"], "*** Begin\n");
    assert_eq!(
        types(&answer)[3..5],
        ["response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"]
    );
    let raw = streamed(&request, &events(&[call("*** Begin"), finish("tool_calls")]));
    assert_eq!(response(&raw)["output"][0]["input"], "*** Begin");
}

#[test]
fn a_function_of_a_namespace_gets_its_names_back() {
    let spaces = json!([{"type": "namespace", "name": "mcp__fs", "description": "", "tools": [{"type": "function", "name": "read"}]}]);
    let stream = events(&[
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "mcp__fs__read", "arguments": "{}"}}]}),
        ),
        finish("tool_calls"),
    ]);
    let among_items = json!({"input": [{"type": "additional_tools", "tools": spaces}]});
    for request in [json!({"tools": spaces}), among_items] {
        let events = streamed(&request, &stream);
        let call = &response(&events)["output"][0];
        assert_eq!((&call["name"], &call["namespace"]), (&json!("read"), &json!("mcp__fs")));
    }
}

#[test]
fn a_limit_leaves_the_response_incomplete() {
    for (reason, detail) in [("length", "max_output_tokens"), ("content_filter", "content_filter")]
    {
        let events =
            streamed(&json!({}), &events(&[delta(&json!({"content": "Once"})), finish(reason)]));
        assert_eq!(events.last().unwrap()["type"], "response.incomplete");
        assert_eq!(response(&events)["incomplete_details"], json!({"reason": detail}));
        assert_eq!(response(&events)["output"][0]["status"], "incomplete");
    }
}

#[test]
fn a_refusal_is_the_messages_content() {
    let stream = events(&[delta(&json!({"refusal": "No."})), finish("stop")]);
    let text = answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    assert!(text.contains("event: response.refusal.delta\n"));
    assert!(text.contains(r#""content":[{"type":"refusal","refusal":"No."}]"#));
}

#[test]
fn an_error_within_the_stream_fails_the_response() {
    for before in [vec![], vec![delta(&json!({"content": "Once"}))]] {
        let error = json!({"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}});
        let mut chunks = before;
        chunks.extend([error, delta(&json!({"content": "more"}))]);
        let events = streamed(&json!({}), &events(&chunks));
        assert_eq!(events.last().unwrap()["type"], "response.failed");
        assert_eq!(
            response(&events)["error"],
            json!({"code": "context_length_exceeded", "message": "too long"})
        );
    }
}

#[test]
fn a_stream_that_is_cut_off_fails_the_response() {
    let stream = format!("data: {}\n\n", delta(&json!({"content": "Once"})));
    let events = streamed(&json!({}), &stream);
    assert_eq!(events.last().unwrap()["type"], "response.failed");
    assert_eq!(response(&events)["error"]["code"], "server_error");
}

#[test]
fn a_whole_answer_becomes_a_stream() {
    let whole = json!({"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let text =
        answered(true, &json!({}), 200, Body::Json, &[whole.to_string().as_bytes()]).unwrap();
    let events = super::grammar::read(&text);
    assert_eq!(response(&events)["output"].as_array().unwrap().len(), 2);
    assert_eq!(response(&events)["usage"]["total_tokens"], 3);
}

#[test]
fn the_request_is_repeated_on_one_line() {
    let request = "{\"model\":\"m\",\n \"tools\": [\r\n {\"type\":\"function\",\"name\":\"f\\n\"}],\n\"metadata\":{\"k\":\"v\"},\"store\":true,\"temperature\":0.5}";
    let mut map = super::answer(&context(true), request.as_bytes());
    crate::Answer::head(&mut map, 200, Body::Events);
    let mut out = Vec::new();
    let stream = events(&[finish("stop")]);
    crate::Answer::feed(&mut map, stream.as_bytes(), &mut out).unwrap();
    let events = super::grammar::read(str::from_utf8(&out).unwrap());
    let response = response(&events);
    assert_eq!(response["tools"], json!([{"type": "function", "name": "f\n"}]));
    assert_eq!(response["metadata"], json!({"k": "v"}));
    assert_eq!((&response["store"], &response["temperature"]), (&json!(false), &json!(0.5)));
    assert_eq!(
        (&response["model"], &response["created_at"]),
        (&json!("fast"), &json!(1_700_000_000))
    );
    assert_eq!(response["id"], "resp_0123456789abcdef0123456789abcdef");
}
