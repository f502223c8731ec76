//! Limits of keys: 429 with what clients know, and budgets that parallel requests cannot overspend.

use serde_json::json;
use testkit::{Gate, MockBackend, Reply, Response};

use crate::{
    cli::{make_key, with_key},
    common::{
        CHAT, MESSAGES, RESPONSES, ask, assert_anthropic_error, assert_fields, lend, openai_error,
        post, serve, with_lender,
    },
};

fn number(response: &Response, name: &str) -> u64 {
    let value = response.header(name).unwrap_or_else(|| panic!("no {name}"));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

/// An answer with this usage.
fn used(prompt: u64, completion: u64) -> Reply {
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion});
    let message = json!({"role": "assistant", "content": "hi"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    Reply::json(200, &json!({"object": "chat.completion", "choices": [choice], "usage": usage}))
}

#[tokio::test]
async fn requests_a_minute_are_limited_and_told() {
    let (daemon, _backend, _worker) = with_lender(4).await;
    let (_, key) = make_key(&daemon, json!({"limits": {"rpm": 2}})).await;
    let client = with_key(&daemon, &key);
    let first = client.post_json(CHAT, &ask(false)).await;
    assert_eq!((first.status, number(&first, "x-ratelimit-limit-requests")), (200, 2));
    assert_eq!(number(&first, "x-ratelimit-remaining-requests"), 1);
    assert_eq!(first.header("x-ratelimit-limit-tokens"), None);
    assert_eq!(client.post_json(CHAT, &ask(false)).await.status, 200);

    let refused = client.post_json(CHAT, &ask(false)).await;
    let error = openai_error(&refused, 429);
    assert_eq!(error["message"], "this API key is limited to 2 requests a minute");
    assert_eq!(error["code"], "rate_limit_exceeded");
    assert!((1..=30).contains(&number(&refused, "retry-after")));
    assert_eq!(number(&refused, "x-ratelimit-remaining-requests"), 0);
    assert!(refused.header("x-ratelimit-reset-requests").is_some());

    let anthropic = client.post_json(MESSAGES, &ask(false)).await;
    let words = "this API key is limited to 2 requests a minute";
    assert_anthropic_error(&anthropic, 429, "rate_limit_error", words);
    assert_eq!(number(&anthropic, "anthropic-ratelimit-requests-limit"), 2);
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200, "others are not");
}

/// A budget is a matter of money: clients are told not to try again, and it outlives a restart.
#[tokio::test]
async fn a_budget_is_used_up_and_stays_so_over_a_restart() {
    let mut daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answer_with(|_| used(60, 50));
    let worker = lend(&daemon, &backend, 4).await;
    let budget = json!({"limits": {"budget": {"tokens": 100, "per": "month"}}});
    let (_, key) = make_key(&daemon, budget).await;
    let ask_once =
        async |daemon: &testkit::Daemon| with_key(daemon, &key).post_json(CHAT, &ask(false)).await;
    assert_eq!(ask_once(&daemon).await.status, 200);
    daemon.is_idle().await;
    for _ in 0..2 {
        let refused = ask_once(&daemon).await;
        let error = openai_error(&refused, 429);
        assert_fields(&error, &json!({"code": "insufficient_quota", "type": "insufficient_quota"}));
        assert_eq!(error["message"], "this API key is limited to 100 tokens a month");
        assert_eq!(refused.header("x-should-retry"), Some("false"));
        assert!(number(&refused, "retry-after") <= 31 * 86_400);
        let told = with_key(&daemon, &key).post_json(MESSAGES, &ask(false)).await;
        assert_eq!(told.json()["error"]["type"], "rate_limit_error");
        daemon.stop_and_restart().await;
    }
    drop(worker);
}

/// Whatever a request took that came to nothing is given back: its place and its tokens.
#[tokio::test]
async fn a_request_that_comes_to_nothing_gives_back_what_it_took() {
    let daemon = serve().set("--max-queue-len", "1").start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let _worker = lend(&daemon, &backend, 1).await;
    let budget = json!({"tokens": 100_000, "per": "day"});
    let (_, key) = make_key(&daemon, json!({"limits": {"concurrent": 1, "budget": budget}})).await;
    let client = with_key(&daemon, &key);
    let asking = |model: &str| {
        let message = json!({"role": "user", "content": "hi"});
        json!({"model": model, "max_tokens": 50_000, "messages": [message]})
    };
    let left = async || {
        backend.then(used(0, 0));
        let answered = client.post_json(CHAT, &ask(false)).await;
        assert_eq!(answered.status, 200, "{}", answered.text());
        daemon.is_idle().await;
        number(&answered, "x-ratelimit-remaining-tokens")
    };
    let before = left().await;
    assert!(before > 99_900, "{before}");

    let no_json = client.request("POST", CHAT).body("{").send().await;
    let no_model = client.post_json(CHAT, &asking("nobody")).await;
    let untranslatable = json!({"model": "m", "input": "hi", "previous_response_id": "r",
        "max_output_tokens": 50_000});
    let untranslatable = client.post_json(RESPONSES, &untranslatable).await;
    backend.then(Reply::json(500, &json!({"error": {"message": "broken"}})));
    let broken = client.post_json(CHAT, &asking("m")).await;
    let statuses = [no_json, no_model, untranslatable, broken].map(|response| response.status);
    assert_eq!(statuses, [400, 404, 400, 500]);

    let gate = Gate::closed();
    backend.then(Reply::stream(["data: {}\n\n"], &gate));
    let running = daemon.client().post(CHAT, &ask(true)).start().await;
    let queued = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let full = client.post_json(CHAT, &asking("m")).await;
    assert_eq!(openai_error(&full, 429)["code"], "queue_full");
    gate.open(2);
    assert_eq!(running.finish().await.status, 200);
    assert_eq!(queued.await.unwrap().status, 200);
    assert_eq!(left().await, before);
}

/// Jobs and counts of tokens are requests; questions about the server are not.
#[tokio::test]
async fn lists_of_models_are_no_requests_of_a_minute() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let _worker = lend(&daemon, &backend, 1).await;
    let (_, key) = make_key(&daemon, json!({"limits": {"rpm": 2, "tpm": 1_000}})).await;
    let client = with_key(&daemon, &key);
    for _ in 0..5 {
        assert_eq!(client.get("/v1/models").await.status, 200);
    }
    let counted = client.post_json("/v1/messages/count_tokens", &ask(false)).await;
    assert_eq!(counted.status, 200, "{}", counted.text());
    let answered = client.post_json(CHAT, &ask(false)).await;
    assert_eq!((answered.status, number(&answered, "x-ratelimit-remaining-requests")), (200, 0));
    assert_eq!(client.post_json(CHAT, &ask(false)).await.status, 429);
    assert_eq!(client.get("/v1/models").await.status, 200);
}
