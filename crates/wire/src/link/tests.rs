//! Links over pipes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, duplex};

use super::*;
use crate::Link;

fn pair(capacity: usize) -> ((Link, Outbox), (Link, Outbox)) {
    let (near, far) = duplex(capacity);
    (Link::new(Box::pin(near), Role::Server), Link::new(Box::pin(far), Role::Client))
}

#[tokio::test]
async fn frames_arrive_in_order_and_whole() {
    let ((mut server, _), (mut client, outbox)) = pair(1024);
    outbox.push("hello".to_owned()).unwrap();
    outbox.push(Bytes::from(vec![7; 100_000])).unwrap();
    let driver = tokio::spawn(async move { client.next().await });
    assert_eq!(server.next().await.unwrap(), Some("hello".to_owned().into()));
    assert_eq!(server.next().await.unwrap().unwrap().len(), 100_000);
    server.close(1000, "done").await;
    assert!(driver.await.unwrap().unwrap().is_none());
}

#[tokio::test]
async fn frames_that_are_here_are_taken_without_waiting_and_errors_are_not_lost() {
    let (near, mut far) = duplex(1024);
    let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
    assert_eq!(link.ready(), None);
    // Two texts, then a frame of an invalid kind.
    far.write_all(&[0x81, 1, b'a', 0x81, 1, b'b', 0x83, 0]).await.unwrap();
    assert_eq!(link.next().await.unwrap(), Some("a".to_owned().into()));
    assert_eq!(link.ready(), Some("b".to_owned().into()));
    assert_eq!(link.ready(), None);
    assert!(matches!(link.next().await, Err(LinkError::Protocol(_))));
}

#[tokio::test]
async fn frames_before_the_far_end_went_are_read_although_writing_fails() {
    let (near, mut far) = duplex(1024);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
    for letter in 0..2 * READS_BETWEEN_WRITES {
        far.write_all(&[0x81, 1, b'a' + u8::try_from(letter % 26).unwrap()]).await.unwrap();
    }
    drop(far);
    outbox.push("nobody hears this".to_owned()).unwrap();
    assert!(matches!(link.write_only().await, LinkError::Io(_)));
    for _ in 0..2 * READS_BETWEEN_WRITES {
        assert_eq!(link.next().await.unwrap().unwrap().len(), 1);
    }
    assert!(!matches!(link.next().await, Ok(Some(_))));
}

/// The far end has reset the connection. This shows when it is written to, and only later when it is
/// read.
struct Reset {
    came: &'static [u8],
    waits: bool,
}

