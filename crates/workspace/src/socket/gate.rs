//! What a connection may send before it is known, and how many large messages may be in memory.
//!
//! It stands under the socket: what is not read here stays with the sender.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::limits::MAX_BEFORE_AUTH;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use wire::Io;

/// A longer message needs leave to be read on, in bytes.
pub(super) const LARGE: usize = 1024 * 1024;
/// So many large messages of one connection may be in memory.
pub(super) const LARGE_EACH: usize = 2;
/// So many of all connections.
pub(super) const LARGE_IN_ALL: usize = 8;
/// Fewer bytes than this between two looks are no message that is being sent, but signs of life.
const IDLE: usize = 256;
/// Who keeps others waiting must send something within so long, and all of it within so much longer.
const SILENT: Duration = Duration::from_secs(30);
const SLOW: Duration = Duration::from_secs(600);

/// The leave that a large message has. Dropped when the message has been dealt with.
pub(super) struct Leave {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// What is known of the bytes of one connection.
pub(super) struct Gate {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    is_admitted: bool,
    /// Bytes since the last message was complete; before it is admitted, all.
    since: usize,
    /// As many when it was last looked at.
    looked: usize,
    heard: Instant,
    /// When it last took something.
    wrote: Instant,
    asking: Option<BoxFuture<'static, io::Result<Leave>>>,
    leave: Option<(Leave, Instant)>,
}

/// The byte stream behind a gate. `all` has leave for all connections.
pub(super) fn gated(io: Io, all: &Arc<Semaphore>) -> (Io, Arc<Gate>) {
    let state = State {
        is_admitted: false,
        since: 0,
        looked: 0,
        heard: Instant::now(),
        wrote: Instant::now(),
        asking: None,
        leave: None,
    };
    let own = Arc::new(Semaphore::new(LARGE_EACH));
    let gate = Arc::new(Gate { own, all: Arc::clone(all), state: Mutex::new(state) });
    (Box::pin(Gated { io, gate: Arc::clone(&gate) }), gate)
}

impl Gate {
    /// It is known who sends.
    pub(super) fn admit(&self) {
        let mut state = self.lock();
        (state.is_admitted, state.since) = (true, 0);
    }

    /// A message is complete; what it has leave by goes with it.
    pub(super) fn message_is_here(&self) -> Option<Leave> {
        let mut state = self.lock();
        (state.since, state.looked, state.asking) = (0, 0, None);
        state.leave.take().map(|(leave, _)| leave)
    }

    /// Looks at it now and then. Whether it keeps others waiting with a message that it does not
    /// send.
    pub(super) fn is_in_the_way(&self) -> bool {
        let mut state = self.lock();
        let came = state.since - state.looked;
        if state.leave.is_none() && state.asking.is_none() && came < IDLE {
            state.since = 0;
        }
        state.looked = state.since;
        let others_wait = self.all.available_permits() == 0;
        let is_late = |begun: Instant| state.heard.elapsed() > SILENT || begun.elapsed() > SLOW;
        others_wait && state.leave.as_ref().is_some_and(|(_, begun)| is_late(*begun))
    }

    /// Whether it takes nothing of what it is sent, if there is anything.
    pub(super) fn is_deaf(&self) -> bool {
        self.lock().wrote.elapsed() > SILENT
    }

