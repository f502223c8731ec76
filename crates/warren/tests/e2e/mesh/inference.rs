//! Questions to a Warren, on the LAN and through a relay.

use serde_json::{Value, json};
use testkit::{DEADLINE, Gate, Reply, eventually};

use super::kit::{
    LinkKind, Pair, always, both_ways, delta, done, events, saying, streamed, whole, words,
};
use crate::common::{CHAT, openai_error, post};

both_ways!(
    a_stream_comes_word_by_word_and_the_request_as_it_was_asked,
    a_request_without_stream_gets_one_answer,
    hanging_up_aborts_the_backend_and_nothing_else,
    the_backends_own_errors_reach_the_client,
    a_backend_that_breaks_off_ends_the_stream_with_an_error,
);

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
    let tail = format!("data: {tool}\n\n{}", done().replace("data: [DONE]\n\n", ""));
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
    assert_eq!(streamed(&first), "é");
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

async fn a_request_without_stream_gets_one_answer(way: LinkKind) {
    let pair = Pair::new(way, 2).await;
    pair.lender.mock.answer_with(|_| words(&["Hel", "lo"], &Gate::opened()));
    let answer = pair.asker.ask(&saying("hi", false)).await;
    assert_eq!(whole(&answer), "Hello");
    assert_eq!(pair.lender.mock.request().await.json()["stream"], true);
}

async fn hanging_up_aborts_the_backend_and_nothing_else(way: LinkKind) {
    let pair = Pair::new(way, 2).await;
    let (first, second) = (Gate::closed(), Gate::closed());
    pair.lender.mock.then(words(&["a", "b"], &first));
    pair.lender.mock.then(words(&["c", "d"], &second));
    let leaving = pair.asker.client().post(CHAT, &saying("1", true)).open().await;
    pair.lender.mock.request().await;
    let staying = post(&pair.asker.client(), CHAT, saying("2", true));
    pair.lender.mock.request().await;
    first.open(1);
    let mut leaving = leaving.answer().await;
    leaving.next_chunk().await.expect("the first word");
    drop(leaving);
    pair.lender.mock.aborted(1).await;
    second.open(3);
    assert_eq!(streamed(&staying.await.unwrap().text()), "cd");
    assert_eq!(pair.lender.mock.counts().aborted, 1);
    pair.lender.daemon.is_idle().await;
}

async fn the_backends_own_errors_reach_the_client(way: LinkKind) {
    let pair = Pair::new(way, 2).await;
    let too_long = json!({"error": {
        "message": "too many tokens", "type": "invalid_request_error", "param": null, "code": "x",
    }});
    for (status, stream) in [(400, true), (422, false)] {
        pair.lender.mock.then(Reply::json(status, &too_long));
        let answer = pair.asker.ask(&saying("hi", stream)).await;
        assert_eq!((answer.status, answer.json()), (status, too_long.clone()));
    }
    // A request that the backend cannot read is refused in its own words, also to a peer.
    let empty = pair.asker.ask(&json!({"model": "m"})).await;
    assert_eq!(empty.status, 200, "{}", empty.text());
}

async fn a_backend_that_breaks_off_ends_the_stream_with_an_error(way: LinkKind) {
    let pair = Pair::new(way, 2).await;
    let broken = || Reply::stream([delta("a"), delta("b")], &Gate::opened()).broken();
    pair.lender.mock.then(broken());
    let answer = pair.asker.ask(&saying("hi", true)).await.text();
    let last: Value = serde_json::from_str(events(&answer).last().unwrap()).unwrap();
    assert!(streamed(&answer).starts_with('a') && last["error"]["message"].is_string(), "{answer}");
    pair.lender.mock.then(broken());
    openai_error(&pair.asker.ask(&saying("hi", false)).await, 502);
    always(&pair.lender.mock, "fine");
    let answer = async || pair.asker.ask(&saying("hi", false)).await.status == 200;
    eventually("an answer after the broken ones", DEADLINE, answer).await;
}
