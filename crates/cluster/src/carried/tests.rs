//! Carried links: over wires that the test sees, and between whole members.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use base::{NodeId, Secret};
use protocol::workspace::Role;
use replica::Kind;
use seal::{Identity, PeerSecret};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use wire::{Frame, OutboxReader};

use super::{frame::Piece, waiting::MOST_WAITING, *};
use crate::{
    Caller, Circuit, Service, Settings,
    link::{
        carrier::CarrierEnd,
        frame::{Channel, LinkFrame, PIECE},
        handshake::{self, Choice},
        hello::Hello,
    },
    testing::{Machine, SOON, until},
    tests::{Deaf, Echo},
    tokens::book::Tag,
};

/// Members that only carry, and wires between them.
struct Net {
    members: Vec<Arc<Carrying>>,
    /// The bytes that went over each wire.
    seen: Arc<Mutex<Vec<u8>>>,
    next: u64,
}

/// A wire in one direction.
struct Wire(JoinHandle<()>);

impl Drop for Wire {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A link between two of them.
struct Joined {
    number: u64,
    wires: [Wire; 2],
}

impl Net {
    fn new(count: usize) -> Self {
        let member = |number| Arc::new(Carrying::new(format!("node-{number}")));
        Self { members: (0..count).map(member).collect(), seen: Arc::default(), next: 0 }
    }

    /// Members in a line, each linked to the next, that know all ways.
    async fn line(count: usize) -> (Self, Vec<Joined>) {
        let mut net = Self::new(count);
        let joined = (1..count).map(|number| net.join(number - 1, number)).collect();
        let (first, last) = (net.members[0].clone(), format!("node-{}", count - 1));
        until("the way is known", || !first.ways_to(&last).is_empty()).await;
        (net, joined)
    }

    fn join(&mut self, one: usize, other: usize) -> Joined {
        self.next += 1;
        let outbox = |from: usize, to: usize| {
            let (outbox, frames) = Outbox::detached();
            let to = self.members[to].node.clone();
            self.members[from].linked(self.next, &to, outbox);
            frames
        };
        let (there, back) = (outbox(one, other), outbox(other, one));
        let wires = [self.wire(there, other), self.wire(back, one)];
        Joined { number: self.next, wires }
    }

    fn wire(&self, mut frames: OutboxReader, to: usize) -> Wire {
        let (to, link) = (Arc::clone(&self.members[to]), self.next);
        let seen = Arc::clone(&self.seen);
        Wire(tokio::spawn(async move {
            while let Some(Frame::Binary(bytes)) = frames.next().await {
                seen.lock().unwrap().extend_from_slice(&bytes);
                if let Ok(LinkFrame::Carried(bytes)) = LinkFrame::decode(bytes) {
                    to.received(link, bytes);
                }
            }
        }))
    }

    fn answers(&self, member: usize) -> mpsc::Receiver<CarriedEnd> {
        let (ends, answered) = mpsc::channel(MOST_PAIRS + 1);
        self.members[member].set_answer(Box::new(move |_, end| drop(ends.try_send(end))));
        answered
    }

