//! Requests in the provider's shape.

use proptest::prelude::*;
use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::context;
use crate::kit::with_fields;

fn request(given: &Value) -> Result<Value, BadRequest> {
    let body = super::super::request(given.to_string().as_bytes(), &context(false))?;
    Ok(serde_json::from_slice(&body).unwrap())
}

/// A request with these fields beside a model and a message.
fn with(fields: &Value) -> Value {
    let least =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    with_fields(least, fields)
}

fn messages(of: &Value) -> Value {
    request(&with(&json!({"messages": of}))).unwrap()["messages"].clone()
}

/// The parameter that is named when these fields are refused.
fn refused(fields: &Value) -> String {
    let error = request(&with(fields)).unwrap_err();
    let param = error.param.unwrap();
    assert!(error.message.contains(&format!("`{param}`")), "{}", error.message);
    param
}

fn refused_content(content: &Value) -> String {
    refused(&json!({"messages": [{"role": "user", "content": content}]}))
}

#[test]
fn parameters_are_carried() {
    let given = with(&json!({
        "system": "Be brief.", "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stream": true,
        "stop_sequences": ["END"], "metadata": {"user_id": "u"},
    }));
    let expected = json!({
        "model": "m", "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 40,
        "stop": ["END"], "user": "u", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    });
    assert_eq!(request(&given).unwrap(), expected);
}

#[test]
fn fields_without_effect_are_dropped() {
    let harmless = json!({
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "service_tier": "auto",
        "context_management": {"edits": []}, "container": "c", "mcp_servers": [],
        "output_config": {"effort": "high"}, "stop_sequences": [], "tools": [],
        "cache_control": {"type": "ephemeral"}, "of_tomorrow": 1,
    });
    assert_eq!(request(&with(&harmless)).unwrap(), request(&with(&json!({}))).unwrap());
}

#[test]
fn a_system_prompt_of_blocks_is_one_text_without_what_is_for_billing() {
    let given = with(&json!({"system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=1;"},
        {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Two."}]}));
    let expected = json!({"role": "system", "content": "One.\nTwo."});
    assert_eq!(request(&given).unwrap()["messages"][0], expected);
}

#[test]
fn instructions_in_the_middle_go_with_what_the_user_says() {
    let picture =
        json!({"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}});
    let given = with(&json!({"system": "One.", "messages": [
        {"role": "system", "content": "Two."},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": [{"type": "text", "text": "Three."}]},
        {"role": "assistant", "content": "Ho"},
        {"role": "system", "content": "Four."},
        {"role": "user", "content": [picture]},
        {"role": "system", "content": "Five."}]}));
    let marked = |text: &str| format!("<system-reminder>\n{text}\n</system-reminder>");
    let expected = json!([
        {"role": "system", "content": "One.\n\nTwo."},
        {"role": "user", "content": format!("Hi\n\n{}", marked("Three."))},
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": marked("Four.")},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}},
            {"type": "text", "text": marked("Five.")}]},
    ]);
    assert_eq!(request(&given).unwrap()["messages"], expected);
}

#[test]
fn pictures_are_data_urls_or_addresses() {
    let content = json!([
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}}]);
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]}]);
    assert_eq!(messages(&json!([{"role": "user", "content": content}])), expected);
}

#[test]
fn documents_of_text_are_text() {
    let content = json!([
        {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "D"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "E"}]}},
        {"type": "search_result", "title": "S", "source": "x", "content": [{"type": "text", "text": "F"}]}]);
    let expected = json!([{"role": "user", "content": "T\nD\nE\nS\nF"}]);
    assert_eq!(messages(&json!([{"role": "user", "content": content}])), expected);
}

#[test]
fn a_round_of_tools_keeps_its_order() {
    let given = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "I "}, {"type": "text", "text": "look."},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"z": 1, "a": {"y": 2}}},
            {"type": "tool_use", "id": "b", "name": "g", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true,
                "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
            {"type": "text", "text": "Go on."}]},
    ]);
    let body = super::super::request(
        with(&json!({"messages": given})).to_string().as_bytes(),
        &context(false),
    );
    let body = String::from_utf8(body.unwrap()).unwrap();
    let written: Value = serde_json::from_str(&body).unwrap();
    let expected = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"a\":{\"y\":2},\"z\":1}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: two\nthree"},
        {"role": "user", "content": "Go on."},
    ]);
    assert_eq!(written["messages"], expected);
}

