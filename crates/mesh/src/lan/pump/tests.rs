//! A link's bytes between two ends in memory.

use std::sync::Mutex;

use bytes::BytesMut;
use protocol::mesh::{
    Dialect,
    cluster::{Hello, InferenceError, Piece, PieceKind, decode},
    frame,
};
use seal::{Identity, Initiator, Responder, prologue};
use testkit::{DEADLINE, eventually, within};
use tokio::{
    io::{AsyncReadExt, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    task::JoinHandle,
};

use super::*;
use crate::{
    link::{Carrier, LinkProperties, Order},
    peer::{Peer, PeerId},
    testing::{Server, machine, settings},
};

/// The received messages, in order.
#[derive(Default)]
struct Received {
    payloads: Mutex<Vec<Bytes>>,
    changes: Mutex<Vec<bool>>,
}

struct Recorder {
    heard: Arc<Received>,
    link: Arc<Link>,
}

impl LinkEvents for Recorder {
    fn opened(&self, _: &Arc<Link>, _: Option<&Hello>) {}

    fn closed(&self, _: &Arc<Link>, _: &str) {}

    fn received(&self, _: &Arc<Link>, payload: Bytes) {
        self.heard.payloads.lock().unwrap().push(payload);
    }

    fn changed(&self, _: &Arc<Peer>) {
        self.heard.changes.lock().unwrap().push(self.link.is_usable());
    }
}

impl Received {
    fn count(&self) -> usize {
        self.payloads.lock().unwrap().len()
    }

    /// The received messages that are no heartbeats.
    fn others(&self) -> Vec<Bytes> {
        let payloads = self.payloads.lock().unwrap();
        payloads.iter().filter(|payload| !payload.starts_with(b"{\"heartbeat\"")).cloned().collect()
    }
}

/// One end of a link that runs.
struct End {
    machine: Arc<ThisMachine>,
    link: Arc<Link>,
    heard: Arc<Received>,
    why: JoinHandle<String>,
}

fn end(io: DuplexStream, seals: Option<(Sealer, Opener)>) -> End {
    let (link, outgoing) = Link::new(LinkProperties {
        peer: PeerId::Device("peer".into()),
        carrier: Carrier::Lan("192.0.2.7:1".parse().unwrap()),
        sealed: seals.is_some(),
        dialect: Dialect::Flat,
        warren: true,
        opened_here: true,
        proved: true,
        order: Order::default(),
    });
    let heard = Arc::new(Received::default());
    let events = Recorder { heard: Arc::clone(&heard), link: Arc::clone(&link) };
    let machine = machine(1, settings(), Server::still().scheduler);
    let peers = Peers::default();
    peers.link(&link, |_, _| true).unwrap();
    let (reader, writer) = split(io);
    let running = {
        let (machine, link) = (Arc::clone(&machine), Arc::clone(&link));
        let frames = Frames::new(reader, writer);
        async move {
            let what = Run { machine: &machine, peers: &peers, events: &events, link: &link };
            run(what, outgoing, frames, seals).await
        }
    };
    End { machine, link, heard, why: tokio::spawn(running) }
}

type Seals = (Sealer, Opener);

fn seals() -> (Seals, Seals) {
    let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let prologue = prologue::lan(&one.node_id(), &other.node_id());
    let mut initiator = Initiator::new(&one, &other.node_id(), None, &prologue).unwrap();
    let mut responder = Responder::new(&other, None, &prologue).unwrap();
    responder.read(&initiator.write(b"").unwrap(), &one.node_id()).unwrap();
    let (second, answered) = responder.finish(b"").unwrap();
    let (sealed, _) = initiator.finish(&second).unwrap();
    (sealed.split(), answered.split())
}

fn pair(sealed: bool) -> (End, End) {
    let (one, other) = duplex(64 * 1024);
    let (near, far) = if sealed {
        let (near, far) = seals();
        (Some(near), Some(far))
    } else {
        (None, None)
    };
    (end(one, near), end(other, far))
}

fn piece(number: u32, bytes: usize) -> Piece {
    let length = bytes as u32;
    let slice = vec![number as u8; bytes].into();
    Piece {
        kind: PieceKind::Data,
        transfer: [7; 16],
        file: 0,
        piece: number,
        offset: 0,
        length,
        slice,
    }
}

fn words(words: &str) -> ClusterMessage {
    let (request_id, error_message) = ("r".into(), words.to_owned());
    let (code, status, body) = (None, None, None);
    ClusterMessage::InferenceError(InferenceError { request_id, error_message, code, status, body })
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order_sealed_or_not() {
    for sealed in [false, true] {
        let (near, far) = pair(sealed);
        let long = "x".repeat(300_000);
        for said in ["1", long.as_str(), "3"] {
            near.link.say(&words(said)).await.unwrap();
        }
        eventually("what was sent is heard", DEADLINE, async || far.heard.others().len() == 3)
            .await;
        let heard = far.heard.others();
        for (payload, said) in heard.iter().zip(["1", long.as_str(), "3"]) {
            let decoded = decode(payload).unwrap().message;
            assert!(
                matches!(decoded, ClusterMessage::InferenceError(it) if it.error_message == said)
            );
        }
        near.link.close("enough");
        let [near, far] = [near, far].map(|end| end.why);
        assert_eq!(within("the end of a link", near).await.unwrap(), "enough");
        assert_eq!(within("the end of a link", far).await.unwrap(), "its peer closed it: enough");
    }
}

#[tokio::test]
async fn pieces_arrive_as_they_were_sent_whatever_their_size() {
    let (near, far) = pair(true);
    let sizes = [0, 1, RECORD - 33, RECORD, RECORD + 1, 2 * RECORD, 1 << 20];
    for (number, size) in sizes.into_iter().enumerate() {
        near.link.send(piece(number as u32, size)).await.unwrap();
    }
    eventually("what was sent is heard", DEADLINE, async || {
        far.heard.others().len() == sizes.len()
    })
    .await;
    for (number, payload) in far.heard.others().into_iter().enumerate() {
        assert_eq!(Piece::decode(payload), Some(piece(number as u32, sizes[number])));
    }
}

#[tokio::test(start_paused = true)]
async fn both_ends_say_how_they_are_at_once_and_every_5_seconds() {
    let (near, far) = pair(true);
    tokio::time::sleep(Duration::from_secs(21)).await;
    assert_eq!((near.heard.count(), far.heard.count()), (5, 5));
}

/// The other end in the hands of a test.
struct Hand {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

impl Hand {
    /// All that it was sent, as text as far as it is.
    async fn rest(&mut self) -> String {
        let mut said = Vec::new();
        self.reader.read_to_end(&mut said).await.unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }
}

fn hand(seals: Option<Seals>, room: usize) -> (End, Hand) {
    let (one, other) = duplex(room);
    let (reader, writer) = split(other);
    (end(one, seals), Hand { reader, writer })
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_degraded_after_15_seconds_and_left_after_30() {
    let (near, mut hand) = hand(None, 1 << 20);
    let second = Duration::from_secs(1);
    tokio::time::sleep(15 * second + second / 2).await;
    assert!(!near.link.is_usable() && !near.link.is_closed());
    let mut frame = BytesMut::new();
    frame::put(&mut frame, b"{}");
    hand.writer.write_all(&frame).await.unwrap();
    tokio::time::sleep(second / 2).await;
    assert!(near.link.is_usable());
    assert_eq!(*near.heard.changes.lock().unwrap(), [false, true]);
    tokio::time::sleep(29 * second).await;
    assert!(!near.link.is_closed());
    assert_eq!(
        within("the end of a link", near.why).await.unwrap(),
        "nothing was heard of its peer for 30 s"
    );
    let said = hand.rest().await;
    assert!(
        said.ends_with(r#"{"linkClosed":{"reason":"nothing was heard of its peer for 30 s"}}"#)
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_left() {
    let (near, mut hand) = hand(None, 64);
    let mut frame = BytesMut::new();
    frame::put(&mut frame, b"{}");
    let talks = tokio::spawn(async move {
        while hand.writer.write_all(&frame).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        hand
    });
    assert_eq!(near.why.await.unwrap(), "its peer took nothing of what it was sent for 30 s");
    drop(talks);
}

#[tokio::test]
async fn a_frame_of_4_gib_ends_the_link_and_the_reason_is_told() {
    let (near, mut hand) = hand(None, 1 << 16);
    hand.writer.write_all(&[0xff; 4]).await.unwrap();
    let why = within("the end of a link", near.why).await.unwrap();
    assert!(why.contains("4294967295 bytes"), "{why}");
    let said = hand.rest().await;
    assert!(said.contains(r#"{"linkClosed":{"reason":"a frame of 4294967295 bytes"#), "{said}");
}

#[tokio::test]
async fn empty_frames_and_nonsense_cost_no_link() {
    let (near, mut hand) = hand(None, 1 << 16);
    let mut frames = BytesMut::new();
    for payload in ["", "null", "{}", "{\"linkClosed\":7}", ""] {
        frame::put(&mut frames, payload.as_bytes());
    }
    hand.writer.write_all(&frames).await.unwrap();
    eventually("what was sent is heard", DEADLINE, async || {
        near.machine.counts.bad_by_kind().values().sum::<u64>() == 2
    })
    .await;
    assert_eq!(near.heard.others(), ["null", "{}", "{\"linkClosed\":7}"]);
    assert!(!near.link.is_closed());
}

#[tokio::test]
async fn a_record_that_is_forged_cut_or_sent_twice_ends_a_sealed_link() {
    let spoil: [fn(&mut Vec<u8>); 3] = [
        |record| record[10] ^= 1,
        |record| {
            record.truncate(record.len() - 1);
            record[3] -= 1;
        },
        |record| record.extend_from_within(..),
    ];
    for spoil in spoil {
        let (near, (mut sealer, _)) = seals();
        let (near, mut hand) = hand(Some(near), 1 << 16);
        let mut record = Vec::new();
        sealer.payload(b"{}", &mut record).unwrap();
        spoil(&mut record);
        hand.writer.write_all(&record).await.unwrap();
        let why = within("the end of a link", near.why).await.unwrap();
        assert!(why.contains("does not open"), "{why}");
        assert!(near.heard.others().len() < 2);
    }
}

#[tokio::test]
async fn a_record_longer_than_any_ends_a_sealed_link() {
    let (near, _far) = seals();
    let (near, mut hand) = hand(Some(near), 1 << 16);
    hand.writer.write_all(&65_536_u32.to_be_bytes()).await.unwrap();
    let why = within("the end of a link", near.why).await.unwrap();
    assert!(why.contains("65536 bytes"), "{why}");
}

#[tokio::test]
async fn messages_after_the_close_of_a_link_are_ignored() {
    let (near, mut hand) = hand(None, 1 << 16);
    near.link.close("enough");
    let mut frame = BytesMut::new();
    frame::put(&mut frame, b"{\"late\":{}}");
    // It may be gone by now.
    let _ = hand.writer.write_all(&frame).await;
    drop(hand);
    assert_eq!(within("the end of a link", near.why).await.unwrap(), "enough");
    assert_eq!(near.heard.count(), 0);
}

#[tokio::test]
async fn a_peer_that_leaves_is_noticed() {
    let (near, hand) = hand(None, 1 << 16);
    drop(hand);
    let why = within("the end of a link", near.why).await.unwrap();
    assert!(why.contains("closed the connection") || why.contains("failed"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_does_not_wait_behind_answers_and_pieces() {
    // Each read takes so little that everything waits.
    let (near, mut hand) = hand(None, 1 << 10);
    let filling = {
        let link = Arc::clone(&near.link);
        tokio::spawn(async move {
            for number in 0..8 {
                link.say(&words(&"x".repeat(200_000))).await?;
                link.send(piece(number, 200_000)).await?;
            }
            Ok::<_, crate::link::LinkClosed>(())
        })
    };
    let mut seen = BytesMut::new();
    let mut since_beat = 0;
    let mut longest = 0;
    let mut part = [0; 1_000];
    while !filling.is_finished() || since_beat < 1_000_000 {
        let Ok(Ok(read)) = timeout(Duration::from_secs(4), hand.reader.read(&mut part)).await
        else {
            break;
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        seen.extend_from_slice(&part[..read]);
        while let Some(frame) = frame::take(&mut seen, MAX_FRAME).unwrap() {
            since_beat += frame.len();
            if frame.starts_with(b"{\"heartbeat\"") {
                longest = longest.max(since_beat);
                since_beat = 0;
            }
        }
        // This end lives, too.
        hand.writer.write_all(b"\0\0\0\x02{}").await.unwrap();
    }
    // 100 KB a second, a heartbeat every 5 s, behind what is being written: two batches at most.
    assert!(longest <= 500_000 + 2 * (BATCH + 200_000), "{longest}");
}
