//! Requests and answers of Gemini's clients.

use serde_json::{Value, json};

use super::*;
use crate::{
    answer::Body,
    kit::{answered, delta, with_fields},
};

fn context(streaming: bool) -> Context {
    Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming }
}

fn made(given: &Value) -> Value {
    let whole = with_fields(json!({"model": "m", "stream": false}), given);
    let made = request(whole.to_string().as_bytes(), &context(false));
    serde_json::from_slice(&made.unwrap_or_else(|bad| panic!("{whole}: {bad}"))).unwrap()
}

fn refused(given: &Value) -> (String, String) {
    let said = json!({"model": "m", "stream": false, "contents": [text("user", "Hi")]});
    let whole = with_fields(said, given);
    let bad = request(whole.to_string().as_bytes(), &context(false)).unwrap_err();
    (bad.param.unwrap_or_default(), bad.message)
}

fn text(role: &str, text: &str) -> Value {
    json!({"role": role, "parts": [{"text": text}]})
}

fn messages(contents: &Value) -> Value {
    made(&json!({"contents": contents}))["messages"].clone()
}

#[test]
fn contents_and_settings_are_carried_in_both_spellings() {
    let config = json!({"temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 7,
        "stopSequences": ["X"], "seed": 3, "presencePenalty": 1, "frequencyPenalty": -1,
        "candidateCount": 1, "responseMimeType": "text/plain", "thinkingConfig": {"thinkingBudget": 0}});
    let camel = json!({"contents": [text("user", "Hi")], "systemInstruction": text("user", "Be brief."),
        "generationConfig": config, "safetySettings": [{"category": "X", "threshold": "BLOCK_NONE"}]});
    let snake = json!({"contents": text("user", "Hi"), "system_instruction": {"parts": {"text": "Be brief."}},
        "generation_config": {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "max_output_tokens": 7,
        "stop_sequences": ["X"], "seed": 3, "presence_penalty": 1, "frequency_penalty": -1}});
    let expected = json!({"model": "m", "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop": ["X"], "seed": 3,
        "presence_penalty": 1, "frequency_penalty": -1, "stream": false});
    assert_eq!(made(&camel), expected);
    assert_eq!(made(&snake), expected);
}

#[test]
fn an_aliass_defaults_count_where_the_request_says_nothing() {
    let given = json!({"contents": [text("user", "Hi")], "temperature": 0.1, "max_tokens": 9,
        "generationConfig": {"temperature": 0.5}});
    let made = made(&given);
    assert_eq!((&made["temperature"], &made["max_tokens"]), (&json!(0.5), &json!(9)));
}

#[test]
fn calls_without_ids_get_them_and_their_results_too() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {"a": 1}}});
    let result = |name: &str, response: Value| json!({"functionResponse": {"name": name, "response": response}});
    let contents = json!([
        text("user", "Hi"),
        {"role": "model", "parts": [{"text": "I look."}, call("f"), call("g"), call("f")]},
        {"role": "user", "parts": [
            result("g", json!({"output": "of g"})), result("f", json!({"error": "gone"})),
            result("f", json!({"output": 1, "more": 2})), {"text": "And?"}]},
    ]);
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"a\":1}"}});
    let expected = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "I look.",
            "tool_calls": [call("call_1_1", "f"), call("call_1_2", "g"), call("call_1_3", "f")]},
        {"role": "tool", "content": "Error: gone", "tool_call_id": "call_1_1"},
        {"role": "tool", "content": "of g", "tool_call_id": "call_1_2"},
        {"role": "tool", "content": "{\"more\":2,\"output\":1}", "tool_call_id": "call_1_3"},
        {"role": "user", "content": "And?"},
    ]);
    assert_eq!(messages(&contents), expected);
}

#[test]
fn ids_decide_and_a_result_of_nobodys_is_the_users_words() {
    let contents = json!([
        text("user", "Hi"),
        {"role": "model", "parts": [
            {"functionCall": {"id": "one", "name": "f"}}, {"function_call": {"id": "two", "name": "f", "args": null}}]},
        {"role": "function", "parts": [
            {"functionResponse": {"id": "two", "name": "f", "response": {"output": "2"}}},
            {"function_response": {"id": "one", "name": "f", "response": {"output": {"n": 1}}}},
            {"functionResponse": {"name": "h", "response": {"output": "?"}}}]},
    ]);
    let made = messages(&contents);
    let said =
        |at: usize| (made[at]["role"].as_str().unwrap(), made[at]["content"].as_str().unwrap());
    assert_eq!([said(2), said(3), said(4)], [("tool", "{\"n\":1}"), ("tool", "2"), ("user", "?")]);
    assert_eq!(made[1]["tool_calls"][1]["function"]["arguments"], "{}");
}

