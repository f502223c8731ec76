//! The rules that hold for every pair of shapes, whatever clients and providers send.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use base::Endpoint;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use translate::{BadAnswer, Body, Context, answer, request, served_as};

/// Words that mean something in one of the shapes, as names and as values.
const WORDS: [&str; 64] = [
    "model",
    "messages",
    "role",
    "user",
    "assistant",
    "system",
    "tool",
    "content",
    "type",
    "text",
    "image",
    "source",
    "base64",
    "data",
    "url",
    "tool_use",
    "tool_result",
    "id",
    "name",
    "input",
    "tools",
    "function",
    "parameters",
    "arguments",
    "tool_calls",
    "tool_choice",
    "choices",
    "index",
    "delta",
    "message",
    "finish_reason",
    "stop",
    "tool_call_id",
    "reasoning_content",
    "usage",
    "prompt_tokens",
    "error",
    "output",
    "response",
    "status",
    "completed",
    "item",
    "output_index",
    "content_index",
    "response.output_text.delta",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.function_call_arguments.delta",
    "function_call",
    "call_id",
    "output_text",
    "message_start",
    "content_block_start",
    "content_block",
    "content_block_delta",
    "text_delta",
    "partial_json",
    "input_json_delta",
    "message_delta",
    "stop_reason",
    "end_turn",
    "message_stop",
    "prompt",
];

fn word() -> impl Strategy<Value = String> {
    select(&WORDS[..]).prop_map(str::to_owned)
}

/// JSON that may mean something.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => ".{0,8}".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => (-2i64..5).prop_map(Value::from),
        1 => Just(json!({"type": "text", "text": "x"})),
        1 => Just(json!("{\"a\":1}")),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word(), inner), 0..6).prop_map(|fields| object(fields).into()),
        ]
    })
}

fn object(fields: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    fields.into_iter().collect()
}

/// A request with a model and messages that may be some.
fn body() -> impl Strategy<Value = Value> {
    let fields = vec((word(), value()), 0..6);
    let turn = (select(vec!["user", "assistant", "system", "tool"]), value());
    (fields, vec(turn, 0..4)).prop_map(|(fields, turns)| {
        let turn = |(role, content)| json!({"role": role, "content": content, "tool_call_id": "a"});
        let turns: Vec<Value> = turns.into_iter().map(turn).collect();
        let mut body = object(fields);
        body.insert("model".to_owned(), "m".into());
        body.entry("messages").or_insert(turns.clone().into());
        body.entry("input").or_insert(turns.into());
        body.entry("prompt").or_insert("Hi".into());
        body.into()
    })
}

/// A chunk of Chat Completions, with calls of tools that may cross each other.
fn chat_chunk() -> impl Strategy<Value = Value> {
    let text = "[a-z \n\"é]{0,6}";
    let call = (0usize..3, select(vec![None, Some("a"), Some("b")]), select(vec![None, Some("f")]));
    let piece = select(vec!["", "{", "}", "\"a\":1", "{\"a\":1}", "x"]);
    let call = (call, piece).prop_map(|((index, id, name), arguments)| {
        json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
    });
    let delta = prop_oneof![
        text.prop_map(|text| json!({"content": text})),
        text.prop_map(|text| json!({"reasoning_content": text})),
        text.prop_map(|text| json!({"refusal": text})),
        call,
    ];
    let choice = |(delta, finish): (Value, Option<&str>)| json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let finish = prop_oneof![9 => Just(None), 1 => select(vec![Some("stop"), Some("tool_calls"), Some("length")])];
    prop_oneof![
        9 => (delta, finish).prop_map(choice),
        1 => Just(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})),
    ]
}

/// A stream of events, most of them chunks of Chat Completions, which most pairs read.
fn stream() -> impl Strategy<Value = String> {
    let event = prop_oneof![
        12 => chat_chunk().prop_map(|chunk| format!("data: {chunk}\n\n")),
        2 => value().prop_map(|value| format!("data: {value}\r\n\r\n")),
        1 => Just(": ping\n\n".to_owned()),
        1 => Just("data: [DONE]\n\n".to_owned()),
        1 => Just("event: x\ndata:\n\n".to_owned()),
    ];
    vec(event, 0..14).prop_map(|events| events.concat())
}

fn pairs() -> impl Iterator<Item = (Endpoint, Endpoint)> {
    let to = |from| served_as(from).iter().map(move |to| (from, to));
    Endpoint::ALL.into_iter().flat_map(to).filter(|(from, to)| from != to)
}

