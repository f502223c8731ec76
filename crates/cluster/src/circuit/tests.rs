//! Circuits between two machines, over links that the tests cut.

use bytes::Bytes;
use tokio::{task::JoinHandle, time::advance};

use super::*;
use crate::{
    circuit::end::{Piece, WINDOW},
    link::frame::PIECE,
};

const A: &str = "machine-a";
const B: &str = "machine-b";

const PATIENCE: Duration = Duration::from_secs(15);

fn circuits() -> Arc<Circuits> {
    Arc::new(Circuits::new(PATIENCE))
}

/// Answers each request with itself.
struct Echo;

impl Host for Echo {
    fn serve(&self, mut served: Served) {
        tokio::spawn(async move {
            while let Some(frame) = served.requests.next().await {
                if served.answers.send(frame).await.is_err() {
                    return;
                }
            }
            served.done.cancel();
        });
    }

    fn max_request(&self) -> usize {
        4 * WINDOW
    }
}

/// Reads nothing, and keeps what it was given.
#[derive(Default)]
struct Deaf(Mutex<Vec<Served>>);

impl Host for Deaf {
    fn serve(&self, served: Served) {
        self.0.lock().unwrap().push(served);
    }

    fn max_request(&self) -> usize {
        WINDOW
    }
}

struct Pair {
    a: Arc<Circuits>,
    b: Arc<Circuits>,
    links: u64,
    wires: Vec<JoinHandle<()>>,
}

impl Pair {
    fn new(host: impl Host + 'static) -> Self {
        let (a, b) = (circuits(), circuits());
        b.set_host(Service::Workspace, Arc::new(host));
        Self { a, b, links: 0, wires: Vec::new() }
    }

    /// Links the two. `incarnation` is that of B.
    fn link(&mut self, incarnation: u64) {
        self.links += 1;
        let (to_b, from_a) = Outbox::detached();
        let (to_a, from_b) = Outbox::detached();
        self.a.linked(B, incarnation, Way { link: self.links, outbox: to_b });
        self.b.linked(A, 1, Way { link: self.links, outbox: to_a });
        self.wires = vec![wire(from_a, &self.b, A), wire(from_b, &self.a, B)];
    }

    /// Loses whatever is under way.
    fn cut(&mut self) {
        self.wires.drain(..).for_each(|wire| wire.abort());
        self.a.unlinked(B, self.links);
        self.b.unlinked(A, self.links);
    }

    fn open(&self) -> Circuit {
        let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
        self.a.open(B, Service::Workspace, caller)
    }
}

/// Carries the frames of one direction.
fn wire(mut from: OutboxReader, to: &Arc<Circuits>, node: &'static str) -> JoinHandle<()> {
    let to = Arc::clone(to);
    tokio::spawn(async move {
        while let Some(Frame::Binary(bytes)) = from.next().await {
            match LinkFrame::decode(bytes).unwrap() {
                LinkFrame::Control(text) => to.control(node, Control::decode(&text).unwrap()),
                frame => to.received(node, frame),
            }
        }
    })
}

fn numbered(number: u32) -> Frame {
    let mut bytes = vec![0; 6_000];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Frame::from(Bytes::from(bytes))
}

