//! Limits what a connection may send before its client is known, and makes large messages wait for a
//! slot.
//!
//! The gate wraps the byte stream beneath the WebSocket. While it does not read, the rest of a
//! message stays at the sender.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use base::Pace;
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::limits::MAX_BEFORE_AUTH;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::{Instant, sleep},
};
use wire::Io;

use crate::message_slots::{Claim, TakenSlot};

/// A message longer than this, in bytes, needs a slot before the rest of it is read.
pub(crate) const LARGE: usize = 1024 * 1024;
/// Fewer bytes than this between two calls of [`Gate::forget_signs_of_life`] count as signs of
/// life, such as pongs, and not as part of a message.
const IDLE: usize = 256;
/// A client that takes no bytes for this long counts as deaf.
const SILENT: Duration = Duration::from_secs(30);
/// The interval between checks of whether a large message is overdue.
const LOOK: Duration = Duration::from_secs(1);
/// The limits of a large message: its deadline; the shorter deadline while others wait for its
/// slot; and, while they wait, its lowest rate in bytes per second and the most that it may fall
/// behind that rate.
const WHOLE: Duration = Duration::from_secs(600);
const WHOLE_WHERE_WANTED: Duration = Duration::from_secs(60);
const SLOWEST: u32 = 64 * 1024;
const BEHIND: Duration = Duration::from_secs(5);

/// The state of one connection's bytes.
pub(crate) struct Gate {
    state: Mutex<GateState>,
    /// Notified when a large message has got its slot.
    begun: Notify,
}

struct GateState {
    /// The slots that the connection may claim; `None` until its client has authenticated.
    claim: Option<Claim>,
    /// Bytes read since the last complete message; before authentication, all bytes read.
    since: usize,
    /// The value of `since` at the last call of [`Gate::forget_signs_of_life`].
    looked: usize,
    /// When the client last took bytes.
    wrote: Instant,
    asking: Option<BoxFuture<'static, io::Result<TakenSlot>>>,
    large: Option<Large>,
}

/// A large message that is being read.
struct Large {
    slot: TakenSlot,
    begun: Instant,
    /// When bytes of it last came. `pace` says how long it may then be silent.
    heard: Instant,
    pace: Pace,
}

/// Puts a gate under a byte stream. The stream goes into the link; the client keeps the gate.
pub(crate) fn gated(io: Io) -> (Io, Arc<Gate>) {
    let state = GateState {
        claim: None,
        since: 0,
        looked: 0,
        wrote: Instant::now(),
        asking: None,
        large: None,
    };
    let gate = Arc::new(Gate { state: Mutex::new(state), begun: Notify::new() });
    (Box::pin(GatedIo { io, gate: Arc::clone(&gate) }), gate)
}

impl Gate {
    /// Notes that the client has authenticated: sets what it may claim, and forgets the bytes of the greeting.
    pub(crate) fn admit(&self, claim: Claim) {
        let mut state = self.lock();
        (state.claim, state.since) = (Some(claim), 0);
    }

    /// Notes that a message is complete. Returns its slot, if it needed one.
    pub(crate) fn complete_message(&self) -> Option<TakenSlot> {
        let mut state = self.lock();
        (state.since, state.looked, state.asking) = (0, 0, None);
        state.large.take().map(|large| large.slot)
    }

    /// Called regularly. A few bytes since the last call are signs of life and are not counted. The
    /// beginning of a message stays counted, so that a pause does not spare it a slot.
    pub(crate) fn forget_signs_of_life(&self) {
        let mut state = self.lock();
        let came = state.since - state.looked;
        if state.large.is_none() && state.asking.is_none() && came < IDLE {
            state.since = state.looked;
        }
        state.looked = state.since;
    }

    /// Returns when the large message that is being read is overdue. May be dropped at any await.
    pub(crate) async fn overdue(&self) {
        loop {
            let late = self.lock().is_late();
            match late {
                Some(true) => return,
                Some(false) => sleep(LOOK).await,
                None => self.begun.notified().await,
            }
        }
    }