    fn open(&self, from: usize, through: usize, to: usize) -> CarriedEnd {
        let through = &self.members[through].node;
        self.members[from].open(through, &format!("node-{to}")).unwrap()
    }
}

async fn next(end: &mut CarriedEnd) -> Result<Bytes, String> {
    timeout(SOON, end.next()).await.unwrap().map_err(|error| error.to_string())
}

fn hello(node: &str) -> Hello {
    Hello {
        node_id: node.to_owned(),
        incarnation: 1,
        dial: 1,
        name: String::new(),
        addresses: Vec::new(),
        speaks: (1, 1),
        token: Tag::default(),
    }
}

#[tokio::test]
async fn messages_of_any_length_arrive_over_four_members_and_these_see_only_sealed_bytes() {
    let (net, _joined) = Net::line(6).await;
    let mut answers = net.answers(5);
    let secret = PeerSecret::cluster(&Secret::from("secret".to_owned()));
    let [one, other] = [[1; 32], [2; 32]].map(Identity::from_seed);
    let carrier = |end| crate::link::carrier::Carrier::Carried(end);
    let (from, to) = (one.node_id(), other.node_id());
    let opened = carrier(net.open(0, 1, 5));
    let answered = carrier(timeout(SOON, answers.recv()).await.unwrap().unwrap());
    let own = hello("node-0");
    let choice = Choice { other_secret: None, answer: Ok(hello("node-5")) };
    let (opened, answered) = tokio::join!(
        handshake::initiate(opened, &one, to, &secret, &own),
        handshake::respond(answered, &other, from, &secret, async |_| choice),
    );
    let (mut opened, mut answered) = (opened.unwrap(), answered.unwrap());
    answered.carrier.set_max_message(1024 * 1024);
    let long = b"nobody else reads this ".repeat(10_000);
    let mut records = Vec::new();
    crate::link::sealed::seal_frame(&mut opened.sealer, &long, &mut records).unwrap();
    opened.carrier.outbox().push(Bytes::from(records)).unwrap();
    let message = timeout(SOON, answered.carrier.next()).await.unwrap().unwrap();
    let payloads = crate::link::sealed::open_records(&mut answered.opener, message).unwrap();
    assert!(payloads.concat() == long);
    let seen = net.seen.lock().unwrap();
    let has = |text: &[u8]| seen.windows(text.len()).any(|window| window == text);
    assert!(seen.len() > 5 * long.len(), "all of it went over five links");
    assert!(has(b"node-5") && !has(b"nobody else"));
}

#[tokio::test]
async fn a_way_of_more_than_four_members_or_in_a_circle_is_refused() {
    let (net, _joined) = Net::line(3).await;
    let open = |carriers: &[&str]| {
        let mut state = net.members[0].lock();
        let link = state.link_to("node-1").unwrap();
        let (place, waiting) = state.out(link).unwrap();
        let carriers = carriers.iter().map(ToString::to_string).collect();
        let (to, from) = ("node-2".to_owned(), "node-0".to_owned());
        waiting.put_last(Body::Open(Open { to, from, carriers }));
        net.members[0].end(&mut state, place, Through::Member("node-1".to_owned()), waiting)
    };
    for carriers in [&["a", "b", "c", "d"][..], &["node-1"]] {
        let mut refused = open(carriers);
        assert!(next(&mut refused).await.unwrap_err().contains("longer than 4"));
    }
    assert_eq!(net.members[1].pairs(), 0);
    let mut unknown = net.open(0, 1, 9);
    assert!(next(&mut unknown).await.unwrap_err().contains("no link leads on"));
}

#[tokio::test]
async fn the_sixty_fifth_carried_link_is_refused_with_words_until_one_ends() {
    let (net, _joined) = Net::line(3).await;
    let mut answers = net.answers(2);
    let mut opened: Vec<_> = (0..MOST_PAIRS).map(|_| net.open(0, 1, 2)).collect();
    for _ in 0..MOST_PAIRS {
        std::mem::forget(timeout(SOON, answers.recv()).await.unwrap().unwrap());
    }
    let mut refused = net.open(0, 1, 2);
    let end = timeout(SOON, refused.next()).await.unwrap().unwrap_err();
    assert!(matches!(&end, CarrierEnd::Refused(words) if words.contains("64")), "{end}");
    drop(opened.pop());
    until("there is room again", || net.members[1].pairs() < MOST_PAIRS).await;
    let _one_more = net.open(0, 1, 2);
    timeout(SOON, answers.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_cut_anywhere_ends_a_carried_link_at_both_ends_at_once() {
    for cut in 0..3 {
        let (net, joined) = Net::line(4).await;
        let mut answers = net.answers(3);
        let mut opened = net.open(0, 1, 3);
        let mut answered = timeout(SOON, answers.recv()).await.unwrap().unwrap();
        let number = joined[cut].number;
        net.members[cut].unlinked(number);
        net.members[cut + 1].unlinked(number);
        for end in [&mut opened, &mut answered] {
            assert!(next(end).await.unwrap_err().contains("a link that carried it ended"));
        }
        until("nothing is left of it", || {
            net.members.iter().all(|member| member.lock().ports.is_empty())
        })
        .await;
    }
}

#[tokio::test]
async fn words_with_which_one_end_closes_come_after_all_that_it_sent() {
    let (net, _joined) = Net::line(3).await;
    let mut answers = net.answers(2);
    let mut opened = net.open(0, 1, 2);
    let answered = timeout(SOON, answers.recv()).await.unwrap().unwrap();
    answered.outbox().push(Bytes::from_static(b"last")).unwrap();
    answered.close(1008, "no more");
    assert_eq!(next(&mut opened).await.unwrap(), "last");
    assert!(matches!(opened.next().await, Err(CarrierEnd::Refused(words)) if words == "no more"));
}

#[tokio::test]
async fn one_that_is_not_read_holds_back_only_itself_and_takes_bounded_memory() {
    let (mut net, _joined) = Net::line(3).await;
    // Another way on from the member in the middle, which is cut off after the way is known.
    net.members.push(Arc::new(Carrying::new("node-3".to_owned())));
    let slow = net.join(1, 3);
    until("the way is known", || !net.members[0].ways_to("node-3").is_empty()).await;
    let mut answers = net.answers(2);
    slow.wires[0].0.abort();
    let stuck = net.open(0, 1, 3);
    until("it is carried", || net.members[1].pairs() == 1).await;
    let mut sent = 0;
    while timeout(Duration::from_millis(200), stuck.outbox().room()).await.is_ok() {
        stuck.outbox().push(Bytes::from(vec![0; 100_000])).unwrap();
        sent += 100_000;
    }
    assert!(sent < 2 * 1024 * 1024, "{sent}");
    assert!((1_000_000..1_300_000).contains(&waiting(&net.members[1])), "a window waits");

    let free = net.open(0, 1, 2);
    let mut answered = timeout(SOON, answers.recv()).await.unwrap().unwrap();
    answered.set_max_message(1024 * 1024);
    for number in 0..50 {
        free.outbox().send(Bytes::from(vec![number; 100_000])).await.unwrap();
        assert_eq!(next(&mut answered).await.unwrap(), vec![number; 100_000]);
    }
}

#[tokio::test]
async fn a_member_that_keeps_to_no_window_loses_that_link_only() {
    let (net, joined) = Net::line(3).await;
    let mut answers = net.answers(2);
    let mut other = net.open(0, 1, 2);
    let other_answered = timeout(SOON, answers.recv()).await.unwrap().unwrap();
    let mut opened = net.open(0, 1, 2);
    let mut answered = timeout(SOON, answers.recv()).await.unwrap().unwrap();
    // Nobody takes what arrives at its end.
    let channel = Channel { number: 1, to_opener: false };
    for _ in 0..=MOST_WAITING / PIECE + 1 {
        let piece = Body::Piece(Piece { more: true, bytes: vec![0; PIECE].into() });
        net.members[1].received(joined[0].number, CarriedFrame::On(channel, piece).encode());
    }
    assert!(next(&mut opened).await.unwrap_err().contains("more than the bound"));
    answered.set_max_message(MOST_WAITING);
    let end = next(&mut answered).await.unwrap_err();
    assert!(end.contains("bound"), "{end}");
    other_answered.outbox().push(Bytes::from_static(b"still here")).unwrap();
    assert_eq!(next(&mut other).await.unwrap(), "still here");
}

#[tokio::test]
async fn nothing_is_carried_over_a_link_that_is_carried_itself() {
    let (net, _joined) = Net::line(2).await;
    let open = Open { to: "node-1".into(), from: "x".into(), carriers: Vec::new() };
    let channel = Channel { number: 9, to_opener: false };
    // Only direct links have a number there.
    for frame in [
        CarriedFrame::On(channel, Body::Open(open)),
        CarriedFrame::Ways(Reach([("node-9".to_owned(), 1)].into())),
    ] {
        net.members[1].received(77, frame.encode());
    }
    assert!(net.members[1].lock().ports.is_empty());
    assert!(net.members[1].ways_to("node-9").is_empty());
}

/// The frames that wait at a member for links that it carries.
fn waiting(member: &Carrying) -> usize {
    let state = member.lock();
    let of = |port: &Port| match port {
        Port::On(_, waiting) => waiting.bytes(),
        Port::End(_) => 0,
    };
    state.ports.values().map(of).sum()
}

/// The settings of a machine that dials only these.
fn dials(number: u8, peers: &[SocketAddr]) -> Settings {
    Settings {
        token: Some(Secret::from("secret".to_owned())),
        peers: peers.iter().map(ToString::to_string).collect(),
        discovery: false,
        carry_after: Duration::from_millis(100),
        ..Machine::settings(number)
    }
}

async fn machine(number: u8, peers: &[SocketAddr]) -> Machine {
    let machine = Machine::start(number, [number; 32], dials(number, peers)).await;
    machine.cluster.serve(Service::Workspace, Arc::new(Echo));
    machine.cluster.watch(Arc::new(Deaf));
    machine
}

/// Through whom one machine is linked to another; `None` if it is not linked, or directly.
fn through(from: &Machine, to: &str) -> Option<String> {
    let members = from.cluster.members().into_iter();
    let to = members.filter(|member| member.reachable).find(|it| it.member.node_id == to);
    match to?.through? {
        Through::Member(node) => Some(node),
        Through::Mesh => Some("the mesh".to_owned()),
    }
}

fn circuit(from: &Machine, to: &str) -> Circuit {
    let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
    from.cluster.open(to, caller)
}

async fn echoes(circuit: &mut Circuit, text: &str) {
    let sent = Frame::from(text.repeat(50_000));
    circuit.send(sent.clone()).unwrap();
    assert!(timeout(SOON, circuit.next()).await.unwrap() == Ok(sent));
}

#[tokio::test]
async fn two_members_that_see_only_a_third_are_linked_through_it_and_serve_each_others_clients() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    let is_carried = |from: &Machine, to| through(from, to).as_deref() == Some("node-2");
    until("both say so", || is_carried(&first, "node-3") && is_carried(&last, "node-1")).await;
    assert!(through(&first, "node-2").is_none() && through(&middle, "node-3").is_none());
    assert_eq!(middle.cluster.shared().carrying.pairs(), 1, "the lower id opened it, once");
    for (from, to) in [(&first, "node-3"), (&last, "node-1")] {
        echoes(&mut circuit(from, to), "there and back ").await;
    }
}

#[tokio::test]
async fn a_carrier_that_is_gone_is_replaced_by_another_and_circuits_go_on() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    until("they are linked", || through(&first, "node-3").is_some()).await;
    let mut open = circuit(&first, "node-3");
    echoes(&mut open, "before ").await;
    drop(middle);
    let is_lost = |from: &Machine, to| !from.cluster.is_reachable(to);
    until("both are told", || is_lost(&first, "node-3") && is_lost(&last, "node-1")).await;
    let another = machine(4, &[first.address, last.address]).await;
    until("it carries them", || through(&first, "node-3").as_deref() == Some("node-4")).await;
    echoes(&mut open, "after ").await;
    drop(another);
}

#[tokio::test]
async fn a_direct_link_takes_the_place_of_a_carried_one_and_gives_it_back() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    until("they are linked", || through(&first, "node-3").is_some()).await;
    let mut open = circuit(&first, "node-3");
    echoes(&mut open, "carried ").await;
    // The higher id dials this one.
    let peers = [middle.address, first.address].map(|address| address.to_string());
    last.cluster.set_peers(peers.to_vec()).await.unwrap();
    let is_direct = || first.cluster.shared().links.has_direct("node-3");
    until("it is direct", is_direct).await;
    until("nothing is carried", || middle.cluster.shared().carrying.pairs() == 0).await;
    echoes(&mut open, "direct ").await;
    last.cluster.set_peers(vec![middle.address.to_string()]).await.unwrap();
    until("it is carried again", || through(&first, "node-3").is_some()).await;
    echoes(&mut open, "carried ").await;
}