#[test]
fn files_become_what_model_servers_read() {
    let blob = |kind: &str, data: &str| json!({"inlineData": {"mimeType": kind, "data": data}});
    let contents = json!([{"parts": [
        {"text": "See"}, blob("image/jpg", "_-8"), blob("audio/mpeg", "AAAA"),
        blob("application/pdf", "AAAA"), blob("text/csv", "YSxi"),
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x/a.png"}},
    ]}]);
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/+8="}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "text", "text": "a,b"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
    ]}]);
    assert_eq!(messages(&contents), expected);
}

#[test]
fn pictures_of_results_follow_them() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let contents = json!([
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "there"}, "parts": [picture]}}]},
    ]);
    let made = messages(&contents);
    assert_eq!((&made[1]["role"], &made[2]["role"]), (&json!("tool"), &json!("user")));
    assert_eq!(made[2]["content"][0]["type"], "image_url");
}

#[test]
fn thoughts_go_along_and_traces_of_googles_tools_do_not() {
    let contents = json!([
        text("user", "Hi"),
        {"role": "model", "parts": [
            {"text": "Hm.", "thought": true, "thoughtSignature": "c29tZSBvdGhlcg=="},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "So."}, {"thoughtSignature": "eA=="}]},
    ]);
    let expected = json!({"role": "assistant", "content": "So.", "reasoning_content": "Hm."});
    assert_eq!(messages(&contents)[1], expected);
}

#[test]
fn functions_get_schemas_that_everybody_reads() {
    let tools = json!([{"functionDeclarations": [
        {"name": "f", "description": "Does f.", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            "response": {"type": "STRING"}, "behavior": "BLOCKING"},
        {"name": "g", "parametersJsonSchema": {"type": "object", "properties": {}, "additionalProperties": false}},
        {"name": "h"},
    ]}, {"functionDeclarations": {"name": "i", "parameters": null}}]);
    let made = made(&json!({"contents": [text("user", "Hi")], "tools": tools}));
    let function = |at: usize| &made["tools"][at]["function"];
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(
        function(0)["parameters"],
        json!({"type": "object", "properties": {"a": {"type": "string"}}})
    );
    assert_eq!(function(1)["parameters"]["additionalProperties"], false);
    assert_eq!((&function(2)["parameters"], &function(3)["parameters"]), (&empty, &empty));
    assert_eq!(made.get("tool_choice"), None);
}

#[test]
fn the_choice_of_tools_is_carried() {
    let tools = json!([{"functionDeclarations": [{"name": "f"}, {"name": "g"}, {"name": "h"}]}]);
    let chosen = |config: Value| {
        let config = json!({"functionCallingConfig": config});
        let made =
            made(&json!({"contents": [text("user", "Hi")], "tools": tools, "toolConfig": config}));
        (made["tool_choice"].clone(), made["tools"].as_array().unwrap().len())
    };
    let forced = json!({"type": "function", "function": {"name": "g"}});
    for (config, choice, offered) in [
        (json!({"mode": "AUTO"}), json!("auto"), 3),
        (json!({"mode": "NONE"}), json!("none"), 3),
        (json!({"mode": "ANY"}), json!("required"), 3),
        (json!({"mode": "ANY", "allowedFunctionNames": ["g"]}), forced, 1),
        (json!({"mode": "ANY", "allowed_function_names": ["g", "h"]}), json!("required"), 2),
        (json!({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}), json!("auto"), 1),
        (json!({}), Value::Null, 3),
    ] {
        assert_eq!(chosen(config.clone()), (choice, offered), "{config}");
    }
}