    /// Whether the client has taken no bytes for [`SILENT`]. This only says something while there
    /// are bytes to write.
    pub(crate) fn is_deaf(&self) -> bool {
        self.lock().wrote.elapsed() > SILENT
    }

    /// Ready when more may be read.
    fn poll_place(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(claim) = &state.claim else { return Poll::Ready(Ok(())) };
        if state.since <= LARGE || state.large.is_some() {
            return Poll::Ready(Ok(()));
        }
        // Kept between two polls: otherwise the connection would lose its place in the queue.
        let asking = state.asking.get_or_insert_with(|| claim.clone().take().boxed());
        let taken = ready!(asking.poll_unpin(cx));
        state.asking = None;
        state.large = Some(Large::new(taken?));
        self.begun.notify_one();
        Poll::Ready(Ok(()))
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let mut state = self.lock();
        state.since += bytes;
        if let Some(large) = &mut state.large {
            large.came(bytes);
        }
        if state.claim.is_none() && state.since > MAX_BEFORE_AUTH {
            let words = "too much was sent before it was said by whom";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    /// Whether the large message being read takes longer than it may; `None` without one.
    fn is_late(&self) -> Option<bool> {
        self.large.as_ref().map(Large::is_late)
    }
}

impl Large {
    fn new(slot: TakenSlot) -> Self {
        let now = Instant::now();
        Self { slot, begun: now, heard: now, pace: Pace::new(SLOWEST, BEHIND) }
    }

    fn came(&mut self, bytes: usize) {
        let now = Instant::now();
        self.pace.came(bytes, now - self.heard);
        self.heard = now;
    }

    fn is_late(&self) -> bool {
        let took = self.begun.elapsed();
        if !self.slot.is_wanted() {
            return took >= WHOLE;
        }
        took >= WHOLE_WHERE_WANTED || self.heard.elapsed() >= self.pace.left()
    }
}

struct GatedIo {
    io: Io,
    gate: Arc<Gate>,
}

impl AsyncRead for GatedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.gate.poll_place(cx))?;
        let before = buf.filled().len();
        ready!(self.io.as_mut().poll_read(cx, buf))?;
        Poll::Ready(self.gate.count(buf.filled().len() - before))
    }
}

