//! The bodies for providers that go on.

use base::{Continuation, Endpoint};
use serde_json::{Value, json};

use super::{
    super::{CannotContinue, Delivered, Rest, Seam, endpoint, may_continue, request, translated},
    streams::Said,
};
use crate::{Context, answer::Answer};

use Continuation::{FinalMessage, LastMessage};
use Endpoint::{ChatCompletions, Completions, Messages, Responses};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The delivered part when an answer with these thoughts and these words is cut before its last event that is about them.
fn delivered(endpoint: Endpoint, thoughts: &[&str], text: &[&str]) -> Delivered {
    let said = Said {
        id: "first",
        before: Default::default(),
        thoughts: words(thoughts),
        words: words(text),
        prompt: 9,
        numbered: true,
    };
    let events = said.events(endpoint);
    let last = text.last().or(thoughts.last());
    let last = last.map(|last| serde_json::to_string(last).unwrap());
    let is_last = |event: &&String| last.as_ref().is_some_and(|last| event.contains(last));
    let until = events.iter().position(|event| is_last(&event)).map_or(1, |at| at + 1);
    let mut delivered = Delivered::new(endpoint).unwrap();
    delivered.feed(events[..until].concat().as_bytes(), &mut Vec::new());
    assert_eq!(delivered.rest(), Rest::Text);
    delivered
}

fn sent(endpoint: Endpoint, body: &str, delivered: &mut Delivered, how: Continuation) -> String {
    String::from_utf8(request(endpoint, body.as_bytes(), delivered, how).unwrap()).unwrap()
}

#[test]
fn the_beginning_comes_last_and_all_other_bytes_stay() {
    let chat = r#"{ "model":"m","x":1.50, "messages": [ {"role":"user","content":"\u0068i"} ],"stream":true,"max_tokens": 9,"stop":["a"],"seed":7}"#;
    let mut begun = delivered(ChatCompletions, &[], &["You", " \"said\"\n"]);
    assert_eq!(
        sent(ChatCompletions, chat, &mut begun, LastMessage),
        r#"{ "model":"m","x":1.50, "messages": [ {"role":"user","content":"\u0068i"} ,{"role":"assistant","content":"You \"said\"\n"}],"stream":true,"max_tokens": 7,"stop":["a"],"seed":7}"#
    );
    assert_eq!(
        sent(ChatCompletions, chat, &mut begun, FinalMessage),
        r#"{ "model":"m","x":1.50, "messages": [ {"role":"user","content":"\u0068i"} ,{"role":"assistant","content":"You \"said\"\n"}],"stream":true,"max_tokens": 7,"stop":["a"],"seed":7,"continue_final_message":true,"add_generation_prompt":false}"#
    );
    let text = r#"{"prompt":"a\tb","stream":true,"n_predict":-1,"min_tokens":1}"#;
    let mut begun = delivered(Completions, &[], &["You", " \"said\"\n"]);
    for how in [LastMessage, FinalMessage] {
        assert_eq!(
            sent(Completions, text, &mut begun, how),
            r#"{"prompt":"a\tbYou \"said\"\n","stream":true,"n_predict":-1,"min_tokens":0}"#
        );
    }
    let listed = r#"{"prompt":["a"],"stream":true}"#;
    assert_eq!(
        sent(Completions, listed, &mut begun, LastMessage),
        r#"{"prompt":["aYou \"said\"\n"],"stream":true}"#
    );
}

