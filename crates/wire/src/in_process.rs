//! A link between two tasks of one process: two queues of frames, and no socket.
//!
//! Each end reads the other end's outbox. So a frame wakes the task that reads it directly, and nothing is encoded,
//! masked or copied on the way.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker, ready},
};

use tokio::{
    sync::mpsc,
    task::coop,
    time::{Instant, timeout},
};

use crate::{
    link::{CLOSE_DEADLINE, LinkError, cut},
    outbox::{Frame, Outbox},
};

/// The most signals of one end that are ever unread: a ping, a pong and a close.
const SIGNALS: usize = 3;

/// How many times in a row an end gives way to other tasks, at most, while they keep sending to it.
const TURNS: u32 = 32;

/// A signal of one end to the other, beside frames.
enum Signal {
    Ping,
    Pong,
    Close(u16, String),
}

/// One end of a link within the process.
pub(crate) struct InProcessLink {
    /// The frames of the far end.
    incoming: Outbox,
    outbox: Outbox,
    /// `None` once this end has said that it closes.
    signals: Option<mpsc::Sender<Signal>>,
    signalled: mpsc::Receiver<Signal>,
    /// Whether this end has sent a ping that is not answered yet.
    asked: bool,
    /// Whether this end waits for the next frame.
    waits: bool,
    /// How many times in a row this end has given way, and how many bytes were queued the last
    /// time.
    turns: u32,
    seen: usize,
    heard: Instant,
    /// Whether the far end has closed, or is gone.
    is_over: bool,
    close_reason: Option<(u16, String)>,
}

impl InProcessLink {
    /// Both ends, each with its outbox.
    pub(crate) fn pair() -> [(Self, Outbox); 2] {
        let (near, far) = (Outbox::new(), Outbox::new());
        let (to_near, from_far) = mpsc::channel(SIGNALS);
        let (to_far, from_near) = mpsc::channel(SIGNALS);
        [
            (Self::end(near.clone(), far.clone(), to_far, from_far), near.clone()),
            (Self::end(far.clone(), near, to_near, from_near), far),
        ]
    }

    fn end(
        outbox: Outbox,
        incoming: Outbox,
        signals: mpsc::Sender<Signal>,
        signalled: mpsc::Receiver<Signal>,
    ) -> Self {
        Self {
            incoming,
            outbox,
            signals: Some(signals),
            signalled,
            asked: false,
            waits: false,
            turns: 0,
            seen: 0,
            heard: Instant::now(),
            is_over: false,
            close_reason: None,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn ready(&mut self) -> Option<Frame> {
        let frame = self.incoming.pop(&Context::from_waker(Waker::noop()))?;
        self.reset_wait();
        Some(frame)
    }

    pub(crate) async fn write_only(&mut self) -> LinkError {
        poll_fn(|cx| match self.outbox.wait_for_close(cx) {
            true => Poll::Ready(LinkError::GivenUp),
            false => Poll::Pending,
        })
        .await
    }

    pub(crate) fn ping(&mut self) {
        if !self.asked {
            self.asked = true;
            self.signal(Signal::Ping);
        }
    }

    pub(crate) fn heard(&self) -> Instant {
        self.heard
    }

    pub(crate) fn close_reason(&self) -> Option<(u16, String)> {
        self.close_reason.clone()
    }

    /// The far end gets the queued frames first, and the close after them.
    pub(crate) async fn close(mut self, code: u16, reason: &str) {
        self.signal(Signal::Close(code, cut(reason).to_owned()));
        self.signals = None;
        let farewell = async { while let Ok(Some(_)) = self.next().await {} };
        // The link ends here, whether the far end has answered or not.
        let _ = timeout(CLOSE_DEADLINE, farewell).await;
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, LinkError>> {
        if self.gives_way() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // A far end on another thread could keep this task busy for ever, so tokio's budget makes
        // it give way to other tasks.
        let turn = ready!(coop::poll_proceed(cx));
        if let Some(frame) = self.incoming.pop(cx) {
            turn.made_progress();
            return Poll::Ready(Ok(Some(frame)));
        }
        self.poll_signals(cx);
        if self.is_over {
            // Frames that the far end sent before it closed are handed out before the close.
            return Poll::Ready(Ok(self.incoming.pop(cx)));
        }
        if self.outbox.wait_for_close(cx) {
            return Poll::Ready(Err(LinkError::GivenUp));
        }
        self.waits = true;
        Poll::Pending
    }

    /// Whether this end should let other ready tasks run first, since they may send more frames. It then takes all
    /// frames in one turn, and what they cause can leave in one write.
    fn gives_way(&mut self) -> bool {
        let queued = self.incoming.queued();
        if !self.waits || queued == 0 {
            return false;
        }
        let is_more = queued > self.seen && self.turns < TURNS;
        if is_more {
            (self.seen, self.turns) = (queued, self.turns + 1);
        } else {
            self.reset_wait();
        }
        is_more
    }

    /// Ends the wait: frames are taken now. Reads the clock once for all of them, not once for
    /// each.
    fn reset_wait(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.heard = Instant::now();
        }
        (self.seen, self.turns) = (0, 0);
    }

    fn poll_signals(&mut self, cx: &mut Context<'_>) {
        while !self.is_over
            && let Poll::Ready(signal) = self.signalled.poll_recv(cx)
        {
            self.heard = Instant::now();
            match signal {
                Some(Signal::Ping) => self.signal(Signal::Pong),
                Some(Signal::Pong) => self.asked = false,
                Some(Signal::Close(code, reason)) => {
                    self.close_reason = Some((code, reason));
                    self.is_over = true;
                }
                None => self.is_over = true,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(signals) = &self.signals {
            // There is always room, see `SIGNALS`. A far end that is gone needs no signal.
            let _ = signals.try_send(signal);
        }
    }
}

/// As when a socket closes: frames that the far end has not read are dropped, and neither end can
/// send any more.
impl Drop for InProcessLink {
    fn drop(&mut self) {
        // The signals go first, so that the far end sees that this end is gone, and does not take
        // it for its own outbox's close.
        self.signals = None;
        self.outbox.close();
        self.incoming.close();
    }
}

impl std::fmt::Debug for InProcessLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessLink").field("outbox", &self.outbox).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
