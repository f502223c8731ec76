//! Machines and messages that are lost, and found again.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use testkit::{DEADLINE, Gate, Streaming, eventually};

use super::kit::{
    LinkKind, Machine, Pair, always, both_ways, events, saying, serves, streamed, whole, words,
};
use crate::common::{CHAT, post};

both_ways!(
    a_peer_that_is_killed_ends_its_answers_with_an_error_and_no_others,
    a_peer_that_was_restarted_is_linked_to_again,
);

/// The text and the last event of an answer that did not end well.
fn broken(answer: &str) -> (String, String) {
    let last: Value = serde_json::from_str(events(answer).last().expect("events")).unwrap();
    let message = last["error"]["message"].as_str();
    (streamed(answer), message.unwrap_or_else(|| panic!("no error: {answer}")).to_owned())
}

/// Asks for an answer of these words; the first one has come, and the gate holds back the others.
async fn begin(asker: &Machine, lender: &Machine, answer: &[&str]) -> (Gate, Streaming, Bytes) {
    let gate = Gate::closed();
    lender.mock.then(words(answer, &gate));
    let asked = asker.client().post(CHAT, &saying("1", true)).open().await;
    lender.mock.request().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    let first = answer.next_chunk().await.expect("the first word");
    (gate, answer, first)
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
    assert_eq!(streamed(&here.await.unwrap().text()), "cd");
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
async fn a_link_that_is_cut_comes_again_and_its_answers_end_with_an_error() {
    let Pair { asker, lender, wire, .. } = Pair::new(LinkKind::Lan, 2).await;
    let (_gate, answer, _) = begin(&asker, &lender, &["a", "b"]).await;
    wire.cut();
    let rest = answer.finish().await.text();
    assert!(broken(&rest).1.contains("lost"), "{rest}");
    lender.mock.aborted(1).await;
    wire.mend();
    asker.is_linked(&lender.id).await;
    always(&lender.mock, "again");
    assert_eq!(whole(&asker.ask(&saying("2", false)).await), "again");
}

#[tokio::test]
async fn a_link_that_stands_still_for_a_while_loses_nothing() {
    let Pair { asker, lender, wire, .. } = Pair::new(LinkKind::Lan, 2).await;
    let (gate, answer, first) = begin(&asker, &lender, &["a", "b", "c"]).await;
    wire.freeze();
    gate.open(3);
    lender.mock.reaches("the end at the backend", |counts| counts.answered == 1).await;
    wire.mend();
    let rest = answer.finish().await.text();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert_eq!(streamed(&format!("{first}{rest}")), "abc");
    assert_eq!(asker.is_linked(&lender.id).await["link"], "lan");
}

#[tokio::test]
async fn a_link_that_is_cut_for_forty_seconds_without_a_word_is_given_up_and_comes_again() {
    let Pair { asker, lender, wire, .. } = Pair::new(LinkKind::Lan, 2).await;
    let (_gate, answer, _) = begin(&asker, &lender, &["a", "b"]).await;
    wire.freeze();
    let long = Duration::from_secs(40);
    let degraded =
        async || asker.peer(&lender.id).await.is_some_and(|it| it["status"] == "degraded");
    eventually("a link that is degraded", long, degraded).await;
    let unlinked = async || asker.peer(&lender.id).await.is_none_or(|it| it["link"] == "none");
    eventually("a link that is given up", long, unlinked).await;
    let rest = answer.finish().await.text();
    assert!(!broken(&rest).1.is_empty(), "{rest}");
    lender.mock.aborted(1).await;
    wire.mend();
    let again = async || asker.peer(&lender.id).await.is_some_and(|it| it["status"] == "ok");
    eventually("a link that came again", long, again).await;
    always(&lender.mock, "again");
    assert_eq!(whole(&asker.ask(&saying("2", false)).await), "again");
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
