//! Machines that join by invitations, over real sockets.

use std::{sync::Arc, time::Duration};

use protocol::workspace::peer::sealed::{Invitation, InviteSecret};
use replica::Kind;
use store::VolatileStore;

use super::{book::VALID, guest};
use crate::testing::{Machine, until};

async fn both_linked(one: &Machine, two: &Machine) {
    let (of_one, of_two) = (one.cluster.node_id().to_owned(), two.cluster.node_id().to_owned());
    until("both are linked", || {
        one.cluster.is_reachable(&of_two) && two.cluster.is_reachable(&of_one)
    })
    .await;
}

#[tokio::test]
async fn an_invited_machine_becomes_a_member_and_shows_everything() {
    let (host, guest) = (Machine::alone(1).await, Machine::alone(2).await);
    let invited = host.cluster.invite().await.unwrap();
    host.cluster.write(Kind::SESSION, "s", "{}".to_owned()).await.unwrap();
    assert_eq!(guest.cluster.join(&invited.code).await.unwrap(), "machine 1");
    both_linked(&host, &guest).await;
    until("it shows the session", || guest.cluster.directory().get(Kind::SESSION, "s").is_some())
        .await;
    assert!(host.cluster.invites().await.is_empty(), "it is used");
}

#[tokio::test]
async fn a_used_invitation_is_refused_to_another_machine_also_at_the_same_time() {
    let host = Machine::alone(1).await;
    let (two, three) = (Machine::alone(2).await, Machine::alone(3).await);
    let invited = host.cluster.invite().await.unwrap();
    let (of_two, of_three) =
        tokio::join!(two.cluster.join(&invited.code), three.cluster.join(&invited.code));
    assert!(of_two.is_ok() != of_three.is_ok(), "{of_two:?} {of_three:?}");
    let words = of_two.err().or(of_three.err()).unwrap().to_string();
    assert!(words.contains("already used"), "{words}");
    assert_eq!(host.cluster.members().len(), 1);
}

#[tokio::test]
async fn a_machine_whose_answer_was_lost_asks_again() {
    let (host, two) = (Machine::alone(1).await, Machine::alone(2).await);
    let invited = host.cluster.invite().await.unwrap();
    let invitation = Invitation::decode(&invited.code).unwrap();
    let address = &invitation.addresses[0];
    guest::ask(two.cluster.shared(), &invitation, address).await.unwrap();
    assert!(!two.cluster.has_token());
    two.cluster.join(&invited.code).await.unwrap();
    both_linked(&host, &two).await;
}

#[tokio::test]
async fn an_expired_withdrawn_or_invented_invitation_is_refused_with_words() {
    let (host, two) = (Machine::alone(1).await, Machine::alone(2).await);
    let refused = async |code: &str| two.cluster.join(code).await.unwrap_err().to_string();
    let old = host.cluster.invite().await.unwrap();
    host.cluster.shared().invites.age(VALID).await;
    let words = refused(&old.code).await;
    assert!(words.contains("expired"), "{words}");
    let withdrawn = host.cluster.invite().await.unwrap();
    assert_eq!(host.cluster.invites().await[0].id, withdrawn.id);
    assert!(host.cluster.revoke_invite(&withdrawn.id).await.unwrap());
    let words = refused(&withdrawn.code).await;
    assert!(words.contains("withdrawn"), "{words}");
    let real = Invitation::decode(&old.code).unwrap();
    let invented = Invitation { secret: InviteSecret([7; 16]), ..real };
    let words = refused(&invented.encode().unwrap()).await;
    assert!(words.contains("unknown"), "{words}");
    assert!(host.cluster.has_refused(), "it counts as an attempt");
    assert!(refused("nonsense").await.contains("not an invitation"));
    assert!(!two.cluster.has_token() && host.cluster.members().is_empty());
}

#[tokio::test]
async fn the_secret_counts_and_not_only_the_id() {
    let (host, two) = (Machine::alone(1).await, Machine::alone(2).await);
    let invited = host.cluster.invite().await.unwrap();
    let other = Machine::alone(3).await;
    let stranger = other.cluster.invite().await.unwrap();
    let (real, strange) =
        (Invitation::decode(&invited.code).unwrap(), Invitation::decode(&stranger.code).unwrap());
    let wrong_place = Invitation { addresses: strange.addresses, ..real };
    let words = two.cluster.join(&wrong_place.encode().unwrap()).await.unwrap_err().to_string();
    assert!(words.contains("another machine answers"), "{words}");
}