impl AsyncRead for Reset {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.waits) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        buf.put_slice(std::mem::take(&mut self.came));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Reset {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn frames_before_a_reset_are_read_although_the_reset_shows_first() {
    let reset = Reset { came: &[0x81, 1, b'a', 0x88, 0], waits: true };
    let (mut link, outbox) = Link::new(Box::pin(reset), Role::Client);
    outbox.push("nobody hears this".to_owned()).unwrap();
    assert_eq!(link.next().await.unwrap(), Some("a".to_owned().into()));
    assert!(!matches!(link.next().await, Ok(Some(_))));
}

#[tokio::test(start_paused = true)]
async fn a_link_that_cannot_be_written_to_is_over_soon_although_it_could_be_read() {
    let (unread, _far) = duplex(1024);
    let broken = tokio::io::join(unread, Reset { came: &[], waits: false });
    let (mut link, outbox) = Link::new(Box::pin(broken), Role::Client);
    outbox.push("nobody hears this".to_owned()).unwrap();
    let began = Instant::now();
    assert!(matches!(link.next().await, Err(LinkError::Io(_))));
    assert_eq!(began.elapsed(), LAST_WORDS);
}

#[tokio::test]
async fn a_close_is_seen_with_its_reason() {
    let ((mut server, _), (client, _)) = pair(1024);
    let closing = tokio::spawn(client.close(1008, "worker heartbeat timed out"));
    assert!(server.next().await.unwrap().is_none());
    assert_eq!(server.close_reason(), Some((1008, "worker heartbeat timed out".to_owned())));
    drop(server);
    closing.await.unwrap();
}

/// Stock servers turn a worker away like this: they leave its registration unread, so the connection is
/// reset.
#[tokio::test]
async fn a_close_that_waits_for_no_answer_is_seen_with_its_reason_too() {
    let (near, mut far) = duplex(1024);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
    outbox.push("register".to_owned()).unwrap();
    far.write_all(&[0x88, 4, 0x03, 0xf0, b'n', b'o']).await.unwrap();
    drop(far);
    assert!(matches!(link.next().await, Ok(None)));
    assert_eq!(link.close_reason(), Some((1008, "no".to_owned())));
}

#[tokio::test]
async fn messages_over_15_mib_travel_in_fragments() {
    let (near, mut far) = duplex(1 << 20);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
    let fragment = Limits::default().fragment;
    outbox.push("x".repeat(fragment + 1)).unwrap();
    let driver = tokio::spawn(async move { link.next().await });
    let mut head = [0; 10];
    far.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..2], [0x01, 127], "text, not final, 64-bit length");
    let mut payload = vec![0; fragment];
    far.read_exact(&mut payload).await.unwrap();
    let mut last = [0; 3];
    far.read_exact(&mut last).await.unwrap();
    assert_eq!(last, [0x80, 1, b'x'], "continuation, final");
    drop(far);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_long_message_is_copied_only_as_the_socket_takes_it() {
    let limits = Limits { write_buffer: 1024, fragment: 1024, ..Limits::default() };
    let (near, far) = duplex(512);
    let (mut link, outbox) = Link::within(Box::pin(near), Role::Server, limits);
    let (mut client, _outbox) = Link::new(Box::pin(far), Role::Client);
    outbox.push("x".repeat(100_000)).unwrap();
    outbox.push("next".to_owned()).unwrap();
    let writing = tokio::spawn(async move { link.write_only().await });
    assert_eq!(client.next().await.unwrap().unwrap().len(), 100_000);
    assert_eq!(client.next().await.unwrap(), Some("next".to_owned().into()));
    outbox.close();
    assert!(matches!(writing.await.unwrap(), LinkError::GivenUp));
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_and_heard() {
    let ((mut server, _), (mut client, _)) = pair(1024);
    tokio::time::advance(Duration::from_secs(15)).await;
    let asked = Instant::now();
    server.ping().unwrap();
    // Neither end has anything to send: both have written and read everything before time goes on.
    let both = async { tokio::join!(server.next(), client.next()) };
    assert!(timeout(CLOSE_DEADLINE, both).await.is_err());
    assert_eq!(server.heard(), asked);
}

/// A numbered ping, as a client sends it: masked, with a mask of zeros.
fn ping(number: u32) -> Vec<u8> {
    [&[0x89, 0x84, 0, 0, 0, 0][..], &number.to_be_bytes()].concat()
}

#[tokio::test]
async fn pongs_that_are_not_read_are_bounded_and_the_newest_replaces_older_ones() {
    const PINGS: u32 = 100_000;
    let limits = Limits { write_buffer: 1024, ..Limits::default() };
    let (near, mut far) = duplex(1024);
    let (mut link, outbox) = Link::within(Box::pin(near), Role::Server, limits);
    let driver = tokio::spawn(async move {
        let last_ping_was_read = link.next().await;
        outbox.push("answer".to_owned()).unwrap();
        (last_ping_was_read, link.next().await)
    });
    for number in 0..PINGS {
        far.write_all(&ping(number)).await.unwrap();
    }
    far.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'!']).await.unwrap();
    let newest = [&[0x8a, 4][..], &(PINGS - 1).to_be_bytes()].concat();
    let mut written = Vec::new();
    while ![&newest[..], b"answer"].iter().all(|part| written.windows(6).any(|w| w == *part)) {
        assert_ne!(far.read_buf(&mut written).await.unwrap(), 0);
    }
    assert!(written.len() < 1024 + 2 * limits.write_buffer, "{} bytes", written.len());
    drop(far);
    let (last_ping_was_read, end) = driver.await.unwrap();
    assert_eq!(last_ping_was_read.unwrap(), Some("!".to_owned().into()));
    assert_eq!(end.unwrap(), None);
}

