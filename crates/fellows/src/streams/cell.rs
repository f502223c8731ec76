//! One end of a stream, shared between its user and the node.
//!
//! Locks: a cell's own is the innermost but for the table's record of ended streams, and nothing waits below it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use fleet::{
    Frame, ServerId, Stream, StreamId,
    stream::{EndedStreams, Output, Reason},
};

use super::end::Over;
use crate::{
    clock::now,
    transport::{Kind, Transport},
};

/// How long a stream that its user has left, after it had written all, may take to deliver that. It ends sooner when the
/// other end is silent; this is for one that goes on writing what nobody reads.
const LINGERS: Duration = Duration::from_secs(60);

pub(super) struct Cell {
    pub(super) fellow: ServerId,
    pub(super) id: StreamId,
    transport: Arc<Transport>,
    state: Mutex<CellState>,
}

struct CellState {
    stream: Stream,
    /// The pieces that came and were not taken.
    pieces: VecDeque<Bytes>,
    /// The other end has written all.
    is_ended: bool,
    /// This end has written all.
    is_finished: bool,
    /// It is over before its end.
    over: Option<Over>,
    /// Both ends have all.
    is_done: bool,
    /// When its user left it.
    left: Option<Instant>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Cell {
    /// `is_finished`: this end has written all.
    pub(super) fn new(
        fellow: ServerId,
        stream: Stream,
        is_finished: bool,
        transport: Arc<Transport>,
    ) -> Arc<Self> {
        let id = stream.id();
        let state = CellState {
            stream,
            pieces: VecDeque::new(),
            is_ended: false,
            is_finished,
            over: None,
            is_done: false,
            left: None,
            reader: None,
            writer: None,
        };
        Arc::new(Self { fellow, id, transport, state: Mutex::new(state) })
    }

    /// Carries out what its machine puts out.
    pub(super) fn settle(&self) {
        self.carry_out(&mut self.lock());
    }

    /// Takes the first byte, which names the service.
    pub(super) fn skip_service(&self) {
        let mut state = self.lock();
        if let Some(first) = state.pieces.front_mut() {
            let _service = first.split_to(1.min(first.len()));
        }
        if state.pieces.front().is_some_and(Bytes::is_empty) {
            state.pieces.pop_front();
        }
        state.stream.consumed(now(), 1);
    }

    /// Handles a frame. Returns whether the stream is over.
    pub(super) fn arrived(&self, frame: Frame) -> bool {
        let (mut state, now) = (self.lock(), now());
        // This process may have been stopped: what is over is over, whatever has come meanwhile.
        state.stream.handle_timeout(now);
        state.stream.handle(now, frame);
        self.carry_out(&mut state);
        state.is_over()
    }

    /// Looks at its deadline. Returns whether the stream is over.
    pub(super) fn look(&self) -> bool {
        let (mut state, now) = (self.lock(), now());
        if state.stream.poll_timeout().is_some_and(|at| at <= now) {
            state.stream.handle_timeout(now);
            self.carry_out(&mut state);
        }
        if state.left.is_some_and(|left| left + LINGERS <= now) {
            state.stream.reset(now, Reason::Cancelled, Bytes::new());
            self.carry_out(&mut state);
            state.end(Over { reason: Reason::Cancelled, detail: String::new() });
        }
        state.is_over()
    }

    /// Ends it at this end alone: nobody is there to hear of it.
    pub(super) fn break_off(&self, reason: Reason) {
        self.lock().end(Over { reason, detail: String::new() });
    }

    /// Ends it at both ends, before its end.
    pub(super) fn reset(&self, reason: Reason, detail: Bytes) {
        let mut state = self.lock();
        state.stream.reset(now(), reason, detail);
        self.carry_out(&mut state);
        state.end(Over { reason, detail: String::new() });
    }

    /// Its user has left it. Returns whether it is over with that.
    pub(super) fn leave(&self) -> bool {
        let mut state = self.lock();
        if state.is_over() {
            return true;
        }
        state.left = Some(now());
        if state.is_finished {
            // What was written goes on to the other end.
            let unread: usize = state.pieces.drain(..).map(|piece| piece.len()).sum();
            state.stream.consumed(now(), unread);
            self.carry_out(&mut state);
            return state.is_over();
        }
        drop(state);
        self.reset(Reason::Cancelled, Bytes::new());
        true
    }

    pub(super) fn note(&self, ended: &mut EndedStreams) {
        ended.note(now(), &self.lock().stream);
    }

    /// Writes what there is room for. Returns how much that was; 0 only if there is no room, or nothing to write.
    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bytes: &Bytes,
        is_last: bool,
    ) -> Poll<Result<usize, Over>> {
        let mut state = self.lock();
        if let Some(over) = &state.over {
            return Poll::Ready(Err(over.clone()));
        }
        if state.stream.room() == 0 && !bytes.is_empty() {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let taken = state.stream.write(now(), bytes.clone(), is_last);
        state.is_finished |= is_last && taken == bytes.len();
        self.carry_out(&mut state);
        Poll::Ready(Ok(taken))
    }

    /// The next bytes, or `None` at their end.
    pub(super) fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Over>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            return Poll::Ready(Ok(Some(piece)));
        }
        if state.is_ended {
            return Poll::Ready(Ok(None));
        }
        if let Some(over) = &state.over {
            return Poll::Ready(Err(over.clone()));
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until the stream is over.
    pub(super) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Over> {
        let mut state = self.lock();
        match &state.over {
            Some(over) => Poll::Ready(over.clone()),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Notes that this number of bytes of the pieces was used.
    pub(super) fn consumed(&self, bytes: usize) {
        let mut state = self.lock();
        state.stream.consumed(now(), bytes);
        self.carry_out(&mut state);
    }

    fn carry_out(&self, state: &mut CellState) {
        while let Some(output) = state.stream.poll_output() {
            match output {
                Output::Send(frame) => {
                    self.transport.send(self.fellow, Kind::Stream, [&frame.encode(), &[]]);
                }
                Output::Data(bytes) => state.take(bytes),
                Output::End => {
                    state.is_ended = true;
                    state.wake_reader();
                }
                Output::Done => {
                    state.is_done = true;
                    state.wake_reader();
                }
                Output::Reset(reason, detail) => {
                    let detail = String::from_utf8_lossy(&detail).into_owned();
                    state.end(Over { reason, detail });
                }
            }
        }
        if state.stream.room() > 0 {
            state.writer.take().into_iter().for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CellState {
    fn is_over(&self) -> bool {
        self.is_done || self.over.is_some()
    }

    fn take(&mut self, bytes: Bytes) {
        if self.left.is_some() {
            return self.stream.consumed(now(), bytes.len());
        }
        self.pieces.push_back(bytes);
        self.wake_reader();
    }

    fn end(&mut self, over: Over) {
        if !self.is_done {
            self.over.get_or_insert(over);
        }
        self.wake_reader();
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}
