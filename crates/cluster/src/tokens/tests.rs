//! New tokens of a cluster, over real sockets.

use std::{net::SocketAddr, sync::Arc};

use protocol::workspace::peer::sealed::NewToken;
use replica::Kind;
use seal::Identity;
use store::VolatileStore;

use super::*;
use crate::{
    Settings,
    testing::{Machine, until},
};

const OLD: &str = "secret";

fn token(machine: &Machine) -> String {
    let tokens = machine.cluster.shared().config().tokens;
    tokens.present().map_or_else(String::new, |token| token.secret.expose().to_owned())
}

fn notices(machine: &Machine) -> String {
    machine.cluster.notices().join("\n")
}

fn key(number: u8) -> NodeId {
    Identity::from_seed([number; 32]).node_id()
}

async fn linked(one: &Machine, other: &Machine) {
    let [a, b] = [one, other].map(|machine| machine.cluster.node_id().to_owned());
    let know = |machine: &Machine, node: &str| {
        let members = machine.cluster.members();
        machine.cluster.is_reachable(node) && members.iter().any(|it| it.member.node_id == node)
    };
    until("both are linked", || know(one, &b) && know(other, &a)).await;
}

async fn all_linked<const N: usize>(machines: [&Machine; N]) {
    for (at, one) in machines.iter().enumerate() {
        for other in &machines[at + 1..] {
            linked(one, other).await;
        }
    }
}

async fn have_a_new_token<const N: usize>(machines: [&Machine; N]) {
    let is_new = || {
        let token_of_first = token(machines[0]);
        token_of_first != OLD && machines.iter().all(|machine| token(machine) == token_of_first)
    };
    until("all have the same new token", is_new).await;
}

/// Settings of a machine that dials these and no others.
fn settings(number: u8, peers: &[SocketAddr]) -> Settings {
    Settings {
        token: Some(Secret::from(OLD)),
        peers: peers.iter().map(ToString::to_string).collect(),
        discovery: false,
        ..Machine::settings(number)
    }
}

async fn with_store(number: u8, peers: &[SocketAddr], store: &Arc<VolatileStore>) -> Machine {
    Machine::with_store(number, [number; 32], settings(number, peers), store.clone()).await
}

/// A machine that dials these and no others.
async fn only(number: u8, peers: &[SocketAddr]) -> Machine {
    with_store(number, peers, &Arc::default()).await
}

#[tokio::test]
async fn after_a_machine_was_taken_out_a_copy_of_the_token_opens_nothing() {
    let one = Machine::new(1, OLD, &[]).await;
    let two = Machine::new(2, OLD, &[one.address]).await;
    let three = Machine::new(3, OLD, &[one.address]).await;
    all_linked([&one, &two, &three]).await;
    one.cluster.forget("node-3").await.unwrap();
    have_a_new_token([&one, &two]).await;
    assert_eq!(token(&three), OLD, "it is not told");
    let copy = Machine::with_key(9, [9; 32], OLD, &[one.address, two.address]).await;
    until("it hears why", || notices(&copy).contains("has a new token")).await;
    until("so does the other one", || notices(&three).contains("taken out")).await;
    assert!(copy.cluster.members().is_empty());
    one.cut();
    linked(&one, &two).await;
    assert!(notices(&one).contains("--cluster-token"), "{}", notices(&one));
    assert_eq!(one.cluster.members().len(), 1);
}

#[tokio::test]
async fn a_member_that_was_away_comes_in_by_its_key_and_gets_the_new_token_for_good() {
    let store = Arc::<VolatileStore>::default();
    let one = Machine::new(1, OLD, &[]).await;
    let two = with_store(2, &[one.address], &store).await;
    let three = Machine::new(3, OLD, &[one.address]).await;
    linked(&one, &two).await;
    linked(&one, &three).await;
    drop(two);
    one.cluster.forget("node-3").await.unwrap();
    let two = with_store(2, &[one.address], &store).await;
    assert_eq!(token(&two), OLD);
    have_a_new_token([&one, &two]).await;
    drop(two);
    // The setting is still the old one, and the stored one wins.
    let two = with_store(2, &[one.address], &store).await;
    assert_eq!(token(&two), token(&one));
    assert!(notices(&two).contains("--cluster-token"), "{}", notices(&two));
    linked(&one, &two).await;
}

