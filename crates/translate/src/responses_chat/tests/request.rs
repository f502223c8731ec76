//! Requests as a whole, and the parameters one by one.

use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::context;
use crate::kit::with_fields;

fn chat(request: &Value) -> Result<Value, BadRequest> {
    let body = super::super::request(request.to_string().as_bytes(), &context(false))?;
    Ok(serde_json::from_slice(&body).unwrap())
}

/// A request with these fields beside the ones that it must have.
fn with(fields: &Value) -> Result<Value, BadRequest> {
    let request = with_fields(json!({"model": "m", "input": "hi"}), fields);
    chat(&request)
}

#[test]
fn the_least_request() {
    assert_eq!(
        with(&json!({})).unwrap(),
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": false})
    );
}

#[test]
fn a_request_of_codex() {
    let request = json!({
        "model": "qwen3", "instructions": "You are Codex.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
        ],
        "tools": [
            {"type": "function", "name": "exec_command", "description": "Runs.", "strict": false, "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}}},
            {"type": "custom", "name": "apply_patch", "description": "Patches.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
            {"type": "namespace", "name": "mcp__fs", "description": "Files.", "tools": [{"type": "function", "name": "read", "description": "", "strict": false, "parameters": {"type": "object"}}]},
            {"type": "web_search", "external_web_access": false},
            {"type": "tool_search", "execution": "client", "description": "d", "parameters": {"type": "object"}},
        ],
        "tool_choice": "auto", "parallel_tool_calls": true,
        "reasoning": {"effort": "xhigh", "summary": "auto"},
        "store": false, "stream": true, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "019", "text": {"verbosity": "low"}, "client_metadata": {"x": "y"},
    });
    let chat = chat(&request).unwrap();
    let names: Vec<&Value> =
        chat["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["exec_command", "apply_patch", "mcp__fs__read"]);
    let mut rest = chat.as_object().unwrap().clone();
    rest.remove("tools");
    assert_eq!(
        Value::Object(rest),
        json!({
            "model": "qwen3",
            "messages": [{"role": "system", "content": "You are Codex.\n\n<permissions>"}, {"role": "user", "content": "list the files"}],
            "tool_choice": "auto", "parallel_tool_calls": true, "reasoning_effort": "high",
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn parameters_are_carried_under_their_chat_names() {
    let cases = [
        (json!({"max_output_tokens": 7}), "max_tokens", json!(7)),
        (json!({"temperature": 0.5}), "temperature", json!(0.5)),
        (json!({"top_p": 1}), "top_p", json!(1)),
        (json!({"user": "u"}), "user", json!("u")),
        (json!({"reasoning": {"effort": "minimal"}}), "reasoning_effort", json!("low")),
        (json!({"reasoning": {"effort": "none"}}), "reasoning_effort", json!("none")),
        (json!({"reasoning": {"effort": null}}), "reasoning_effort", Value::Null),
        (json!({"text": {"format": {"type": "text"}}}), "response_format", Value::Null),
        (
            json!({"text": {"format": {"type": "json_object"}}}),
            "response_format",
            json!({"type": "json_object"}),
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}}}),
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}}),
        ),
    ];
    for (fields, name, value) in cases {
        assert_eq!(with(&fields).unwrap()[name], value, "{fields}");
    }
}

#[test]
fn a_tool_may_be_chosen() {
    let tools = json!([{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}, {"type": "web_search"}]);
    let chosen = |choice: &Value| with(&json!({"tools": tools, "tool_choice": choice}));
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    for (choice, expected) in [
        (json!("none"), json!("none")),
        (json!("required"), json!("required")),
        (json!({"type": "function", "name": "f"}), function("f")),
        (json!({"type": "custom", "name": "c"}), function("c")),
    ] {
        assert_eq!(chosen(&choice).unwrap()["tool_choice"], expected);
    }
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]});
    let allowed = chosen(&allowed).unwrap();
    assert_eq!(allowed["tool_choice"], "required");
    assert_eq!(allowed["tools"].as_array().unwrap().len(), 1);
    for refused in [
        json!("always"),
        json!({"type": "web_search"}),
        json!({"type": "function", "name": "other"}),
        json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "other"}]}),
        json!(7),
    ] {
        let error = chosen(&refused).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("tool_choice"), "{refused}");
    }
}

#[test]
fn without_tools_nothing_is_said_of_them() {
    let hosted = json!({"tools": [{"type": "web_search"}], "tool_choice": "auto", "parallel_tool_calls": true});
    let chat = with(&hosted).unwrap();
    assert!(
        ["tools", "tool_choice", "parallel_tool_calls"].iter().all(|name| chat.get(name).is_none())
    );
    let forced = json!({"tools": [{"type": "web_search"}], "tool_choice": "required"});
    assert_eq!(with(&forced).unwrap_err().param.as_deref(), Some("tool_choice"));
}

#[test]
fn tools_among_the_items_are_offered() {
    let input = json!([
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "late"}]},
        {"role": "user", "content": "hi"},
    ]);
    assert_eq!(with(&json!({"input": input})).unwrap()["tools"][0]["function"]["name"], "late");
}

#[test]
fn requests_that_need_a_store_are_refused() {
    for (name, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!({"id": "conv_1"})),
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
        ("moderation", json!({"model": "m"})),
    ] {
        let refused = with(&json!({name: value})).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some(name));
        assert!(refused.message.contains(name), "{refused}");
        assert!(with(&json!({name: null})).is_ok());
    }
    assert!(with(&json!({"background": false, "store": true})).is_ok());
}

#[test]
fn other_faults_are_named() {
    for (fields, param) in [
        (json!({"text": {"format": {"type": "xml"}}}), Some("text.format.type")),
        (json!({"text": {"format": {"type": "json_schema"}}}), Some("text.format.schema")),
        (json!({"tools": [{"type": "local_shell"}]}), Some("tools[0].type")),
        (json!({"tools": [7]}), Some("tools[0]")),
        (json!({"max_output_tokens": "many"}), Some("max_output_tokens")),
        (json!({"tools": {}}), Some("tools")),
        (json!({"text": {"format": 5}}), Some("text.format")),
        (
            json!({"text": {"format": {"type": "json_schema", "schema": "x"}}}),
            Some("text.format.schema"),
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "parameters": "x"}]}),
            Some("tools[0].parameters"),
        ),
        (json!({"input": null}), Some("input")),
    ] {
        assert_eq!(with(&fields).unwrap_err().param.as_deref(), param, "{fields}");
    }
}
