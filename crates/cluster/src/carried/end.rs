//! This end of a carried link: the transport under a sealed one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use wire::{Frame, Outbox, OutboxReader};

use super::{
    Through,
    frame::{Body, Closed, Piece},
    waiting::{MOST_WAITING, OVERHEAD, Waiting},
};
use crate::{
    circuit::TooMuch,
    link::{carrier::CarrierEnd, frame::PIECE},
};

/// No further message leaves while the other end has this many bytes still to take.
const WINDOW: usize = 1024 * 1024;
/// After this many taken bytes the other end gets an acknowledgement.
const ACK: usize = WINDOW / 8;

/// This end of a carried link.
pub(crate) struct CarriedEnd {
    through: Through,
    line: Arc<Line>,
    outbox: Outbox,
    partial: BytesMut,
    max_message: usize,
    closing: Option<oneshot::Sender<Closed>>,
}

/// The state that one end and the link that leads to it share.
pub(crate) struct Line {
    waiting: Arc<Waiting>,
    state: Mutex<State>,
    arrived: Notify,
    /// Notified when the other end has taken something, and when the link has ended.
    taken: Notify,
}

struct State {
    /// The pieces that have come and were not taken yet.
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// The taken bytes that are not acknowledged yet.
    unsaid: usize,
    /// The bytes that left and that the other end has not taken yet.
    under_way: usize,
    heard: Instant,
    closed: Option<Closed>,
}

impl Line {
    fn new(waiting: Arc<Waiting>) -> Arc<Self> {
        let state = State {
            pieces: VecDeque::new(),
            bytes: 0,
            unsaid: 0,
            under_way: 0,
            heard: Instant::now(),
            closed: None,
        };
        let (arrived, taken) = (Notify::new(), Notify::new());
        Arc::new(Self { waiting, state: Mutex::new(state), arrived, taken })
    }

    /// Takes in a body from the other end.
    ///
    /// # Errors
    /// [`TooMuch`] if the other end does not keep to its window.
    pub(crate) fn received(&self, body: Body) -> Result<(), TooMuch> {
        let mut state = self.lock();
        state.heard = Instant::now();
        match body {
            Body::Piece(_) if state.bytes > MOST_WAITING => return Err(TooMuch),
            Body::Piece(piece) => {
                state.bytes += cost(&piece.bytes);
                state.pieces.push_back(piece);
                self.arrived.notify_one();
            }
            Body::Ack(bytes) => {
                state.under_way = state.under_way.saturating_sub(bytes as usize);
                self.taken.notify_one();
            }
            Body::Closed(closed) => {
                drop(state);
                self.closed(closed);
            }
            Body::Ping | Body::Open(_) => {}
        }
        Ok(())
    }

    /// Marks the link as ended. Pieces that came before can still be taken.
    pub(crate) fn closed(&self, why: Closed) {
        self.lock().closed.get_or_insert(why);
        self.arrived.notify_one();
        self.taken.notify_one();
    }

    /// As [`Line::closed`], and tells the other end at once.
    pub(crate) fn give_up(&self, why: Closed) {
        self.waiting.give_up(Body::Closed(why.clone()));
        self.closed(why);
    }

    fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    fn may_send(&self) -> bool {
        self.lock().under_way < WINDOW
    }

    fn send(&self, frame: Frame) -> Result<(), TooMuch> {
        let Frame::Binary(mut bytes) = frame else { return Ok(()) };
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let more = !bytes.is_empty();
            self.lock().under_way += cost(&piece);
            self.waiting.put(Body::Piece(Piece { more, bytes: piece }))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// The next piece. The error is the reason of the end, or `None` if nothing has come yet.
    fn take(&self) -> Result<Piece, Option<Closed>> {
        let mut state = self.lock();
        let Some(piece) = state.pieces.pop_front() else { return Err(state.closed.clone()) };
        let cost = cost(&piece.bytes);
        state.bytes -= cost;
        state.unsaid += cost;
        if state.unsaid >= ACK {
            let taken = u32::try_from(std::mem::take(&mut state.unsaid)).unwrap_or(u32::MAX);
            drop(state);
            // If the queue is full, the next piece reports that.
            let _full = self.waiting.put(Body::Ack(taken));
        }
        Ok(piece)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CarriedEnd {
    /// An end whose frames wait in `waiting`. `gone` is called once the end has closed.
    pub(crate) fn new(
        through: Through,
        waiting: Arc<Waiting>,
        gone: impl FnOnce() + Send + 'static,
    ) -> (Self, Arc<Line>) {
        let line = Line::new(waiting);
        let (outbox, frames) = Outbox::detached();
        let (closing, closes) = oneshot::channel();
        let pumped = Arc::clone(&line);
        tokio::spawn(async move {
            pump(&pumped, frames, closes).await;
            gone();
        });
        let (partial, max_message) = (BytesMut::new(), PIECE);
        let closing = Some(closing);
        let end = Self { through, line: Arc::clone(&line), outbox, partial, max_message, closing };
        (end, line)
    }

    /// The first carrier of the link.
    pub(crate) fn through(&self) -> &Through {
        &self.through
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The next message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Bytes, CarrierEnd> {
        loop {
            match self.line.take() {
                Ok(piece) if self.partial.len() + piece.bytes.len() > self.max_message => {
                    let words = "it sent a message over the bound";
                    return Err(CarrierEnd::Closed(words.to_owned()));
                }
                Ok(piece) => {
                    self.partial.extend_from_slice(&piece.bytes);
                    if !piece.more {
                        return Ok(self.partial.split().freeze());
                    }
                }
                Err(Some(closed)) => return Err(closed.into()),
                Err(None) => self.line.arrived.notified().await,
            }
        }
    }

    pub(crate) fn set_max_message(&mut self, bytes: usize) {
        self.max_message = bytes.min(MOST_WAITING);
    }

    pub(crate) fn ping(&self) {
        // If the queue is full, the other end has enough to read, and reading shows that it lives.
        let _full = self.line.waiting.put(Body::Ping);
    }

    pub(crate) fn heard(&self) -> Instant {
        self.line.lock().heard
    }

    /// Sends what there is still room for, and closes the link.
    pub(crate) fn close(mut self, code: u16, reason: &str) {
        if let Some(closing) = self.closing.take() {
            let _ended_before = closing.send(Closed { code, reason: reason.to_owned() });
        }
    }
}

impl From<Closed> for CarrierEnd {
    fn from(Closed { code, reason }: Closed) -> Self {
        let reason = base::plain::line(&reason);
        match (code, reason.is_empty()) {
            (_, true) => Self::Closed("it closed the link".to_owned()),
            (1008, false) => Self::Refused(reason),
            (_, false) => Self::Closed(reason),
        }
    }
}

/// Sends the messages of one end, as far as the other end takes them, until it closes.
async fn pump(line: &Line, mut frames: OutboxReader, mut closes: oneshot::Receiver<Closed>) {
    let why = loop {
        let may_send = line.may_send();
        tokio::select! {
            biased;
            closed = &mut closes => break closed.unwrap_or_else(|_| Closed::ended("the link ended")),
            () = line.taken.notified() => if line.is_closed() {
                return;
            },
            frame = frames.next(), if may_send => {
                if frame.is_none_or(|frame| line.send(frame).is_err()) {
                    break Closed::ended("too much waits for the other end");
                }
            }
        }
    };
    while line.may_send()
        && let Some(frame) = frames.try_next()
        && line.send(frame).is_ok()
    {}
    line.waiting.put_last(Body::Closed(why.clone()));
    line.closed(why);
}

fn cost(piece: &Bytes) -> usize {
    piece.len() + OVERHEAD
}