#[tokio::test]
async fn a_member_that_opens_a_link_in_anothers_name_gets_none_and_harms_none() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    until("they are linked", || through(&last, "node-1").is_some()).await;
    let mut open = circuit(&first, "node-3");
    echoes(&mut open, "before ").await;
    // It knows the token, and not the key of the one that it names.
    let mut net = Net::new(2);
    net.members[0] = Arc::new(Carrying::new("node-1".to_owned()));
    net.members[1] = Arc::clone(&last.cluster.shared().carrying);
    net.next = 900;
    let _joined = net.join(0, 1);
    let end = crate::link::carrier::Carrier::Carried(net.open(0, 1, 3));
    let secret = PeerSecret::cluster(&Secret::from("secret".to_owned()));
    let (own, to) = (Identity::from_seed([9; 32]), Identity::from_seed([3; 32]).node_id());
    let forged = handshake::initiate(end, &own, to, &secret, &hello("node-1")).await;
    assert!(forged.is_err(), "it is not who it says");
    net.members[0] = Arc::new(Carrying::new("node-9".to_owned()));
    let _joined = net.join(0, 1);
    let mut unknown = net.open(0, 1, 3);
    assert!(next(&mut unknown).await.unwrap_err().contains("not known here"));
    assert!(through(&last, "node-1").is_some(), "the true one is linked as before");
    echoes(&mut open, "after ").await;
}