#[tokio::test]
async fn a_link_takes_no_longer_messages_than_it_was_told_to() {
    let ((mut server, _), (mut client, outbox)) = pair(1024);
    server.set_max_message(10);
    outbox.push("0123456789".to_owned()).unwrap();
    outbox.push("0123456789a".to_owned()).unwrap();
    let far = tokio::spawn(async move { client.next().await });
    assert_eq!(server.next().await.unwrap().unwrap().len(), 10);
    assert!(matches!(server.next().await, Err(LinkError::Protocol(_))));
    far.abort();
}

/// A server's answer to a frame that follows a text, and how the link ends. The frame is masked with
/// zeros: `length` is its second byte, and may hold the first bytes of a longer one.
async fn answer_to(kind: u8, length: &[u8], payload: &[u8]) -> (Vec<u8>, LinkError) {
    let (near, mut far) = duplex(1024);
    let (mut link, _outbox) = Link::new(Box::pin(near), Role::Server);
    let (text, mask) = ([0x81, 0x81, 0, 0, 0, 0, b'a'], [0; 4]);
    far.write_all(&[&text[..], &[kind], length, &mask, payload].concat()).await.unwrap();
    assert_eq!(link.next().await.unwrap(), Some("a".to_owned().into()));
    let ended = timeout(Duration::from_secs(1), link.next()).await.unwrap();
    drop(link);
    let mut sent = Vec::new();
    far.read_to_end(&mut sent).await.unwrap();
    let [0x88, _, code_1, code_2, ..] = sent[..] else { panic!("{sent:?}") };
    (vec![code_1, code_2], ended.err().unwrap_or(LinkError::GivenUp))
}

#[tokio::test(start_paused = true)]
async fn a_far_end_that_breaks_the_rules_is_told_and_the_link_ends_at_once() {
    let (invalid, protocol, too_big) = (1007u16, 1002u16, 1009u16);
    let longer = (Limits::default().max_message as u64 + 1).to_be_bytes();
    let faults: [(u8, &[u8], &[u8], u16); 7] = [
        // A close whose reason is not UTF-8, one whose code is cut, and one that is cut into two.
        (0x88, &[0x84], &[3, 0xe8, 0xff, 0xfe], invalid),
        (0x88, &[0x81], &[3], protocol),
        (0x08, &[0x82], &[3, 0xe8], protocol),
        // An unknown kind of frame, a reserved bit, and a continuation of nothing.
        (0x83, &[0x80], &[], protocol),
        (0xc1, &[0x80], &[], protocol),
        (0x80, &[0x80], &[], protocol),
        (0x82, &[&[0xff], &longer[..]].concat(), &[], too_big),
    ];
    for (kind, length, payload, code) in faults {
        let (sent, ended) = answer_to(kind, length, payload).await;
        assert!(matches!(ended, LinkError::Protocol(_)), "{kind:x} {length:x?}: {ended:?}");
        assert_eq!(sent, code.to_be_bytes(), "{kind:x} {length:x?}");
    }
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
        let (sent, _ended) = answer_to(0x88, &[0x82], &code.to_be_bytes()).await;
        assert_eq!(sent, protocol.to_be_bytes(), "{code}");
    }
}

#[tokio::test]
async fn text_that_is_not_utf8_costs_only_its_frame() {
    let (near, mut far) = duplex(1024);
    let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
    far.write_all(&[0x81, 2, 0xff, 0xfe, 0x81, 2, b'o', b'k']).await.unwrap();
    assert_eq!(link.next().await.unwrap(), Some("ok".to_owned().into()));
}