#[test]
fn an_answers_form_is_carried() {
    let form = |config: Value| {
        made(&json!({"contents": [text("user", "Hi")], "generationConfig": config}))["response_format"].clone()
    };
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let expected =
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    let googles = json!({"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}});
    for config in [
        json!({"responseMimeType": "application/json", "responseSchema": googles}),
        json!({"responseSchema": googles}),
        json!({"response_mime_type": "application/json", "response_json_schema": schema}),
    ] {
        assert_eq!(form(config.clone()), expected, "{config}");
    }
    assert_eq!(
        form(json!({"responseMimeType": "application/json"})),
        json!({"type": "json_object"})
    );
    assert_eq!(form(json!({"responseMimeType": "text/plain"})), Value::Null);
}

#[test]
fn what_cannot_be_carried_is_refused_by_name() {
    let part = |part: Value| json!({"contents": [{"role": "user", "parts": [part]}]});
    let blob =
        |kind: &str, data: &str| part(json!({"inlineData": {"mimeType": kind, "data": data}}));
    let config = |name: &str, value: Value| json!({"generationConfig": {name: value}});
    let tool = |name: &str| json!({"tools": [{name: {}}]});
    for (given, param) in [
        (json!({"contents": null}), "contents"),
        (json!({"contents": []}), "contents"),
        (json!({"contents": "Hi"}), "contents"),
        (json!({"contents": [{"role": "king", "parts": []}]}), "contents[0].role"),
        (json!({"contents": [{"parts": [7]}]}), "contents[0].parts[0]"),
        (part(json!({})), "contents[0].parts[0]"),
        (part(json!({"text": 7})), "contents[0].parts[0].text"),
        (blob("image/png", "not base64!"), "contents[0].parts[0].inlineData.data"),
        (blob("text/plain", "%"), "contents[0].parts[0].inlineData.data"),
        (blob("video/mp4", "AAAA"), "contents[0].parts[0].inlineData.mimeType"),
        (part(json!({"fileData": {"fileUri": "gs://a/b"}})), "contents[0].parts[0].fileData"),
        (
            part(json!({"functionResponse": {"name": "f", "response": "x"}})),
            "contents[0].parts[0].functionResponse.response",
        ),
        (part(json!({"functionCall": {"name": "f"}})), "contents[0].parts[0]"),
        (
            json!({"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": []}}]}]}),
            "contents[0].parts[0].functionCall.args",
        ),
        (json!({"cachedContent": "cachedContents/1"}), "cachedContent"),
        (config("candidateCount", json!(2)), "generationConfig.candidateCount"),
        (config("responseLogprobs", json!(true)), "generationConfig.responseLogprobs"),
        (config("logprobs", json!(3)), "generationConfig.logprobs"),
        (
            config("responseModalities", json!(["TEXT", "IMAGE"])),
            "generationConfig.responseModalities",
        ),
        (config("speechConfig", json!({"voiceConfig": {}})), "generationConfig.speechConfig"),
        (config("responseMimeType", json!("text/x.enum")), "generationConfig.responseMimeType"),
        (config("responseSchema", json!([])), "generationConfig.responseSchema"),
        (config("maxOutputTokens", json!(-1)), "generationConfig.maxOutputTokens"),
        (config("temperature", json!("hot")), "generationConfig.temperature"),
        (
            config("thinkingConfig", json!({"includeThoughts": 1})),
            "generationConfig.thinkingConfig.includeThoughts",
        ),
        (config("stopSequences", json!("x")), "generationConfig.stopSequences"),
        (tool("googleSearch"), "tools[0].googleSearch"),
        (tool("code_execution"), "tools[0].codeExecution"),
        (tool("urlContext"), "tools[0].urlContext"),
        (
            json!({"tools": [{"functionDeclarations": [{"name": ""}]}]}),
            "tools[0].functionDeclarations[0].name",
        ),
        (
            json!({"tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]}),
            "tools[0].functionDeclarations[0].parameters",
        ),
        (
            json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
            "toolConfig.functionCallingConfig.mode",
        ),
        (
            json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}}),
            "toolConfig.functionCallingConfig.allowedFunctionNames",
        ),
    ] {
        let (actual, message) = refused(&given);
        assert_eq!(actual, param, "{given}: {message}");
        assert!(message.contains('`'), "{message}");
    }
}

/// The answer to a client for a stream of these deltas.
fn streamed(given: &Value, deltas: &[Value], end: &str) -> Vec<Value> {
    let body = given.to_string();
    let events: String = deltas.iter().map(|it| format!("data: {}\n\n", delta(it))).collect();
    let whole = format!("{events}{end}");
    let pieces: Vec<&[u8]> = whole.as_bytes().chunks(7).collect();
    let out =
        answered(answer(&context(true), body.as_bytes()), 200, Body::Events, &pieces).unwrap();
    if given["alt"] == "json" {
        return serde_json::from_str(&out).unwrap_or_else(|bad| panic!("{out}: {bad}"));
    }
    let events = out.strip_suffix("\r\n\r\n").unwrap().split("\r\n\r\n");
    events.map(|it| serde_json::from_str(it.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\
    \"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":2},\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\n\
    data: [DONE]\n\n";

fn parts(answers: &[Value]) -> Vec<Value> {
    answers.iter().map(|it| it["candidates"][0]["content"]["parts"][0].clone()).collect()
}

#[test]
fn a_stream_has_the_same_elements_as_events_and_as_an_array() {
    let deltas = [
        json!({"reasoning_content": "Hm."}),
        json!({"content": "A \"b\""}),
        json!({"content": "c"}),
    ];
    let events = streamed(&json!({}), &deltas, STOP);
    assert_eq!(streamed(&json!({"alt": "json"}), &deltas, STOP), events);
    assert_eq!(
        parts(&events),
        [json!({"text": "A \"b\""}), json!({"text": "c"}), json!({"text": ""})]
    );
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(
        last["usageMetadata"],
        json!({"promptTokenCount": 5, "candidatesTokenCount": 4, "totalTokenCount": 12,
            "cachedContentTokenCount": 2, "thoughtsTokenCount": 3})
    );
    let first = &events[0];
    assert_eq!(
        (&first["modelVersion"], &first["responseId"]),
        (&json!("m"), &json!("0".repeat(32)))
    );
    assert_eq!(first["candidates"][0]["content"]["role"], "model");
}

#[test]
fn thoughts_come_when_they_are_asked_for() {
    let given = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}});
    let deltas = [json!({"reasoning_content": "Hm."}), json!({"content": "So."})];
    let all = parts(&streamed(&given, &deltas, STOP));
    assert_eq!(all[..2], [json!({"text": "Hm.", "thought": true}), json!({"text": "So."})]);
}