#[tokio::test]
async fn an_invitation_outlives_a_restart() {
    let store = Arc::new(VolatileStore::default());
    let start = || Machine::with_store(1, [1; 32], Machine::settings(1), store.clone());
    let first = start().await;
    let invited = first.cluster.invite().await.unwrap();
    drop(first);
    let (host, two) = (start().await, Machine::alone(2).await);
    assert_eq!(host.cluster.invites().await.len(), 1);
    let invitation = Invitation::decode(&invited.code).unwrap();
    let moved = Invitation { addresses: vec![host.address.to_string()], ..invitation };
    two.cluster.join(&moved.encode().unwrap()).await.unwrap();
    both_linked(&host, &two).await;
}

#[tokio::test]
async fn a_member_joins_no_other_cluster() {
    let (host, two) = (Machine::alone(1).await, Machine::alone(2).await);
    two.cluster.invite().await.unwrap();
    let invited = host.cluster.invite().await.unwrap();
    let words = two.cluster.join(&invited.code).await.unwrap_err().to_string();
    assert!(words.contains("leave"), "{words}");
    assert!(invited.until > Duration::ZERO);
}

#[tokio::test]
async fn a_forgotten_machine_is_barred_until_it_is_invited_again() {
    let (host, two) = (Machine::alone(1).await, Machine::alone(2).await);
    let first = host.cluster.invite().await.unwrap();
    two.cluster.join(&first.code).await.unwrap();
    both_linked(&host, &two).await;
    two.cluster.write(Kind::SESSION, "its", "{}".to_owned()).await.unwrap();
    let shown = || host.cluster.directory().get(Kind::SESSION, "its").is_some();
    until("its session is shown", shown).await;
    assert_eq!(host.cluster.forget("machine 2").await.unwrap(), "machine 2");
    assert!(!shown() && host.cluster.members().is_empty());
    until("it hears why it is out", || {
        two.cluster.notices().iter().any(|notice| notice.contains("taken out"))
    })
    .await;
    until("its link ends", || !host.cluster.is_reachable("node-2")).await;
    let unknown = host.cluster.forget("machine 2").await.unwrap_err().to_string();
    assert!(unknown.starts_with("there is no member"), "{unknown}");
    two.cluster.leave().await.unwrap();
    let again = Machine::alone(2).await;
    let words = again.cluster.join(&first.code).await.unwrap_err().to_string();
    assert!(words.contains("taken out"), "{words}");
    let second = host.cluster.invite().await.unwrap();
    again.cluster.join(&second.code).await.unwrap();
    both_linked(&host, &again).await;
}

#[tokio::test]
async fn a_machine_that_leaves_is_gone_for_all_and_shows_nothing_of_them() {
    let (one, two, three) =
        (Machine::alone(1).await, Machine::alone(2).await, Machine::alone(3).await);
    for guest in [&two, &three] {
        let invited = one.cluster.invite().await.unwrap();
        guest.cluster.join(&invited.code).await.unwrap();
    }
    both_linked(&two, &three).await;
    two.cluster.write(Kind::SESSION, "of-two", "{}".to_owned()).await.unwrap();
    one.cluster.write(Kind::SESSION, "of-one", "{}".to_owned()).await.unwrap();
    let shows =
        |machine: &Machine, id: &str| machine.cluster.directory().get(Kind::SESSION, id).is_some();
    until("all show both", || {
        [&one, &two, &three].iter().all(|it| shows(it, "of-one") && shows(it, "of-two"))
    })
    .await;
    two.cluster.leave().await.unwrap();
    assert!(!shows(&two, "of-one") && two.cluster.members().is_empty());
    until("the others show it no more", || {
        [&one, &three].iter().all(|it| !shows(it, "of-two") && it.cluster.members().len() == 1)
    })
    .await;
    assert!(shows(&three, "of-one"));
}
