//! Questions to a Warren, on the LAN and through a relay.

use serde_json::{Value, json};
use testkit::{
    Gate, Reply,
    chat::{FINISH, delta, said},
};

use super::kit::{LinkKind, Pair, both_ways, events, saying};
use crate::common::CHAT;

both_ways!(a_stream_comes_word_by_word_and_the_request_as_it_was_asked);

/// A request with fields that no protocol knows, which have to survive, too.
fn odd_request() -> Value {
    let mut request = saying("é", true);
    for (name, value) in [
        ("top_k", json!(7)),
        ("min_p", json!(0.05)),
        ("logit_bias", json!({"50256": -100})),
        ("stop", json!("END")),
        ("x_future", json!({"deep": [1, 2.50, null]})),
        ("stream_options", json!({"include_usage": true})),
        ("tools", json!([{"type": "function", "function": {"name": "now", "parameters": {}}}])),
    ] {
        request[name] = value;
    }
    request
}

async fn a_stream_comes_word_by_word_and_the_request_as_it_was_asked(way: LinkKind) {
    let pair = Pair::new(way, 2).await;
    let gate = Gate::closed();
    // A letter of two bytes comes in two reads.
    let text = delta("é");
    let (half, rest) = text.as_bytes().split_at(text.find('é').unwrap() + 1);
    let tool = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]}, "finish_reason": null}], "x_vendor": 1});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let tail = format!("data: {tool}\n\n{}", FINISH.replace("data: [DONE]\n\n", ""));
    let tail = format!("{tail}data: {usage}\n\ndata: [DONE]\n\n");
    pair.lender.mock.then(Reply::stream([half, rest, tail.as_bytes()], &gate));

    let request = odd_request();
    let asked = pair.asker.client().post(CHAT, &request).open().await;
    let got = pair.lender.mock.request().await.json();
    for name in ["model", "messages", "top_k", "min_p", "logit_bias", "stop", "x_future", "tools"] {
        assert_eq!(got[name], request[name], "{name}");
    }
    gate.open(2);
    let mut answer = asked.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let first = answer.next_chunk().await.expect("the first word");
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert_eq!(said(&first), "é");
    gate.open(2);
    let rest = answer.finish().await.text();
    let rest = events(&rest);
    assert_eq!(rest.last(), Some(&"[DONE]"));
    let rest: Vec<Value> = rest.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    assert_eq!(
        rest[0]["choices"][0]["delta"]["tool_calls"],
        tool["choices"][0]["delta"]["tool_calls"]
    );
    assert_eq!(rest[0]["x_vendor"], 1);
    assert_eq!(rest.last().unwrap()["usage"]["completion_tokens"], 2);
    let peer = pair.asker.is_linked(&pair.lender.id).await;
    assert_eq!((peer["link"].as_str(), &peer["sealed"]), (Some(way.link()), &json!(true)));
}
