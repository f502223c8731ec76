//! Members over real sockets.

use std::sync::Arc;

use protocol::workspace::Role;
use replica::{Entry, Key, Kind};
use tokio::time::timeout;
use wire::Frame;

use super::{
    testing::{Machine, SOON, until},
    *,
};

fn has(machine: &Machine, id: &str, value: &str) -> bool {
    let entry = machine.cluster.directory().get(Kind::SESSION, id);
    entry.is_some_and(|entry| &*entry.value == value)
}

#[tokio::test]
async fn three_members_that_know_one_of_them_find_each_other_and_show_the_same() {
    let one = Machine::new(1, "secret", &[]).await;
    let two = Machine::new(2, "secret", &[one.address]).await;
    let three = Machine::new(3, "secret", &[one.address]).await;
    let all = [&one, &two, &three];
    until("all are linked", || {
        all.iter().all(|machine| {
            machine.cluster.members().iter().filter(|member| member.reachable).count() == 2
        })
    })
    .await;
    two.cluster.write(Kind::SESSION, "s", r#"{"name":"first"}"#.to_owned()).await.unwrap();
    until("all show it", || all.iter().all(|one| has(one, "s", r#"{"name":"first"}"#))).await;
    two.cluster.delete(Kind::SESSION, "s").await.unwrap();
    until("nobody shows it", || {
        all.iter().all(|one| one.cluster.directory().get(Kind::SESSION, "s").is_none())
    })
    .await;
    assert_eq!(three.cluster.name_of("node-1"), "machine 1");
}

#[tokio::test]
async fn a_wrong_token_opens_nothing() {
    let one = Machine::new(1, "secret", &[]).await;
    let two = Machine::new(2, "wrong", &[one.address]).await;
    until("an attempt has failed", || one.cluster.has_refused()).await;
    assert!(one.cluster.members().is_empty() && two.cluster.members().is_empty());
}

#[tokio::test]
async fn a_wrong_token_is_a_notice_at_the_machine_that_has_it() {
    let one = Machine::new(1, "secret", &[]).await;
    let two = Machine::new(2, "wrong", &[one.address]).await;
    let says = || two.cluster.notices().iter().any(|notice| notice.contains("another token"));
    until("the operator hears of it", says).await;
}

#[tokio::test]
async fn a_machine_is_linked_again_when_its_copy_is_gone() {
    let third = Machine::new(3, "secret", &[]).await;
    let first = Machine::new(1, "secret", &[third.address]).await;
    until("a link", || third.cluster.is_reachable("node-1")).await;
    let copy = Machine::new(1, "secret", &[third.address]).await;
    let is_out = || first.cluster.notices().iter().any(|notice| notice.contains("node id"));
    until("the copy takes its place", is_out).await;
    drop(copy);
    until("it is linked again", || {
        first.cluster.is_reachable("node-3") && third.cluster.is_reachable("node-1")
    })
    .await;
    // It was told many times, and is listed once.
    let notices = third.cluster.notices();
    let told = notices.iter().filter(|notice| notice.contains("there are two"));
    assert!(told.count() <= 2, "{notices:?}");
}

#[tokio::test]
async fn two_machines_with_one_id_are_not_linked_and_say_so() {
    let one = Machine::new(1, "secret", &[]).await;
    let copy = Machine::new(1, "secret", &[]).await;
    copy.cluster.set_peers(vec![one.address.to_string()]).await.unwrap();
    until("the operator hears of it", || !one.cluster.notices().is_empty()).await;
    assert!(one.cluster.notices()[0].contains("node id"), "{:?}", one.cluster.notices());
}

#[tokio::test]
async fn two_machines_with_one_id_that_meet_at_a_third_are_reported_at_it_and_at_one_of_them() {
    let third = Machine::new(2, "secret", &[]).await;
    let one = Machine::new(1, "secret", &[third.address]).await;
    until("they are linked", || third.cluster.is_reachable("node-1")).await;
    let copy = Machine::new(1, "secret", &[third.address]).await;
    let notices = |machine: &Machine| machine.cluster.notices().join(" ");
    until("the third reports it", || notices(&third).contains("same node id")).await;
    let is_reported =
        || [&one, &copy].iter().any(|machine| notices(machine).contains("this one's node id"));
    until("one of the two reports it", is_reported).await;
    assert!(third.cluster.is_reachable("node-1"), "the other one stays");
}

#[tokio::test]
async fn another_key_under_a_known_id_is_refused() {
    let one = Machine::new(1, "secret", &[]).await;
    let two = Machine::new(2, "secret", &[one.address]).await;
    until("its key is known", || !one.cluster.members().is_empty()).await;
    drop(two);
    until("it is gone", || !one.cluster.is_reachable("node-2")).await;
    let impostor = Machine::with_key(2, [9; 32], "secret", &[one.address]).await;
    until("an attempt has failed", || one.cluster.has_refused()).await;
    assert!(!one.cluster.is_reachable("node-2"));
    drop(impostor);
}

pub(crate) struct Echo;

impl Host for Echo {
    fn serve(&self, mut served: Served) {
        tokio::spawn(async move {
            while let Some(frame) = served.requests.next().await {
                if served.answers.send(frame).await.is_err() {
                    return;
                }
            }
        });
    }

    fn max_request(&self) -> usize {
        1024 * 1024
    }
}

pub(crate) struct Deaf;

impl Watcher for Deaf {
    fn changed(&self, _: &Key, _: Option<&Entry>, _: Option<&Entry>) {}
}

#[tokio::test]
async fn a_client_of_one_member_is_served_by_another() {
    let one = Machine::new(1, "secret", &[]).await;
    let two = Machine::new(2, "secret", &[one.address]).await;
    one.cluster.serve(Service::Workspace, Arc::new(Echo));
    one.cluster.watch(Arc::new(Deaf));
    let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
    let mut circuit = two.cluster.open("node-1", caller);
    let long = Frame::from("long ".repeat(100_000));
    circuit.send(long.clone()).unwrap();
    assert!(timeout(SOON, circuit.next()).await.unwrap() == Ok(long));
}