#[tokio::test]
async fn an_object_is_the_same_everywhere_when_its_only_way_is_carried() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    until("they are linked", || through(&last, "node-1").is_some()).await;
    first.cluster.write(Kind::SESSION, "s", r#"{"name":"first"}"#.to_owned()).await.unwrap();
    let has = || last.cluster.directory().get(Kind::SESSION, "s").is_some();
    until("the other end shows it", has).await;
}

/// A mesh in which every machine reaches every other one.
#[derive(Default)]
struct FakeMesh(Mutex<BTreeMap<NodeId, crate::Cluster>>);

/// One machine of it.
struct InMesh(NodeId, Arc<FakeMesh>);

impl MeshWay for InMesh {
    fn leads_to(&self, key: NodeId) -> bool {
        self.1.0.lock().unwrap().contains_key(&key)
    }

    fn send(&self, key: NodeId, bytes: Bytes) -> Sending<'_> {
        let to = self.1.0.lock().unwrap().get(&key).cloned();
        if let Some(to) = &to {
            to.received_over_mesh(self.0, bytes);
        }
        Box::pin(std::future::ready(to.map(drop).ok_or("it is gone".to_owned())))
    }
}

fn join_mesh(mesh: &Arc<FakeMesh>, number: u8, machine: &Machine) {
    let key = Identity::from_seed([number; 32]).node_id();
    mesh.0.lock().unwrap().insert(key, machine.cluster.clone());
    machine.cluster.use_mesh(Arc::new(InMesh(key, Arc::clone(mesh))));
}