#[tokio::test]
async fn a_message_over_the_bound_breaks_the_link() {
    let (near, mut far) = duplex(1024);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
    let length = (Limits::default().max_message as u64 + 1).to_be_bytes();
    far.write_all(&[&[0x82, 127], &length[..]].concat()).await.unwrap();
    assert!(matches!(link.next().await, Err(LinkError::Protocol(_))));
    assert!(outbox.is_closed());
}

#[tokio::test]
async fn frames_that_gather_while_the_socket_is_busy_leave_in_one_write() {
    let (near, mut far) = duplex(1 << 16);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
    for _ in 0..100 {
        outbox.push("{}".to_owned()).unwrap();
    }
    let driver = tokio::spawn(async move { link.next().await });
    let mut first = vec![0; 1 << 16];
    let read = far.read(&mut first).await.unwrap();
    assert_eq!(read, 100 * 4);
    drop(far);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn frames_of_tasks_that_are_ready_leave_in_one_write() {
    let (near, mut far) = duplex(1 << 16);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
    let driver = tokio::spawn(async move { link.next().await });
    tokio::task::yield_now().await;
    // The first frame wakes the link before the second task is there.
    tokio::spawn(async move {
        outbox.push("{}".to_owned()).unwrap();
        tokio::spawn(async move { outbox.push("{}".to_owned()).unwrap() });
    });
    let mut first = vec![0; 1 << 16];
    assert_eq!(far.read(&mut first).await.unwrap(), 2 * 4);
    drop(far);
    driver.await.unwrap().unwrap();
}

/// A stream that counts how often it is read.
struct Counted(tokio::io::DuplexStream, Arc<AtomicUsize>);

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn a_link_that_is_woken_to_write_does_not_read_before_something_is_there() {
    let (near, mut far) = duplex(1 << 16);
    let reads = Arc::new(AtomicUsize::new(0));
    let (mut link, outbox) = Link::new(Box::pin(Counted(near, Arc::clone(&reads))), Role::Client);
    let driver = tokio::spawn(async move { link.next().await });
    let mut frame = [0; 64];
    for _ in 0..3 {
        outbox.push("{}".to_owned()).unwrap();
        assert_eq!(far.read(&mut frame).await.unwrap(), 2 + 4 + 2);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
    far.write_all(&[0x81, 1, b'a']).await.unwrap();
    assert_eq!(driver.await.unwrap().unwrap(), Some("a".to_owned().into()));
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_long_message_are_heard_before_it_is_complete() {
    let (near, mut far) = duplex(1024);
    let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
    far.write_all(&[0x81, 3, b'a']).await.unwrap();
    for byte in [b'b', b'c'] {
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(link.ready(), None);
        assert_eq!(link.heard(), Instant::now());
        far.write_all(&[byte]).await.unwrap();
    }
    assert_eq!(link.next().await.unwrap(), Some("abc".to_owned().into()));
}

#[tokio::test(start_paused = true)]
async fn a_link_given_up_while_its_socket_is_blocked_wakes_its_task() {
    let (near, _far) = duplex(16);
    let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
    outbox.push("x".repeat(1000)).unwrap();
    let driver = tokio::spawn(async move { link.next().await });
    tokio::task::yield_now().await;
    // It is woken for this, and waits for the socket again.
    outbox.push("y".to_owned()).unwrap();
    tokio::task::yield_now().await;
    outbox.close();
    let ended = timeout(CLOSE_DEADLINE, driver).await.unwrap().unwrap();
    assert!(matches!(ended, Err(LinkError::GivenUp)));
}

#[tokio::test]
async fn a_link_given_up_from_outside_wakes_its_task() {
    let ((mut server, outbox), _client) = pair(1024);
    let driver = tokio::spawn(async move { server.next().await });
    tokio::task::yield_now().await;
    outbox.close();
    assert!(matches!(driver.await.unwrap(), Err(LinkError::GivenUp)));
}
