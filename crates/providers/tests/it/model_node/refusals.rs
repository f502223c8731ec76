//! Nodes that are not let in.

use access::{Moment, NewKey};
use base::KeyScope;

use super::kit::Kit;

async fn closed(query: &str) -> (u16, String) {
    let kit = Kit::new();
    let closed = kit.link(query).closed().await;
    assert!(kit.scheduler.status().workers.is_empty());
    closed
}

#[tokio::test(start_paused = true)]
async fn a_missing_parameter_is_told_in_the_stock_words() {
    let words = (4001, "Missing token, model, max_concurrency, or name".to_owned());
    assert_eq!(closed("token=good&model=m&max_concurrency=1").await, words);
    assert_eq!(closed("token=good&model=&max_concurrency=1&name=a").await, words);
    assert_eq!(closed("token=good").await, words);
    assert_eq!(closed("model=m&name=a").await, words);
    assert_eq!(closed("").await, words);
}

#[tokio::test(start_paused = true)]
async fn an_absurd_concurrency_is_told() {
    for absurd in ["0", "-1", "10001", "1e9", "many", "99999999999999999999"] {
        let (code, reason) =
            closed(&format!("token=good&model=m&max_concurrency={absurd}&name=a")).await;
        assert_eq!(code, 4001, "{absurd}");
        assert!(reason.contains("max_concurrency") && reason.contains("10000"), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_told_in_the_stock_words() {
    let words = (4002, "Invalid token".to_owned());
    assert_eq!(closed("token=bad&model=m&max_concurrency=1&name=a").await, words);
}

#[tokio::test(start_paused = true)]
async fn a_key_for_lending_lets_a_node_in_until_it_is_revoked() {
    let kit = Kit::new();
    let key = |scope| {
        let new = NewKey { name: "n".to_owned(), scopes: vec![scope], ..NewKey::default() };
        kit.keys.create(new, Moment::now()).unwrap()
    };
    let query = |text: &str| format!("token={text}&model=m&max_concurrency=1&name=a");
    let (_, consumer) = key(KeyScope::Inference);
    let closed = kit.link(&query(consumer.expose())).closed().await;
    assert_eq!(closed, (4002, "Invalid token".to_owned()));
    let (record, worker) = key(KeyScope::Worker);
    let mut node = kit.link(&query(worker.expose()));
    node.settle().await;
    assert_eq!(kit.scheduler.status().workers.len(), 1);
    kit.keys.revoke(&record.id, Moment::now()).unwrap();
    assert_eq!(node.closed().await, (4002, "Invalid token".to_owned()));
    assert!(kit.scheduler.status().workers.is_empty());
}