impl AsyncWrite for GatedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(self.io.as_mut().poll_write(cx, bytes))?;
        // Noted only after the write: while the system takes no bytes, the client counts as silent.
        self.gate.lock().wrote = Instant::now();
        Poll::Ready(Ok(wrote))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, repeat},
        time::timeout,
    };

    use super::*;
    use crate::message_slots::MessageSlots;

    const STEP: usize = 64 * 1024;

    fn pair() -> (DuplexStream, Io, Arc<Gate>) {
        let (far, near) = duplex(STEP);
        let (io, gate) = gated(Box::pin(near));
        (far, io, gate)
    }

    /// A connection with this key that never stops sending.
    fn sending(slots: &Arc<MessageSlots>, key: &str) -> (Io, Arc<Gate>) {
        let (mut far, io, gate) = pair();
        gate.admit(slots.claim(key, false));
        tokio::spawn(async move { tokio::io::copy(&mut repeat(b'x'), &mut far).await });
        (io, gate)
    }

    /// Reads this much, or less when no more may be read.
    async fn read(io: &mut Io, much: usize) -> usize {
        let mut buffer = vec![0; STEP];
        let mut all = 0;
        while all < much
            && let Ok(read) = timeout(Duration::from_millis(50), io.read(&mut buffer)).await
        {
            all += read.unwrap();
        }
        all
    }

    async fn is_overdue_within(gate: &Gate, time: Duration) -> bool {
        timeout(time, gate.overdue()).await.is_ok()
    }

    #[tokio::test]
    async fn a_stranger_may_send_64_kib_and_no_more() {
        let (mut far, mut io, _gate) = pair();
        let writing =
            tokio::spawn(async move { far.write_all(&vec![0; MAX_BEFORE_AUTH + 1]).await });
        let mut all = vec![0; MAX_BEFORE_AUTH + 1];
        let error = io.read_exact(&mut all).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        writing.abort();
        let (mut far, mut io, _gate) = pair();
        tokio::spawn(async move { far.write_all(&vec![0; MAX_BEFORE_AUTH]).await.map(|()| far) });
        io.read_exact(&mut all[1..]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_without_a_place_waits_at_1_mib_and_small_ones_never() {
        let slots = Arc::new(MessageSlots::default());
        let (mut io, gate) = sending(&slots, "k");
        let mut held = Vec::new();
        for _ in 0..2 {
            assert!(read(&mut io, 3 * LARGE).await >= 3 * LARGE);
            held.push(gate.complete_message().unwrap());
        }
        assert!(read(&mut io, LARGE / 2).await >= LARGE / 2);
        assert!(gate.complete_message().is_none());
        let stopped = read(&mut io, 3 * LARGE).await;
        assert!((LARGE..LARGE + 2 * STEP).contains(&stopped), "{stopped}");
        held.pop();
        assert!(read(&mut io, 3 * LARGE).await >= 3 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_has_ten_minutes_and_one_minute_where_others_wait() {
        let slots = Arc::new(MessageSlots::default());
        let (mut io, gate) = sending(&slots, "k");
        assert!(!is_overdue_within(&gate, WHOLE * 2).await, "there is none");
        read(&mut io, 2 * LARGE).await;
        assert!(!is_overdue_within(&gate, WHOLE - LOOK).await);
        assert!(is_overdue_within(&gate, 2 * LOOK).await);
        drop(gate.complete_message());

        read(&mut io, 2 * LARGE).await;
        let waiting: Vec<_> =
            (0..8).map(|_| tokio::spawn(slots.claim("k", false).take())).collect();
        let began = Instant::now();
        while began.elapsed() < WHOLE_WHERE_WANTED - LOOK {
            // Exactly as fast as required.
            read(&mut io, 2 * SLOWEST as usize).await;
            assert!(!is_overdue_within(&gate, LOOK).await, "{:?}", began.elapsed());
        }
        assert!(is_overdue_within(&gate, 3 * LOOK).await);
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickling_sender_is_overdue_after_seconds_while_others_wait() {
        let slots = Arc::new(MessageSlots::default());
        let (mut io, gate) = sending(&slots, "k");
        read(&mut io, 2 * LARGE).await;
        let waiting: Vec<_> =
            (0..8).map(|_| tokio::spawn(slots.claim("k", false).take())).collect();
        assert!(!is_overdue_within(&gate, BEHIND - LOOK).await);
        read(&mut io, STEP / 8).await;
        assert!(is_overdue_within(&gate, 4 * LOOK).await);
        drop(gate.complete_message());
        assert!(!is_overdue_within(&gate, WHOLE).await, "what is here is not late");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_write_that_was_taken_ends_the_silence() {
        let (far, mut io, gate) = pair();
        sleep(2 * SILENT).await;
        io.write_all(b"a").await.unwrap();
        assert!(!gate.is_deaf());
        sleep(2 * SILENT).await;
        drop(far);
        io.write_all(b"a").await.unwrap_err();
        assert!(gate.is_deaf());
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_are_no_large_message_however_many_come() {
        let slots = Arc::new(MessageSlots::default());
        let (mut far, mut io, gate) = pair();
        gate.admit(slots.claim("k", false));
        for _ in 0..LARGE / 100 {
            far.write_all(&[0; 120]).await.unwrap();
            io.read_exact(&mut [0; 120]).await.unwrap();
            gate.forget_signs_of_life();
        }
        assert!(gate.lock().since < IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_pauses_needs_a_place_as_soon_as_it_is_large() {
        let slots = Arc::new(MessageSlots::default());
        let (mut io, gate) = sending(&slots, "k");
        for _ in 0..4 {
            read(&mut io, LARGE / 2).await;
            gate.forget_signs_of_life();
            gate.forget_signs_of_life();
        }
        assert!(gate.complete_message().is_some());
    }
}