#[test]
fn schemas_and_inputs_keep_their_bytes() {
    let schema = r#"{"type": "object", "properties": {"z": {}, "a": {}}}"#;
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{"z":1, "a":2}}}}]}}],"tools":[{{"name":"f","input_schema":{schema}}}]}}"#
    );
    let written = super::super::request(body.as_bytes(), &context(false)).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(&format!(r#""parameters":{schema}"#)), "{written}");
    assert!(written.contains(r#""arguments":"{\"z\":1, \"a\":2}""#), "{written}");
}

#[test]
fn pictures_of_a_result_follow_it() {
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let calls = json!({"role": "assistant", "content": [used("a"), used("b")]});
    let results = [
        json!({"type": "tool_result", "tool_use_id": "a", "content": [picture]}),
        json!({"type": "tool_result", "tool_use_id": "b"}),
    ];
    let url = json!({"url": "data:image/png;base64,AAAA"});
    let expected = json!([
        {"role": "tool", "tool_call_id": "a", "content": "The result is in the next message."},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": [{"type": "image_url", "image_url": url}]}]);
    let [first, second] = results.clone();
    let one = json!([calls, {"role": "user", "content": results}]);
    let two =
        json!([calls, {"role": "user", "content": [first]}, {"role": "user", "content": [second]}]);
    for given in [one, two] {
        let written = messages(&given);
        assert_eq!(&written.as_array().unwrap()[1..], expected.as_array().unwrap());
    }
}

#[test]
fn thoughts_alone_go_with_what_the_assistant_says_next() {
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": "s"});
    let written = messages(&json!([
        {"role": "assistant", "content": [thought("One.")]},
        {"role": "assistant", "content": [thought("Two."), {"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [thought("Lost.")]},
        {"role": "user", "content": "Ho"}]));
    let expected = json!([
        {"role": "assistant", "content": "Hi", "reasoning_content": "One.\n\nTwo."},
        {"role": "user", "content": "Ho"}]);
    assert_eq!(written, expected);
}

#[test]
fn traces_of_hosted_tools_are_left_out() {
    let traces = [
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]}),
        json!({"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"type": "web_fetch_tool_result_error"}}),
        json!({"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "1"}}),
        json!({"type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": {}}),
        json!({"type": "mcp_tool_result", "tool_use_id": "m", "is_error": false, "content": [{"type": "text", "text": "1"}]}),
        json!({"type": "container_upload", "file_id": "f"}),
    ];
    let said = json!({"type": "text", "text": "It is 1."});
    let with_words: Vec<Value> = traces.iter().cloned().chain([said]).collect();
    let written = messages(&json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": with_words},
        {"role": "assistant", "content": traces},
        {"role": "user", "content": [{"type": "compaction", "content": "Before."}, {"type": "text", "text": "Go on."}]}]));
    let expected = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "It is 1."},
        {"role": "user", "content": "Before.\nGo on."}]);
    assert_eq!(written, expected);
}

#[test]
fn ids_and_names_of_users_fit_into_openais_bounds() {
    let id = "x".repeat(70);
    let given = with(&json!({"metadata": {"user_id": id}, "messages": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r"}]}]}));
    let written = request(&given).unwrap();
    let call = &written["messages"][0]["tool_calls"][0]["id"];
    assert_eq!((call, call.as_str().unwrap().len()), (&written["messages"][1]["tool_call_id"], 40));
    assert_eq!(written["user"].as_str().unwrap().len(), 64);
}

#[test]
fn a_turn_of_calls_has_no_text_and_one_of_thoughts_is_none() {
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    let written = messages(&json!([
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [call]},
        {"role": "assistant", "content": [thought]}]));
    assert_eq!(written.as_array().unwrap().len(), 2);
    assert_eq!((&written[0]["content"], &written[1]["content"]), (&json!(""), &json!(null)));
}

#[test]
fn tools_are_functions() {
    let given = with(&json!({"tools": [
        {"name": "f", "description": "Does.", "input_schema": {"type": "object"}, "cache_control": {}},
        {"type": "custom", "name": "g", "input_schema": {"type": "object"}, "strict": true},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}]}));
    let expected = json!([
        {"type": "function", "function": {"name": "f", "description": "Does.", "parameters": {"type": "object", "properties": {}}}},
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}, "strict": true}}]);
    assert_eq!(request(&given).unwrap()["tools"], expected);
}

#[test]
fn a_choice_of_tools_is_carried() {
    let choice = |choice: Value| {
        let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        let written = request(&with(&json!({"tools": tools, "tool_choice": choice}))).unwrap();
        (written["tool_choice"].clone(), written["parallel_tool_calls"].clone())
    };
    let none = Value::Null;
    assert_eq!(choice(json!({"type": "auto"})), (json!("auto"), none.clone()));
    assert_eq!(choice(json!({"type": "any"})), (json!("required"), none.clone()));
    assert_eq!(choice(json!({"type": "none"})), (json!("none"), none.clone()));
    let one = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(choice(json!({"type": "tool", "name": "f"})), (one, none));
    let alone = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(choice(alone), (json!("auto"), json!(false)));
    let without = request(&with(&json!({"tool_choice": {"type": "auto"}}))).unwrap();
    assert_eq!(without.get("tool_choice"), None);
}

#[test]
fn a_schema_for_the_answer_is_carried_from_both_places() {
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    let expected = json!({"type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": true}});
    for fields in [json!({"output_format": format}), json!({"output_config": {"format": format}})] {
        assert_eq!(request(&with(&fields)).unwrap()["response_format"], expected);
    }
}

#[test]
fn unsupported_fields_are_named() {
    assert_eq!(refused(&json!({"messages": []})), "messages");
    assert_eq!(refused(&json!({"messages": null})), "messages");
    assert_eq!(refused(&json!({"messages": "Hi"})), "messages");
    assert_eq!(refused(&json!({"messages": [7]})), "messages[0]");
    assert_eq!(
        refused(&json!({"messages": [{"role": "robot", "content": "x"}]})),
        "messages[0].role"
    );
    assert_eq!(refused(&json!({"messages": [{"role": "user"}]})), "messages[0].content");
    assert_eq!(refused(&json!({"model": 7})), "model");
    assert_eq!(refused(&json!({"max_tokens": "many"})), "max_tokens");
    assert_eq!(refused(&json!({"mcp_servers": [{"url": "x"}]})), "mcp_servers");
    assert_eq!(
        refused(&json!({"output_format": {"type": "xml", "schema": {}}})),
        "output_format.type"
    );
    let search = json!([{"name": "f"}, {"type": "web_search_20250305", "name": "web_search"}]);
    assert_eq!(refused(&json!({"tools": search})), "tools[1]");
    assert_eq!(refused(&json!({"tools": [{"name": ""}]})), "tools[0].name");
    assert_eq!(
        refused(&json!({"tools": [{"name": "f", "input_schema": 7}]})),
        "tools[0].input_schema"
    );
    assert_eq!(refused(&json!({"tool_choice": {"type": "any"}})), "tool_choice");
    let tools = json!([{"name": "f"}]);
    assert_eq!(
        refused(&json!({"tools": tools, "tool_choice": {"type": "all"}})),
        "tool_choice.type"
    );
    assert_eq!(
        refused(&json!({"tools": tools, "tool_choice": {"type": "tool"}})),
        "tool_choice.name"
    );
    assert_eq!(
        refused(&json!({"tools": tools, "tool_choice": {"type": "tool", "name": "other"}})),
        "tool_choice.name"
    );
}

#[test]
fn content_that_cannot_be_carried_is_named_by_its_place() {
    let text = json!({"type": "text", "text": "x"});
    let pdf = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A"}});
    assert_eq!(refused_content(&json!([text, pdf])), "messages[0].content[1]");
    assert_eq!(refused_content(&json!([{"type": "hologram"}])), "messages[0].content[0]");
    assert_eq!(refused_content(&json!([{"type": "text"}])), "messages[0].content[0].text");
    assert_eq!(refused_content(&json!({"a": 1})), "messages[0].content");
    let file = json!({"type": "image", "source": {"type": "file", "file_id": "x"}});
    assert_eq!(refused_content(&json!([file])), "messages[0].content[0].source.type");
    let nested = json!([{"type": "tool_result", "tool_use_id": "a", "content": [pdf]}]);
    assert_eq!(refused_content(&nested), "messages[0].content[0].content[0]");
    let deeper =
        json!([{"type": "search_result", "content": [{"type": "search_result", "content": []}]}]);
    assert_eq!(refused_content(&deeper), "messages[0].content[0].content[0]");
    let picture = json!({"type": "image", "source": {"type": "url", "url": "x"}});
    let said = json!({"messages": [{"role": "assistant", "content": [picture]}]});
    assert_eq!(refused(&said), "messages[0].content");
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": [1]});
    let called = json!({"messages": [{"role": "assistant", "content": [call]}]});
    assert_eq!(refused(&called), "messages[0].content[0].input");
}

proptest! {
    #[test]
    fn deep_blocks_are_no_deep_calls(depth in 1usize..3000) {
        let open = r#"{"type":"search_result","content":["#.repeat(depth);
        let close = "]}".repeat(depth);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{open}{close}]}}]}}"#);
        let refused = super::super::request(body.as_bytes(), &context(false));
        prop_assert_eq!(refused.is_err(), depth > 1);
    }
}
