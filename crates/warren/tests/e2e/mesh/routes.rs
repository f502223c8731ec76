//! How far a request goes, and how much of a machine peers may have.

use serde_json::{Value, json};
use testkit::{DEADLINE, Gate, chat::said, eventually};

use super::kit::{LinkKind, Machine, Pair, always, both_ways, saying, serves, whole, words};
use crate::common::{CHAT, openai_error, post, serve};

both_ways!(
    a_peer_s_use_is_in_the_ledger_under_its_id,
    a_machine_that_shares_nothing_answers_nobody
);

/// Two machines on the LAN that both serve `m`, each saying who it is.
async fn two_that_serve() -> Pair {
    let mut pair = Pair::new(LinkKind::Lan, 2).await;
    pair.asker.lend(1).await;
    always(&pair.asker.mock, "here");
    always(&pair.lender.mock, "there");
    let here = async || pair.asker.ask_by("local-only", &saying("0", false)).await.status == 200;
    eventually("an answer here", DEADLINE, here).await;
    pair
}

#[tokio::test]
async fn peers_are_asked_when_nothing_is_free_here_and_the_header_says_otherwise() {
    let Pair { asker, lender, .. } = &two_that_serve().await;
    for _ in 0..3 {
        assert_eq!(whole(&asker.ask(&saying("hi", false)).await), "here");
    }
    let before = asker.mock.counts().started;
    let gate = Gate::closed();
    asker.mock.then(words(&["slow"], &gate));
    let slow = post(&asker.client(), CHAT, saying("1", true));
    eventually("work here", DEADLINE, async || asker.mock.counts().started > before).await;
    // There is no room here now.
    assert_eq!(whole(&asker.ask(&saying("2", false)).await), "there");
    let own = asker.client().with_header("x-warren-route", "local-only");
    let waiting = post(&own, CHAT, saying("3", false));
    asker.daemon.has_queued(1).await;
    assert_eq!(lender.mock.counts().started, 1);
    gate.open(2);
    assert_eq!(said(&slow.await.unwrap().text()), "slow");
    assert_eq!(whole(&waiting.await.unwrap()), "here");
    let wrong = asker.ask_by("everywhere", &saying("5", false)).await;
    let message = openai_error(&wrong, 400)["message"].to_string();
    assert!(message.contains("x-warren-route"), "{message}");
}

async fn a_peer_s_use_is_in_the_ledger_under_its_id(way: LinkKind) {
    let pair = Pair::new(way, 1).await;
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}});
    let stream = testkit::chat::delta("a") + &super::kit::sse(&usage) + "data: [DONE]\n\n";
    pair.lender.mock.then(testkit::Reply::stream([stream], &Gate::opened()));
    assert_eq!(pair.asker.ask(&saying("hi", false)).await.status, 200);
    let key = format!("peer:{}", pair.asker.id);
    let row = async || row(&pair.lender, &key).await;
    eventually("a row of the ledger", DEADLINE, async || row().await.is_some()).await;
    let row = row().await.expect("it is there");
    assert_eq!((&row["prompt_tokens"], &row["completion_tokens"]), (&json!(7), &json!(5)), "{row}");
    // The peer's own ledger has it under who asked there.
    let own = async || {
        let usage = pair.asker.daemon.admin().get("/admin/usage").await.json();
        usage["totals"]["requests"] == 1
    };
    eventually("a row of the peer's own ledger", DEADLINE, own).await;
}

async fn row(machine: &Machine, key: &str) -> Option<Value> {
    let usage = machine.daemon.admin().get("/admin/usage?by=key").await.json();
    usage["rows"].as_array()?.iter().find(|row| row["key"] == key).cloned()
}

async fn a_machine_that_shares_nothing_answers_nobody(way: LinkKind) {
    let relay = super::kit::RelayProcess::start(&[]).await;
    let (lender, asker) = match way {
        LinkKind::Lan => {
            let lender = Machine::lending(serve().set("--mesh-listen", "127.0.0.1:0"), 1).await;
            let lan = lender.lan().await;
            (lender, serve().set("--mesh-peer", &lan))
        }
        LinkKind::Relay => {
            let lender = Machine::lending(serve().set("--mesh-relay", &relay.url()), 1).await;
            lender.is_registered().await;
            (lender, serve().set("--mesh-relay", &relay.url()))
        }
    };
    let asker = Machine::start(asker).await;
    let known = asker.sees(&lender.id, |peer| peer["link"] != "none").await;
    assert!(!serves(&known), "{known}");
    assert_eq!(asker.ask(&saying("hi", false)).await.status, 404);
    assert_eq!(lender.mock.counts().started, 0);
}