#[test]
fn calls_come_whole_with_what_their_provider_wants_back() {
    let call = |index: u64, arguments: &str, more: Value| {
        let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": arguments}});
        json!({"tool_calls": [with_fields(call, &more)]})
    };
    let detail =
        json!({"type": "reasoning.text", "signature": "s", "format": "anthropic-claude-v1"});
    let deltas = [
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}),
        json!({"reasoning_details": [detail]}),
        call(0, "{\"a\":", json!({})),
        call(0, "1}", json!({})),
        call(1, "{}", json!({"extra_content": {"google": {"thought_signature": "g"}}})),
        call(2, "[1", json!({})),
    ];
    let answers = streamed(&json!({}), &deltas, STOP);
    let all = parts(&answers);
    assert_eq!(all[0]["functionCall"], json!({"id": "c0", "name": "f", "args": {"a": 1}}));
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(answers[2]["candidates"][0]["finishReason"], "MALFORMED_FUNCTION_CALL");

    let contents = json!([text("user", "Hi"), {"role": "model", "parts": all}]);
    let back = messages(&contents);
    let signed = with_fields(detail, &json!({"text": "Hm."}));
    assert_eq!(back[1]["reasoning_details"], json!([signed]));
    assert_eq!(back[1]["tool_calls"][0].get("extra_content"), None);
    assert_eq!(
        back[1]["tool_calls"][1]["extra_content"],
        json!({"google": {"thought_signature": "g"}})
    );
}

#[test]
fn a_stream_that_breaks_off_is_still_whole() {
    let error = "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    for (given, before) in
        [(json!({}), 1), (json!({"alt": "json"}), 1), (json!({"alt": "json"}), 0)]
    {
        let deltas = vec![json!({"content": "a"}); before];
        let answers = streamed(&given, &deltas, error);
        assert_eq!(answers.len(), before + 1);
        assert_eq!(answers[before]["error"]["message"], "out of memory");
    }
}

#[test]
fn an_answer_in_one_piece_has_all_of_it() {
    let whole = json!({"choices": [{"finish_reason": "length", "message": {
        "content": "So.", "reasoning_content": "Hm.",
        "tool_calls": [{"id": "", "function": {"name": "f", "arguments": ""}}]}}], "usage": {"prompt_tokens": 1}});
    let answer_to = |given: &Value| -> Value {
        let map = answer(&context(false), given.to_string().as_bytes());
        let out = answered(map, 200, Body::Json, &[whole.to_string().as_bytes()]).unwrap();
        serde_json::from_str(&out).unwrap()
    };
    let call = json!({"functionCall": {"id": format!("call_{}_0", "0".repeat(32)), "name": "f", "args": {}}});
    let plain = answer_to(&json!({}));
    assert_eq!(
        plain["candidates"][0]["content"],
        json!({"role": "model", "parts": [{"text": "So."}, call]})
    );
    assert_eq!(plain["candidates"][0]["finishReason"], "MAX_TOKENS");
    let given = json!({"generation_config": {"thinking_config": {"include_thoughts": true}}});
    let thought = json!({"text": "Hm.", "thought": true});
    assert_eq!(answer_to(&given)["candidates"][0]["content"]["parts"][0], thought);
}

#[test]
fn an_error_of_the_backend_is_told_in_googles_form() {
    let error_of = |status: u16, error: Value| -> Value {
        let map = answer(&context(false), b"{}");
        let out = answered(map, status, Body::Json, &[error.to_string().as_bytes()]).unwrap();
        serde_json::from_str::<Value>(&out).unwrap()["error"].clone()
    };
    let busy = error_of(429, json!({"error": {"message": "slow down"}}));
    assert_eq!((&busy["code"], &busy["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    let long = error_of(
        400,
        json!({"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 4096, "n_prompt_tokens": 9000}}),
    );
    assert_eq!(
        long["message"],
        "The input token count (9000) exceeds the maximum number of tokens allowed (4096)."
    );
}