#[tokio::test]
async fn a_member_that_was_away_and_dials_nobody_is_found_with_the_old_token() {
    let store = Arc::<VolatileStore>::default();
    let two = with_store(2, &[], &store).await;
    let one = only(1, &[two.address]).await;
    linked(&one, &two).await;
    drop(two);
    renew(one.cluster.shared()).await.unwrap();
    let two = with_store(2, &[], &store).await;
    one.cluster.set_peers(vec![two.address.to_string()]).await.unwrap();
    have_a_new_token([&one, &two]).await;
}

#[tokio::test]
async fn the_token_reaches_all_over_others_and_not_the_machine_that_is_out() {
    // One and four are linked to two only; three, which is taken out, to two and four.
    let two = only(2, &[]).await;
    let one = only(1, &[two.address]).await;
    let four = only(4, &[two.address]).await;
    let three = only(3, &[two.address, four.address]).await;
    all_linked([&two, &three, &four]).await;
    linked(&one, &two).await;
    let knows = |node: &str| one.cluster.members().iter().any(|it| it.member.node_id == node);
    until("one knows all", || knows("node-3") && knows("node-4")).await;
    one.cluster.forget("node-3").await.unwrap();
    have_a_new_token([&one, &two, &four]).await;
    let is_alone =
        || !three.cluster.is_reachable("node-2") && !three.cluster.is_reachable("node-4");
    until("it is hung up", is_alone).await;
    assert_eq!(token(&three), OLD);
}

#[tokio::test]
async fn of_two_tokens_made_at_once_all_keep_the_same() {
    let one = Machine::new(1, OLD, &[]).await;
    let two = Machine::new(2, OLD, &[one.address]).await;
    let three = Machine::new(3, OLD, &[one.address]).await;
    all_linked([&one, &two, &three]).await;
    let (first, second) = (renew(one.cluster.shared()), renew(two.cluster.shared()));
    let made = tokio::join!(first, second);
    assert!(made.0.is_ok() && made.1.is_ok());
    have_a_new_token([&one, &two, &three]).await;
    // None of the links needs another token than the present one.
    one.cut();
    all_linked([&one, &two, &three]).await;
}

#[tokio::test]
async fn a_machine_that_leaves_leaves_a_new_token_behind_unless_it_is_the_last() {
    let one = Machine::new(1, OLD, &[]).await;
    let two = Machine::new(2, OLD, &[one.address]).await;
    let three = Machine::new(3, OLD, &[one.address]).await;
    all_linked([&one, &two, &three]).await;
    two.cluster.leave().await.unwrap();
    have_a_new_token([&one, &three]).await;
    assert_eq!(token(&two), OLD, "it has never taken the new one");
    three.cluster.leave().await.unwrap();
    until("one is alone", || one.cluster.members().is_empty()).await;
    one.cluster.leave().await.unwrap();
}

#[tokio::test]
async fn a_machine_that_left_comes_back_by_an_invitation_at_once() {
    let one = Machine::new(1, OLD, &[]).await;
    let two = Machine::new(2, OLD, &[one.address]).await;
    linked(&one, &two).await;
    two.cluster.leave().await.unwrap();
    let again = Machine::alone(2).await;
    let invited = one.cluster.invite().await.unwrap();
    again.cluster.join(&invited.code).await.unwrap();
    have_a_new_token([&one, &again]).await;
    linked(&one, &again).await;
}

#[tokio::test]
async fn a_machine_that_is_taken_out_chooses_no_token() {
    let one = Machine::new(1, OLD, &[]).await;
    let two = Machine::new(2, OLD, &[one.address]).await;
    linked(&one, &two).await;
    let shared = one.cluster.shared();
    // A key is admitted when its member is first seen.
    let is_followed = || shared.followed.try_lock().is_ok_and(|all| all.contains_key("node-2"));
    until("the member is seen", is_followed).await;
    shared.barred.bar(&shared.facts, key(2)).await.unwrap();
    renew(two.cluster.shared()).await.unwrap();
    // A later write over the same link says that the token has arrived.
    two.cluster.write(Kind::SESSION, "later", "{}".to_owned()).await.unwrap();
    let has_come = || one.cluster.directory().get(Kind::SESSION, "later").is_some();
    until("its write has come", has_come).await;
    assert_eq!(token(&one), OLD);
    // Others may have taken its token, and pass it on: it is replaced.
    let secret = Secret::from("its token");
    let since_ms = now_ms() + 60_000;
    let told =
        NewToken { cluster_token: secret, since_ms, maker: Some(key(2)), without: Vec::new() };
    take_heard(shared, told).await.unwrap();
    assert!(token(&one) != OLD && token(&one) != "its token");
    let made = shared.config().tokens;
    assert!(made.present().unwrap().since_ms > since_ms);
    assert_eq!(made.maker(), Some(key(1)));
}