#[test]
fn thoughts_go_along_and_may_be_gone_on_with() {
    let chat = r#"{"messages":[],"stream":true}"#;
    let json = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let mut begun = delivered(ChatCompletions, &["hm", " so"], &["You"]);
    let last = json!({"role": "assistant", "content": "You", "reasoning_content": "hm so"});
    for how in [LastMessage, FinalMessage] {
        assert_eq!(json(sent(ChatCompletions, chat, &mut begun, how))["messages"], json!([last]));
    }
    let mut thinking = delivered(ChatCompletions, &["hm"], &[]);
    let last = json!({"role": "assistant", "content": "", "reasoning_content": "hm"});
    let body = json(sent(ChatCompletions, chat, &mut thinking, LastMessage));
    assert_eq!(body["messages"], json!([last]));
    let refused = request(ChatCompletions, chat.as_bytes(), &mut thinking, FinalMessage);
    assert_eq!(refused, Err(CannotContinue::Thoughts));

    let messages = r#"{"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":50}"#;
    let mut begun = delivered(Messages, &["hm"], &["You", " are"]);
    let body = json(sent(Messages, messages, &mut begun, LastMessage));
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    let text = json!({"type": "text", "text": "You are"});
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": [thinking, text]}));
    assert_eq!(body["max_tokens"], 47);

    let responses = r#"{"input":"hi","stream":true,"max_output_tokens":5}"#;
    let mut begun = delivered(Responses, &["hm"], &["You"]);
    let body = json(sent(Responses, responses, &mut begun, LastMessage));
    let input = &body["input"];
    assert_eq!(input[0], json!({"role": "user", "content": "hi"}));
    assert_eq!(
        (&input[1]["type"], &input[1]["content"][0]["text"]),
        (&json!("reasoning"), &json!("hm"))
    );
    assert_eq!(
        (&input[2]["role"], &input[2]["status"], &input[2]["content"][0]["text"]),
        (&json!("assistant"), &json!("in_progress"), &json!("You"))
    );
    assert_eq!(body["max_output_tokens"], 3);
    let listed = r#"{"input":[{"role":"user","content":"hi"}],"stream":true}"#;
    let listed = json(sent(Responses, listed, &mut begun, LastMessage));
    assert_eq!(listed["input"], *input);
}