fn context(streaming: bool) -> Context {
    Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming }
}

/// The client's answer for an answer that comes in these pieces, and whether it made sense.
fn answered(
    (from, to): (Endpoint, Endpoint),
    streaming: bool,
    kind: Body,
    pieces: &[&[u8]],
) -> (Body, Vec<u8>, Result<(), BadAnswer>) {
    let mut map = answer(from, to, &context(streaming), b"{\"model\":\"m\"}").unwrap();
    let (_, given) = map.head(200, kind);
    let mut out = Vec::new();
    let fed = pieces.iter().try_for_each(|piece| map.feed(piece, &mut out));
    let made = fed.and_then(|()| map.end(&mut out));
    (given, out, made)
}

/// The stream as a provider of another shape would have given it: as a client of that shape gets
/// it of a Chat Completions provider.
fn stream_of(provider: Endpoint, stream: &str) -> Vec<u8> {
    let chat = Endpoint::ChatCompletions;
    // Chat Completions are no client of legacy Completions and Embeddings, whose chunks are alike.
    if !served_as(provider).contains(chat) || provider == chat {
        return stream.as_bytes().to_vec();
    }
    answered((provider, chat), true, Body::Events, &[stream.as_bytes()]).1
}

/// The bytes cut at these places.
fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
}

/// Checks that a complete answer is what it says to be.
fn is_well_formed(kind: Body, text: &str) {
    let is_json = |text: &str| assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
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

#[test]
fn every_shape_that_generates_has_its_ways() {
    let both_ways = [
        (Endpoint::Messages, Endpoint::ChatCompletions),
        (Endpoint::Responses, Endpoint::ChatCompletions),
    ];
    for (one, other) in both_ways {
        assert!(
            pairs().any(|pair| pair == (one, other)) && pairs().any(|pair| pair == (other, one))
        );
    }
    assert_eq!(pairs().count(), 27);
}

/// A history of calls and results in any order, with ids that come again or fit nowhere, as Chat
/// Completions and as Responses have it.
fn history() -> impl Strategy<Value = (Value, Value)> {
    let id = || select(vec!["a", "functions.f:0", "call|1", "call_1", ""]);
    let text = || select(vec!["", " \n", "Hi", "Yes: "]);
    let turn = prop_oneof![
        (vec(id(), 1..3), text()).prop_map(|(ids, text)| {
            let function = json!({"name": "f", "arguments": "{}"});
            let calls: Vec<_> =
                ids.iter().map(|id| json!({"id": id, "function": function})).collect();
            let chat = json!({"role": "assistant", "content": text, "tool_calls": calls});
            let call = |id: &&str| json!({"type": "function_call", "id": "x", "call_id": id, "name": "f", "arguments": "{}"});
            (chat, ids.iter().map(call).collect::<Vec<_>>())
        }),
        (id(), text()).prop_map(|(id, text)| {
            let item = json!({"type": "function_call_output", "call_id": id, "output": text});
            (json!({"role": "tool", "tool_call_id": id, "content": text}), vec![item])
        }),
        (select(vec!["user", "assistant", "system"]), text()).prop_map(|(role, text)| {
            let said = json!({"role": role, "content": text});
            (said.clone(), vec![said])
        }),
    ];
    vec(turn, 0..14).prop_map(|turns| {
        let first = json!({"role": "user", "content": "Hi"});
        let (chat, items): (Vec<_>, Vec<_>) = turns.into_iter().unzip();
        let chat: Vec<_> = [first.clone()].into_iter().chain(chat).collect();
        let items: Vec<_> = [first].into_iter().chain(items.into_iter().flatten()).collect();
        (json!({"model": "m", "messages": chat}), json!({"model": "m", "input": items}))
    })
}

fn made(from: Endpoint, to: Endpoint, body: &Value) -> Value {
    let written = request(from, to, body.to_string().as_bytes(), &context(false)).unwrap();
    serde_json::from_slice(&written).unwrap()
}

/// The values of a field in a list's objects of this type.
fn of_type<'v>(list: &'v Value, kind: &str, field: &str) -> Vec<&'v Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter(|it| it["type"] == kind).map(|it| &it[field]).collect()
}

/// Whether the results of each call follow it at once, in Chat Completions.
fn are_chat_rounds(messages: &[Value]) -> bool {
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let may_be_open = rest.peek().is_none();
        for call in calls {
            let result = rest.next_if(|next| next["tool_call_id"] == call["id"]);
            if result.is_none() && !may_be_open {
                return false;
            }
        }
        if rest.peek().is_some_and(|next| next["role"] == "tool") {
            return false;
        }
    }
    true
}

