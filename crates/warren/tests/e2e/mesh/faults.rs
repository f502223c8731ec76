//! Machines and messages that are lost, and found again.

use serde_json::Value;
use testkit::{DEADLINE, Gate, chat::said, eventually};

use super::kit::{LinkKind, Pair, always, both_ways, events, saying, serves, words};
use crate::common::{CHAT, post};

both_ways!(
    a_peer_that_is_killed_ends_its_answers_with_an_error_and_no_others,
    a_peer_that_was_restarted_is_linked_to_again
);

/// The text and the last event of an answer that did not end well.
fn broken(answer: &str) -> (String, String) {
    let last: Value = serde_json::from_str(events(answer).last().expect("events")).unwrap();
    let message = last["error"]["message"].as_str();
    (said(answer), message.unwrap_or_else(|| panic!("no error: {answer}")).to_owned())
}

async fn a_peer_that_is_killed_ends_its_answers_with_an_error_and_no_others(way: LinkKind) {
    let mut pair = Pair::new(way, 4).await;
    let (lost, kept) = (Gate::closed(), Gate::closed());
    pair.asker.mock.then(words(&["c", "d"], &kept));
    pair.lender.mock.then(words(&["a", "b"], &lost));
    let asked = pair.asker.client().post(CHAT, &saying("1", true)).open().await;
    pair.lender.mock.request().await;
    lost.open(1);
    let mut at_peer = asked.answer().await;
    at_peer.next_chunk().await.expect("the first word");
    pair.asker.lend(1).await;
    let own = pair.asker.client().with_header("x-warren-route", "local-only");
    let here = post(&own, CHAT, saying("2", true));
    pair.asker.mock.request().await;
    kept.open(1);
    pair.lender.daemon.kill9().await;
    let error = broken(&at_peer.finish().await.text()).1;
    assert!(error.contains("lost"), "{error}");
    kept.open(2);
    assert_eq!(said(&here.await.unwrap().text()), "cd");
    pair.asker.is_parted(&pair.lender.id).await;
    pair.asker.is_healthy().await;
}

async fn a_peer_that_was_restarted_is_linked_to_again(way: LinkKind) {
    let mut pair = Pair::new(way, 1).await;
    let id = pair.lender.id.clone();
    pair.restart_lender().await;
    always(&pair.lender.mock, "again");
    pair.asker.sees(&id, serves).await;
    let answered = async || pair.asker.ask(&saying("hi", false)).await.status == 200;
    eventually("an answer of the restarted peer", DEADLINE, answered).await;
}

#[tokio::test]
async fn a_relay_that_was_killed_and_restarted_has_its_nodes_again() {
    let mut pair = Pair::new(LinkKind::Relay, 2).await;
    let gate = Gate::closed();
    pair.lender.mock.then(words(&["a", "b"], &gate));
    let asked = pair.asker.client().post(CHAT, &saying("1", true)).open().await;
    pair.lender.mock.request().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    answer.next_chunk().await.expect("the first word");
    pair.relay.as_mut().expect("there is one").kill_and_restart().await;
    let rest = answer.finish().await.text();
    assert!(broken(&rest).1.contains("lost"), "{rest}");
    pair.lender.mock.aborted(1).await;
    pair.asker.is_registered().await;
    pair.lender.is_registered().await;
    always(&pair.lender.mock, "again");
    let answered = async || pair.asker.ask(&saying("2", false)).await.status == 200;
    eventually("an answer through the relay that is back", DEADLINE, answered).await;
}