#[tokio::test(start_paused = true)]
async fn answers_come_once_and_in_order_however_often_the_link_is_cut() {
    let mut pair = Pair::new(Echo);
    let mut circuit = pair.open();
    for round in 0..20 {
        pair.link(7);
        for number in round * 50..(round + 1) * 50 {
            circuit.send(numbered(number)).unwrap();
        }
        // Some of it is lost on the way.
        for _ in 0..3 + round * 3 {
            tokio::task::yield_now().await;
        }
        pair.cut();
    }
    pair.link(7);
    for number in 0..1000 {
        assert!(circuit.next().await == Ok(numbered(number)), "frame {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_request_travels_beside_others() {
    let mut pair = Pair::new(Echo);
    pair.link(7);
    let (mut long, mut short) = (pair.open(), pair.open());
    let bytes = Frame::from(Bytes::from(vec![1; 2 * WINDOW + PIECE / 2]));
    long.send(bytes.clone()).unwrap();
    short.send("key".to_owned().into()).unwrap();
    assert_eq!(short.next().await, Ok("key".to_owned().into()));
    assert_eq!(long.next().await, Ok(bytes));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_be_reached_ends_the_circuit() {
    let mut pair = Pair::new(Echo);
    let mut circuit = pair.open();
    circuit.send("key".to_owned().into()).unwrap();
    assert_eq!(circuit.next().await, Err(Ended::Unreachable));
    pair.link(7);
    let mut circuit = pair.open();
    circuit.send("key".to_owned().into()).unwrap();
    assert!(circuit.next().await.is_ok());
    pair.cut();
    advance(PATIENCE - Duration::from_millis(1)).await;
    pair.link(7);
    circuit.send("again".to_owned().into()).unwrap();
    assert_eq!(circuit.next().await, Ok("again".to_owned().into()));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_restarted_ends_the_circuit() {
    let mut pair = Pair::new(Echo);
    pair.link(7);
    let mut circuit = pair.open();
    circuit.send("key".to_owned().into()).unwrap();
    circuit.next().await.unwrap();
    pair.cut();
    pair.link(8);
    assert_eq!(circuit.next().await, Err(Ended::Restarted));
}

#[tokio::test(start_paused = true)]
async fn a_circuit_to_the_models_is_served_by_them_over_every_link() {
    let mut pair = Pair::new(Deaf::default());
    pair.link(7);
    let caller = Caller { who: "session".to_owned(), role: Role::Write, member: None };
    let mut refused = pair.a.open(B, Service::Models, caller.clone());
    assert_eq!(refused.next().await, Err(Ended::Closed("it is starting".to_owned())));
    pair.b.set_host(Service::Models, Arc::new(Echo));
    let mut circuit = pair.a.open(B, Service::Models, caller);
    pair.cut();
    pair.link(7);
    circuit.send(numbered(1)).unwrap();
    assert_eq!(circuit.next().await.unwrap(), numbered(1));
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_the_far_end_forgot_is_not_begun_anew() {
    let mut pair = Pair::new(Echo);
    pair.link(7);
    let mut circuit = pair.open();
    circuit.send("key".to_owned().into()).unwrap();
    circuit.next().await.unwrap();
    pair.cut();
    pair.b = circuits();
    pair.b.set_host(Service::Workspace, Arc::new(Echo));
    pair.link(7);
    assert_eq!(circuit.next().await, Err(Ended::Restarted));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_has_its_requests_delivered() {
    let mut pair = Pair::new(Deaf::default());
    let deaf = Arc::new(Deaf::default());
    pair.b = circuits();
    pair.b.set_host(Service::Workspace, Arc::<Deaf>::clone(&deaf));
    let circuit = pair.open();
    circuit.send("last words".to_owned().into()).unwrap();
    drop(circuit);
    pair.link(7);
    let served = loop {
        tokio::task::yield_now().await;
        if let Some(served) = deaf.0.lock().unwrap().pop() {
            break served;
        }
    };
    let mut requests = served.requests;
    assert_eq!(requests.next().await, Some("last words".to_owned().into()));
    assert_eq!(requests.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_serving_end_that_reads_nothing_holds_back_only_its_own_client() {
    let mut pair = Pair::new(Deaf::default());
    pair.link(7);
    let circuit = pair.open();
    for number in 0..400 {
        circuit.send(numbered(number)).unwrap();
    }
    advance(Duration::from_secs(1)).await;
    let waiting = circuit.waiting();
    assert!(waiting > WINDOW / 2, "{waiting} bytes wait at the client's end");
    let way = pair.a.lock()[B].way.borrow().clone().unwrap();
    assert_eq!(way.outbox.queued(), 0, "the link is free for others");
}

#[tokio::test(start_paused = true)]
async fn a_far_end_that_ignores_the_window_is_cut_off() {
    let mut pair = Pair::new(Deaf::default());
    pair.link(7);
    let channel = Channel { number: 0, to_opener: false };
    let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
    pair.b.opened(A, 0, caller, false, Service::Workspace, None);
    for number in 0..10_000 {
        let piece = Piece { number, is_text: true, more: false, bytes: Bytes::from_static(b"x") };
        pair.b.received(A, LinkFrame::Piece(channel, piece));
    }
    assert!(pair.b.lock()[A].circuits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_member_has_so_many_circuits_open_here_and_own_ones_do_not_count() {
    let mut pair = Pair::new(Echo);
    pair.link(7);
    let caller = || Caller { who: "key".to_owned(), role: Role::Write, member: None };
    let own: Vec<_> =
        (0..MOST_GUESTS).map(|_| pair.b.open(A, Service::Workspace, caller())).collect();
    let opened = |number| {
        pair.b.opened(A, number, caller(), false, Service::Workspace, None);
        pair.b.lock()[A].guests()
    };
    assert_eq!(opened(0), 1, "beside {} own ones", own.len());
    assert_eq!((1..MOST_GUESTS as u32).map(opened).max(), Some(MOST_GUESTS));
    assert_eq!(opened(MOST_GUESTS as u32), MOST_GUESTS);
}