/// Whether these are turns as Messages demands them.
fn are_message_turns(turns: &[Value]) -> bool {
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    let alternate = turns.iter().enumerate().all(|(at, turn)| turn["role"] == role(at));
    let is_plain = |id: &Value| {
        let id = id.as_str().unwrap_or_default();
        !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let mut ids = std::collections::HashSet::new();
    let mut rounds = turns.iter().zip(turns.iter().skip(1).map(Some).chain([None]));
    let answered = rounds.all(|(turn, next)| {
        let calls = of_type(&turn["content"], "tool_use", "id");
        let own = calls.iter().all(|id| is_plain(id) && ids.insert(id.to_string()));
        let results = next.map(|next| {
            let results = of_type(&next["content"], "tool_result", "tool_use_id");
            let first = next["content"].as_array().into_iter().flatten().take(results.len());
            first.clone().all(|it| it["type"] == "tool_result") && results == calls
        });
        own && results.unwrap_or(true)
    });
    let texts = turns.iter().flat_map(|turn| of_type(&turn["content"], "text", "text"));
    let spoken = texts.into_iter().all(|text| !text.as_str().unwrap_or_default().trim().is_empty());
    alternate && answered && spoken
}

proptest! {
    #[test]
    fn results_follow_their_calls_in_every_history((chat, responses) in history()) {
        use Endpoint::{ChatCompletions, Messages, Responses};
        let of_responses = made(Responses, ChatCompletions, &responses);
        prop_assert!(are_chat_rounds(of_responses["messages"].as_array().unwrap()), "{of_responses}");
        for (from, body) in [(ChatCompletions, &chat), (Responses, &responses)] {
            let written = made(from, Messages, body);
            prop_assert!(are_message_turns(written["messages"].as_array().unwrap()), "{written}");
        }
        let items = made(ChatCompletions, Responses, &chat);
        let called = of_type(&items["input"], "function_call", "call_id");
        let answered = of_type(&items["input"], "function_call_output", "call_id");
        let own: std::collections::HashSet<_> = called.iter().map(ToString::to_string).collect();
        prop_assert!(own.len() == called.len() && called.starts_with(&answered), "{items}");
    }

    #[test]
    fn any_request_is_carried_or_refused(body in body()) {
        let text = body.to_string();
        for (from, to) in pairs() {
            if let Ok(written) = request(from, to, text.as_bytes(), &context(false)) {
                let written: Value = serde_json::from_slice(&written).unwrap();
                prop_assert_eq!(&written["model"], "m");
            }
        }
    }

    #[test]
    fn any_bytes_are_refused(body: Vec<u8>) {
        for (from, to) in pairs() {
            prop_assert!(request(from, to, &body, &context(true)).is_err());
        }
    }

    #[test]
    fn any_answer_is_read_the_same_however_it_is_split(
        stream in stream(),
        cuts in vec(0usize..2000, 0..8),
        streaming: bool,
    ) {
        for pair in pairs() {
            let given = stream_of(pair.1, &stream);
            let whole = answered(pair, streaming, Body::Events, &[&given]);
            let split = answered(pair, streaming, Body::Events, &cut(&given, &cuts));
            prop_assert_eq!(&split, &whole, "{:?}", pair);
            let (kind, text, made) = whole;
            if made.is_ok() {
                is_well_formed(kind, str::from_utf8(&text).unwrap());
            }
        }
    }

    #[test]
    fn any_json_is_read_or_the_providers_fault(answer in value(), streaming: bool) {
        let text = answer.to_string();
        for pair in pairs() {
            let (kind, out, made) = answered(pair, streaming, Body::Json, &[text.as_bytes()]);
            if made.is_ok() {
                is_well_formed(kind, str::from_utf8(&out).unwrap());
            }
        }
    }

    #[test]
    fn any_error_is_told_in_the_clients_shape(body: Vec<u8>, status in 400u16..600) {
        for (from, to) in pairs() {
            let mut map = answer(from, to, &context(true), b"{}").unwrap();
            let (given, kind) = map.head(status, Body::Json);
            let mut out = Vec::new();
            map.feed(&body, &mut out).unwrap();
            map.end(&mut out).unwrap();
            prop_assert_eq!(given, status);
            prop_assert!(!out.is_empty());
            is_well_formed(kind, str::from_utf8(&out).unwrap());
        }
    }
}
