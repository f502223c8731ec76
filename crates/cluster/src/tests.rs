//! Members over real sockets.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base::Secret;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use protocol::workspace::Role;
use replica::{Entry, Key, Kind};
use seal::Identity;
use store::VolatileStore;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use wire::Frame;

use super::*;

/// Nothing here takes longer.
const SOON: Duration = Duration::from_secs(20);

struct Machine {
    cluster: Cluster,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cluster.shut_down();
        self.serving.abort();
    }
}

/// A member with this number, which dials these peers.
async fn machine(number: u8, token: &str, peers: &[SocketAddr]) -> Machine {
    member(number, [number; 32], token, peers).await
}

/// The same with another key.
async fn member(number: u8, key: [u8; 32], token: &str, peers: &[SocketAddr]) -> Machine {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings {
        token: Some(Secret::from(token.to_owned())),
        peers: peers.iter().map(ToString::to_string).collect(),
        name: format!("machine {number}"),
        addresses: vec![address.to_string()],
        heartbeat: Duration::from_millis(100),
        ..Settings::default()
    };
    let parts = Parts {
        node_id: format!("node-{number}"),
        identity: Identity::from_seed(key),
        store: Arc::new(VolatileStore::default()),
    };
    let cluster = Cluster::start(settings, parts).await.unwrap();
    let serving = tokio::spawn(serve(listener, cluster.clone()));
    Machine { cluster, address, serving }
}

async fn serve(listener: TcpListener, cluster: Cluster) {
    loop {
        let (socket, from) = listener.accept().await.unwrap();
        let cluster = cluster.clone();
        let answer = service_fn(move |mut request| {
            let answer = cluster.accept(&mut request, from.ip());
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(connection.with_upgrades());
    }
}

/// Waits until it holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}"));
}

fn has(machine: &Machine, id: &str, value: &str) -> bool {
    let entry = machine.cluster.directory().get(Kind::SESSION, id);
    entry.is_some_and(|entry| &*entry.value == value)
}

#[tokio::test]
async fn three_members_that_know_one_of_them_find_each_other_and_show_the_same() {
    let one = machine(1, "secret", &[]).await;
    let two = machine(2, "secret", &[one.address]).await;
    let three = machine(3, "secret", &[one.address]).await;
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
    let one = machine(1, "secret", &[]).await;
    let two = machine(2, "wrong", &[one.address]).await;
    until("an attempt has failed", || one.cluster.has_refused()).await;
    assert!(one.cluster.members().is_empty() && two.cluster.members().is_empty());
}

#[tokio::test]
async fn two_machines_with_one_id_are_not_linked_and_say_so() {
    let one = machine(1, "secret", &[]).await;
    let copy = machine(1, "secret", &[]).await;
    copy.cluster.set_peers(vec![one.address.to_string()]).await.unwrap();
    until("the operator hears of it", || !one.cluster.notices().is_empty()).await;
    assert!(one.cluster.notices()[0].contains("node id"), "{:?}", one.cluster.notices());
}

#[tokio::test]
async fn another_key_under_a_known_id_is_refused() {
    let one = machine(1, "secret", &[]).await;
    let two = machine(2, "secret", &[one.address]).await;
    until("its key is known", || !one.cluster.members().is_empty()).await;
    drop(two);
    until("it is gone", || !one.cluster.is_reachable("node-2")).await;
    let impostor = member(2, [9; 32], "secret", &[one.address]).await;
    until("an attempt has failed", || one.cluster.has_refused()).await;
    assert!(!one.cluster.is_reachable("node-2"));
    drop(impostor);
}

struct Echo;

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

struct Deaf;

impl Watcher for Deaf {
    fn changed(&self, _: &Key, _: Option<&Entry>, _: Option<&Entry>) {}
}

#[tokio::test]
async fn a_client_of_one_member_is_served_by_another() {
    let one = machine(1, "secret", &[]).await;
    let two = machine(2, "secret", &[one.address]).await;
    one.cluster.serve(Arc::new(Echo), Arc::new(Deaf));
    let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
    let mut circuit = two.cluster.open("node-1", caller);
    let long = Frame::from("long ".repeat(100_000));
    circuit.send(long.clone()).unwrap();
    assert!(timeout(SOON, circuit.next()).await.unwrap() == Ok(long));
}