/// The text after a message that was complete is another message; a request ends with one.
#[test]
fn two_messages_of_a_response_are_gone_on_with_as_one() {
    let said = |id, text: &[&str]| Said {
        id,
        before: Default::default(),
        thoughts: Vec::new(),
        words: words(text),
        prompt: 9,
        numbered: true,
    };
    let mut first = said("first", &["You"]).events(Responses);
    first.pop();
    let mut delivered = Delivered::new(Responses).unwrap();
    delivered.feed(first.concat().as_bytes(), &mut Vec::new());
    let mut seam = Seam::new(delivered);
    let second = said("second", &[" are", " here"]).events(Responses);
    seam.feed(second[..5].concat().as_bytes(), &mut Vec::new()).unwrap();
    let mut begun = seam.into_delivered();
    assert_eq!(begun.rest(), Rest::Text);
    let sent = sent(Responses, r#"{"input":[],"stream":true}"#, &mut begun, LastMessage);
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let input = sent["input"].as_array().unwrap();
    assert_eq!(input.len(), 1, "{sent}");
    assert_eq!(input[0]["content"][0]["text"], "You are");
}

/// A client may have begun the answer, too.
#[test]
fn a_beginning_of_the_clients_own_is_prolonged() {
    let json = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let chat = |content: &str, more: &str| {
        format!(
            r#"{{"messages":[{{"role":"assistant","content":{content}}}],"stream":true{more}}}"#
        )
    };
    let mut begun = delivered(ChatCompletions, &[], &["You"]);
    let mut last = |body: String, how| {
        let body = json(sent(ChatCompletions, &body, &mut begun, how));
        body["messages"].as_array().unwrap().last().unwrap()["content"].clone()
    };
    assert_eq!(last(chat(r#""Sure: ""#, ""), LastMessage), "Sure: You");
    let parts = r#"[{"type":"text","text":"Su"},{"type":"text","text":"re "}]"#;
    let both = json!([{"type": "text", "text": "Su"}, {"type": "text", "text": "re You"}]);
    assert_eq!(last(chat(parts, ""), LastMessage), both);
    assert_eq!(last(chat("[]", ""), LastMessage), json!([{"type": "text", "text": "You"}]));
    // Another kind goes on with it only where the client asked for that.
    assert_eq!(last(chat(r#""Sure: ""#, ""), FinalMessage), "You");
    let flags = r#","continue_final_message":true,"add_generation_prompt":false,"echo":true"#;
    let body = chat(r#""Sure: ""#, flags);
    assert_eq!(last(body.clone(), FinalMessage), "Sure: You");
    let body = json(sent(ChatCompletions, &body, &mut begun, FinalMessage));
    assert_eq!((&body["echo"], &body["continue_final_message"]), (&json!(false), &json!(true)));

    let mut begun = delivered(Messages, &[], &["You"]);
    let messages =
        r#"{"messages":[{"role":"assistant","content":"Sure: "}],"stream":true,"max_tokens":9}"#;
    let body = json(sent(Messages, messages, &mut begun, LastMessage));
    assert_eq!(body["messages"], json!([{"role": "assistant", "content": "Sure: You"}]));
    let mut begun = delivered(Responses, &[], &["You"]);
    let responses = br#"{"input":[{"role":"assistant","content":"Sure: "}],"stream":true}"#;
    let refused = request(Responses, responses, &mut begun, LastMessage);
    assert_eq!(refused, Err(CannotContinue::Asked("input")));
}

#[test]
fn a_prompt_that_was_repeated_is_not_sent_twice() {
    let echo = r#"{"prompt":"Say: ","echo":true,"stream":true}"#;
    let mut begun = delivered(Completions, &[], &["Say: ", "You"]);
    assert_eq!(
        sent(Completions, echo, &mut begun, LastMessage),
        r#"{"prompt":"Say: You","echo":false,"stream":true}"#
    );
    let mut other = delivered(Completions, &[], &["You"]);
    let refused = request(Completions, echo.as_bytes(), &mut other, LastMessage);
    assert_eq!(refused, Err(CannotContinue::Asked("echo")));
}

#[test]
fn an_answer_without_tokens_left_is_full() {
    for (endpoint, body) in [
        (ChatCompletions, r#"{"messages":[],"stream":true,"max_completion_tokens":2}"#),
        (Completions, r#"{"prompt":"a","stream":true,"max_tokens":1}"#),
        (Messages, r#"{"messages":[],"stream":true,"max_tokens":2}"#),
        (Responses, r#"{"input":"a","stream":true,"max_output_tokens":2}"#),
    ] {
        let mut begun = delivered(endpoint, &[], &["You", " are"]);
        let full = request(endpoint, body.as_bytes(), &mut begun, LastMessage);
        assert_eq!(full, Err(CannotContinue::Full), "{endpoint}");
        let none = body.replace(":2", ":null").replace(":1", ":-1");
        assert!(request(endpoint, none.as_bytes(), &mut begun, LastMessage).is_ok(), "{none}");
    }
}

#[test]
fn what_holds_for_an_answer_as_a_whole_is_not_continued() {
    let refused = |endpoint, field: &str| {
        let body = format!(r#"{{"messages":[],"prompt":"a","input":"a","stream":true,{field}}}"#);
        may_continue(endpoint, body.as_bytes()).err()
    };
    for (endpoint, field, name) in [
        (ChatCompletions, r#""logprobs":true"#, "logprobs"),
        (ChatCompletions, r#""response_format":{"type":"json_object"}"#, "response_format"),
        (ChatCompletions, r#""tool_choice":"required""#, "tool_choice"),
        (ChatCompletions, r#""guided_regex":"a""#, "guided_regex"),
        (ChatCompletions, r#""grammar":"root""#, "grammar"),
        (Completions, r#""logprobs":0"#, "logprobs"),
        (Completions, r#""suffix":"b""#, "suffix"),
        (Completions, r#""prompt ":1,"json_schema":{"a":1}"#, "json_schema"),
        (Messages, r#""tool_choice":{"type":"any"}"#, "tool_choice"),
        (Messages, r#""output_format":{"type":"json_schema"}"#, "output_format"),
        (Messages, r#""output_config":{"format":{"type":"json_schema"}}"#, "output_config"),
        (Responses, r#""text":{"format":{"type":"json_schema"}}"#, "text"),
        (Responses, r#""previous_response_id":"resp_1""#, "previous_response_id"),
        (Responses, r#""background":true"#, "background"),
    ] {
        assert_eq!(refused(endpoint, field), Some(CannotContinue::Asked(name)), "{field}");
    }
    for (endpoint, field) in [
        (
            ChatCompletions,
            r#""n":1,"logprobs":false,"response_format":{"type":"text"},"tool_choice":"auto""#,
        ),
        (ChatCompletions, r#""tools":[{"type":"function"}],"logit_bias":{},"audio":null"#),
        (Messages, r#""tool_choice":{"type":"auto"},"output_config":{"effort":"low"}"#),
        (
            Responses,
            r#""text":{"format":{"type":"text"},"verbosity":"low"},"top_logprobs":0,"store":true"#,
        ),
    ] {
        assert_eq!(refused(endpoint, field), None, "{field}");
    }
    assert_eq!(refused(ChatCompletions, r#""n":2"#), Some(CannotContinue::SeveralChoices));
    assert_eq!(refused(Completions, r#""best_of":3"#), Some(CannotContinue::SeveralChoices));
    assert_eq!(refused(Endpoint::Embeddings, r#""n":1"#), Some(CannotContinue::NotHere));
    for (endpoint, body, reason) in [
        (ChatCompletions, r#"{"messages":[]}"#, CannotContinue::NoStream),
        (Completions, r#"{"prompt":[1,2],"stream":true}"#, CannotContinue::Asked("prompt")),
        (Completions, r#"{"prompt":["a","b"],"stream":true}"#, CannotContinue::Asked("prompt")),
    ] {
        assert_eq!(may_continue(endpoint, body.as_bytes()), Err(reason), "{body}");
    }
    for garbage in [&b""[..], b"[]", b"{", b"\xff"] {
        let reason = may_continue(ChatCompletions, garbage).unwrap_err();
        assert!(matches!(reason, CannotContinue::Request(_)), "{reason}");
    }
}

#[test]
fn an_answer_that_has_said_nothing_is_asked_for_again_as_it_was() {
    for (endpoint, body) in [
        (ChatCompletions, r#"{"messages":[],"stream":true,"max_tokens":1}"#),
        (Messages, r#"{"messages":[],"stream":true,"max_tokens":1}"#),
        (Responses, r#"{"input":[],"stream":true,"max_output_tokens":1}"#),
    ] {
        let mut begun = delivered(endpoint, &[], &[]);
        assert_eq!(sent(endpoint, body, &mut begun, LastMessage), body);
    }
}

/// vLLM continues Chat Completions only: the others are translated for it, and keep their beginning.
#[test]
fn messages_and_responses_are_translated_for_those_who_continue_chat_alone() {
    let context = Context { id: "0".repeat(32), model: "m".to_owned(), ..Context::default() };
    for (from, body) in [
        (
            Messages,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":9}"#,
        ),
        (Responses, r#"{"model":"m","input":"hi","stream":true,"max_output_tokens":9}"#),
    ] {
        let mut begun = delivered(from, &[], &["You", " are "]);
        assert_eq!(endpoint(from, FinalMessage), ChatCompletions);
        let here = request(from, body.as_bytes(), &mut begun, FinalMessage);
        assert_eq!(here, Err(CannotContinue::NotHere));
        for how in [FinalMessage, LastMessage] {
            let to = ChatCompletions;
            let sent = translated(from, to, body.as_bytes(), &mut begun, how, &context).unwrap();
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            let last = sent["messages"].as_array().unwrap().last().unwrap();
            assert_eq!(
                (&last["role"], &last["content"]),
                (&json!("assistant"), &json!("You are "))
            );
            let flags = (&sent["continue_final_message"], &sent["add_generation_prompt"]);
            let expected = match how {
                FinalMessage => (json!(true), json!(false)),
                LastMessage => (Value::Null, Value::Null),
            };
            assert_eq!(flags, (&expected.0, &expected.1));
            let most = sent["max_tokens"].as_u64().or(sent["max_completion_tokens"].as_u64());
            assert_eq!(most, Some(7));
        }
        let nowhere =
            translated(from, Completions, body.as_bytes(), &mut begun, LastMessage, &context);
        assert_eq!(nowhere, Err(CannotContinue::NotHere));
    }
}