#[tokio::test]
async fn members_that_no_member_links_are_linked_over_the_mesh_while_it_leads_there() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let last = machine(3, &[middle.address]).await;
    until("they are linked", || through(&first, "node-3").is_some()).await;
    let mut open = circuit(&first, "node-3");
    echoes(&mut open, "member ").await;
    let mesh = Arc::<FakeMesh>::default();
    join_mesh(&mesh, 1, &first);
    join_mesh(&mesh, 3, &last);
    assert_eq!(through(&first, "node-3").as_deref(), Some("node-2"), "a member goes first");
    drop(middle);
    let is_by_mesh = |from: &Machine, to| through(from, to).as_deref() == Some("the mesh");
    until("both say so", || is_by_mesh(&first, "node-3") && is_by_mesh(&last, "node-1")).await;
    echoes(&mut open, "mesh ").await;
    let [one, other] = [1, 3].map(|number| Identity::from_seed([number; 32]).node_id());
    mesh.0.lock().unwrap().clear();
    first.cluster.mesh_lost(other);
    last.cluster.mesh_lost(one);
    until("it is gone", || !first.cluster.is_reachable("node-3")).await;
}

#[tokio::test]
async fn the_mesh_is_used_for_members_alone_and_for_nothing_that_goes_further() {
    let middle = machine(2, &[]).await;
    let first = machine(1, &[middle.address]).await;
    let knows = || middle.cluster.members().iter().any(|it| it.member.key.is_some());
    until("the member is known", knows).await;
    let mesh = Arc::<FakeMesh>::default();
    join_mesh(&mesh, 1, &first);
    join_mesh(&mesh, 2, &middle);
    let [stranger, member] = [9, 1].map(|number| Identity::from_seed([number; 32]).node_id());
    let (to, from) = ("node-3".to_owned(), "node-1".to_owned());
    let open = Body::Open(Open { to, from, carriers: Vec::new() });
    let channel = Channel { number: 0, to_opener: false };
    let open = LinkFrame::Carried(CarriedFrame::On(channel, open).encode()).encode();
    let mesh_ways = || middle.cluster.shared().carrying.lock().mesh_links;
    middle.cluster.received_over_mesh(stranger, open.clone());
    assert_eq!(mesh_ways(), 0, "a stranger is not listened to");
    middle.cluster.received_over_mesh(member, open);
    assert_eq!((mesh_ways(), middle.cluster.shared().carrying.pairs()), (1, 0));
}