    /// Ready when more may be read.
    fn poll_leave(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        if !state.is_admitted || state.since <= LARGE || state.leave.is_some() {
            return Poll::Ready(Ok(()));
        }
        let asking = state
            .asking
            .get_or_insert_with(|| ask(Arc::clone(&self.own), Arc::clone(&self.all)).boxed());
        let leave = ready!(asking.poll_unpin(cx));
        state.asking = None;
        state.heard = Instant::now();
        state.leave = Some((leave?, state.heard));
        Poll::Ready(Ok(()))
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let mut state = self.lock();
        state.since += bytes;
        state.heard = Instant::now();
        if !state.is_admitted && state.since > MAX_BEFORE_AUTH {
            let words = "too much was sent before it was said by whom";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(own: Arc<Semaphore>, all: Arc<Semaphore>) -> io::Result<Leave> {
    // First one's own: who has enough of them keeps no others waiting.
    let own = own.acquire_owned().await.map_err(io::Error::other)?;
    let all = all.acquire_owned().await.map_err(io::Error::other)?;
    Ok(Leave { _own: own, _all: all })
}

struct Gated {
    io: Io,
    gate: Arc<Gate>,
}

impl AsyncRead for Gated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.gate.poll_leave(cx))?;
        let before = buf.filled().len();
        ready!(self.io.as_mut().poll_read(cx, buf))?;
        Poll::Ready(self.gate.count(buf.filled().len() - before))
    }
}

impl AsyncWrite for Gated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(self.io.as_mut().poll_write(cx, bytes));
        self.gate.lock().wrote = Instant::now();
        Poll::Ready(wrote)
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
        time::{advance, timeout},
    };

    use super::*;

    const STEP: usize = 64 * 1024;

    fn pair(all: &Arc<Semaphore>) -> (DuplexStream, Io, Arc<Gate>) {
        let (far, near) = duplex(STEP);
        let (io, gate) = gated(Box::pin(near), all);
        (far, io, gate)
    }

    /// A connection that is known, and sends without an end.
    fn sending(all: &Arc<Semaphore>) -> (Io, Arc<Gate>) {
        let (mut far, io, gate) = pair(all);
        gate.admit();
        tokio::spawn(async move { tokio::io::copy(&mut repeat(b'x'), &mut far).await });
        (io, gate)
    }

    /// Reads so much, or less when no more may be read.
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

    #[tokio::test]
    async fn a_stranger_may_send_64_kib_and_no_more() {
        let (mut far, mut io, _gate) = pair(&Arc::new(Semaphore::new(LARGE_IN_ALL)));
        let writing =
            tokio::spawn(async move { far.write_all(&vec![0; MAX_BEFORE_AUTH + 1]).await });
        let mut all = vec![0; MAX_BEFORE_AUTH + 1];
        let error = io.read_exact(&mut all).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        writing.abort();
        let (mut far, mut io, _gate) = pair(&Arc::new(Semaphore::new(LARGE_IN_ALL)));
        tokio::spawn(async move { far.write_all(&vec![0; MAX_BEFORE_AUTH]).await.map(|()| far) });
        io.read_exact(&mut all[1..]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn of_one_connection_two_large_messages_are_read_and_the_third_waits_at_1_mib() {
        let all = Arc::new(Semaphore::new(LARGE_IN_ALL));
        let (mut io, gate) = sending(&all);
        let mut held = Vec::new();
        for _ in 0..LARGE_EACH {
            assert!(read(&mut io, 3 * LARGE).await >= 3 * LARGE);
            held.push(gate.message_is_here().unwrap());
        }
        let stopped = read(&mut io, 3 * LARGE).await;
        assert!((LARGE..LARGE + 2 * STEP).contains(&stopped), "{stopped}");
        held.pop();
        assert!(read(&mut io, 3 * LARGE).await >= 3 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn of_all_connections_eight_large_messages_are_read_and_small_ones_always() {
        let all = Arc::new(Semaphore::new(LARGE_IN_ALL));
        let mut held = Vec::new();
        for _ in 0..LARGE_IN_ALL {
            let (mut io, gate) = sending(&all);
            assert!(read(&mut io, 2 * LARGE).await >= 2 * LARGE);
            held.push((io, gate));
        }
        let (mut io, gate) = sending(&all);
        assert!(read(&mut io, LARGE / 2).await >= LARGE / 2);
        assert!(gate.message_is_here().is_none());
        assert!(read(&mut io, 2 * LARGE).await < LARGE + 2 * STEP);
        drop(held.pop());
        assert!(read(&mut io, 2 * LARGE).await >= LARGE, "who has left gives it back");
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_others_waiting_and_sends_nothing_is_in_the_way() {
        let all = Arc::new(Semaphore::new(1));
        let (mut io, gate) = sending(&all);
        read(&mut io, 2 * LARGE).await;
        assert!(!gate.is_in_the_way());
        advance(SILENT + Duration::from_secs(1)).await;
        assert!(gate.is_in_the_way());
        read(&mut io, LARGE).await;
        assert!(!gate.is_in_the_way());
        drop(gate.message_is_here());
        advance(SILENT + Duration::from_secs(1)).await;
        assert!(!gate.is_in_the_way());
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_are_no_large_message_however_many_come() {
        let all = Arc::new(Semaphore::new(0));
        let (mut far, mut io, gate) = pair(&all);
        gate.admit();
        for _ in 0..LARGE / 100 {
            far.write_all(&[0; 120]).await.unwrap();
            io.read_exact(&mut [0; 120]).await.unwrap();
            gate.is_in_the_way();
        }
        assert!(gate.lock().since < IDLE);
    }
}
