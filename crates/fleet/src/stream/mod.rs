//! An ordered stream of bytes, both ways, over a transport that may lose, double, delay and reorder.
//!
//! - [`frame`]: the frames, and their bytes
//! - `sending`: what was written, until the other end has it
//! - `receiving`: what came, in order
//! - [`ended`]: streams that ended lately, for frames that come too late
//!
//! Bytes are numbered from 0. Each frame says, beside what it carries, how far its sender has received
//! and how far the other end may send ([`WINDOW`] bytes beyond what was consumed). A receiver that sees a
//! hole asks for the missing bytes, which the sender keeps until they are acknowledged: no more than a
//! window. A sender whose bytes are not acknowledged, or whose window is closed, probes: the answer is an
//! acknowledgement or a request. So a stream of small pieces costs one message for a piece, and a few a
//! second the other way. An idle stream is probed each second; after [`SILENCE`] without a frame it ends.

pub mod ended;
pub mod frame;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;

pub use ended::EndedStreams;
pub use frame::{BadFrame, Frame, Kind, MOST_PAYLOAD, Reason, StreamId};

use crate::rules::Rules;
use receiving::Receiving;
use sending::Sending;

/// How many bytes may be under way or unread, in each direction.
pub const WINDOW: u64 = 256 * 1024;
/// A stream ends when nothing was heard of the other end for this time.
pub const SILENCE: Duration = Duration::from_secs(3);
/// The time until the first probe for an acknowledgement; it doubles up to [`IDLE`].
const PROBE: Duration = Duration::from_millis(250);
/// The longest time in which an end sends nothing.
const IDLE: Duration = Duration::from_secs(1);

/// One action, to be carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a frame to the other end.
    Send(Frame),
    /// The next bytes of the other end. Say with [`Stream::consumed`] when they are used.
    Data(Bytes),
    /// The other end has written all; the last of it came before.
    End,
    /// Both ends have all of each other. The stream is over: [`EndedStreams::note`] it and drop it.
    Done,
    /// The stream is over before its end, by the other end or for its silence: [`EndedStreams::note`] it and
    /// drop it.
    Reset(Reason, Bytes),
}

/// One end of a stream.
#[derive(Debug)]
pub struct Stream {
    id: StreamId,
    sending: Sending,
    receiving: Receiving,
    heard: Instant,
    last_sent: Instant,
    /// When a frame was last sent that the other end answers. What this end sends as an answer itself must not put off
    /// its own probe: else an other end that probes each second would put it off for ever.
    last_asked: Instant,
    probe: Duration,
    /// The reset that ended it, for frames that come later.
    over: Option<(Reason, Bytes)>,
    is_done: bool,
    outputs: VecDeque<Output>,
}

impl Stream {
    /// Opens a stream. Its first frame has what is written first, or is sent empty after a moment. `id` is
    /// random.
    pub fn open(now: Instant, id: StreamId) -> Self {
        let mut stream = Self::new(now, id, Rules::default());
        stream.sending.begin();
        stream
    }

    /// The other end of a stream, by its [`Kind::Open`] frame. `None` if the frame is another one.
    pub fn accept(now: Instant, frame: Frame) -> Option<Self> {
        Self::accept_under(now, frame, Rules::default())
    }

    /// The same under other rules, for tests.
    pub fn accept_under(now: Instant, frame: Frame, rules: Rules) -> Option<Self> {
        if frame.kind != Kind::Open {
            return None;
        }
        let mut stream = Self::new(now, frame.stream, rules);
        stream.handle(now, frame);
        Some(stream)
    }

    /// This stream under other rules, for tests.
    #[must_use]
    pub fn under(mut self, rules: Rules) -> Self {
        self.receiving.rules = rules;
        self
    }

    fn new(now: Instant, id: StreamId, rules: Rules) -> Self {
        Self {
            id,
            sending: Sending::default(),
            receiving: Receiving::new(rules),
            heard: now,
            last_sent: now,
            last_asked: now,
            probe: PROBE,
            over: None,
            is_done: false,
            outputs: VecDeque::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// How many bytes may be written now.
    pub fn room(&self) -> usize {
        if self.is_over() { 0 } else { self.sending.room() }
    }

    /// Whether nothing can be written or read any more.
    pub fn is_over(&self) -> bool {
        self.is_done || self.over.is_some()
    }

    /// Writes bytes, as far as there is [room](Stream::room); returns how many. `is_last` says that there
    /// will be no more, and holds only where all were taken.
    pub fn write(&mut self, now: Instant, mut bytes: Bytes, is_last: bool) -> usize {
        if self.is_over() {
            return 0;
        }
        let taken = bytes.len().min(self.sending.room());
        let is_last = is_last && taken == bytes.len();
        bytes.truncate(taken);
        self.sending.write(bytes, is_last);
        self.pump(now);
        taken
    }

    /// Says that this end has read `bytes` of [`Output::Data`]: the other end may send as many more.
    pub fn consumed(&mut self, now: Instant, bytes: usize) {
        if self.receiving.consume(bytes as u64) && !self.is_over() {
            self.send(now, Kind::Credit, 0, Bytes::new(), false);
        }
    }

    /// Ends the stream before its end. `detail` is cut to [`frame::MOST_DETAIL`] bytes.
    pub fn reset(&mut self, now: Instant, reason: Reason, mut detail: Bytes) {
        if self.is_over() {
            return;
        }
        detail.truncate(frame::MOST_DETAIL);
        self.send(now, Kind::Reset(reason), 0, detail.clone(), false);
        self.over = Some((reason, detail));
    }

    /// Handles a frame of the other end. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, frame: Frame) {
        if self.is_over() || frame.stream != self.id {
            return;
        }
        if let Kind::Reset(reason) = frame.kind {
            // The other end may know the stream only when its first frame is sent again.
            if reason != Reason::Unknown || self.sending.is_confirmed() {
                self.end(reason, frame.payload);
            }
            return;
        }
        self.heard = now;
        if self.sending.acknowledge(frame.received, frame.limit) {
            self.probe = PROBE;
        }
        match frame.kind {
            Kind::Open | Kind::Data => self.data(now, frame),
            Kind::Probe => self.probed(now, &frame),
            Kind::Missing => self.resend(now, frame.received, frame.offset),
            Kind::Credit | Kind::Reset(_) => {}
        }
        self.pump(now);
        self.finish(now);
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_over() {
            return;
        }
        if self.heard + SILENCE <= now {
            let detail = Bytes::from_static(b"nothing was heard of the other server");
            self.send(now, Kind::Reset(Reason::Silent), 0, detail.clone(), false);
            return self.end(Reason::Silent, detail);
        }
        if self.probe_at() <= now {
            self.send_probe(now);
        }
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Stream::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.is_over()).then(|| self.probe_at().min(self.heard + SILENCE))
    }

    fn probe_at(&self) -> Instant {
        match self.sending.is_waiting() {
            true => self.last_asked + self.probe,
            false => self.last_sent + IDLE,
        }
    }

    fn send_probe(&mut self, now: Instant) {
        if self.sending.is_waiting() {
            self.probe = (self.probe * 2).min(IDLE);
        }
        if self.sending.is_confirmed() {
            let (offset, is_last) = self.sending.sent();
            self.send(now, Kind::Probe, offset, Bytes::new(), is_last);
        } else {
            let (payload, is_last) = self.sending.first();
            self.send(now, Kind::Open, 0, payload, is_last);
        }
    }

    fn data(&mut self, now: Instant, frame: Frame) {
        let (offset, end) = (frame.offset, frame.offset + frame.payload.len() as u64);
        if end > self.receiving.limit() {
            let detail = Bytes::from_static(b"more bytes than the window allows");
            self.send(now, Kind::Reset(Reason::Breach), 0, detail.clone(), false);
            return self.end(Reason::Breach, detail);
        }
        if frame.is_last {
            self.receiving.ends_at(end);
        }
        if !self.receiving.take(offset, frame.payload) {
            self.ask(now, offset);
        }
        while let Some(piece) = self.receiving.next() {
            self.outputs.push_back(Output::Data(piece));
        }
    }

    fn probed(&mut self, now: Instant, frame: &Frame) {
        if frame.is_last {
            self.receiving.ends_at(frame.offset);
        }
        if self.receiving.received() < frame.offset {
            self.ask(now, frame.offset);
        } else {
            self.send(now, Kind::Credit, 0, Bytes::new(), false);
        }
    }

    /// Asks for what is missing before `offset`.
    fn ask(&mut self, now: Instant, offset: u64) {
        if let Some(end) = self.receiving.hole(now, offset) {
            self.send(now, Kind::Missing, end, Bytes::new(), false);
        }
    }

    fn resend(&mut self, now: Instant, from: u64, until: u64) {
        for (offset, payload, is_last) in self.sending.repeats(from, until) {
            self.send(now, Kind::Data, offset, payload, is_last);
        }
    }

    /// Sends what may be sent.
    fn pump(&mut self, now: Instant) {
        while let Some((kind, offset, payload, is_last)) = self.sending.next() {
            self.send(now, kind, offset, payload, is_last);
        }
    }

    /// Says when all of the other end has come, and when all is over.
    fn finish(&mut self, now: Instant) {
        if self.is_over() || !self.receiving.is_ended() {
            return;
        }
        if self.receiving.says_end() {
            self.outputs.push_back(Output::End);
            // Nothing else would carry the acknowledgement.
            if self.sending.has_sent_all() {
                self.send(now, Kind::Credit, 0, Bytes::new(), false);
            }
        }
        if self.sending.is_acknowledged() {
            self.is_done = true;
            self.outputs.push_back(Output::Done);
        }
    }

    fn end(&mut self, reason: Reason, detail: Bytes) {
        self.over = Some((reason, detail.clone()));
        self.outputs.push_back(Output::Reset(reason, detail));
    }

    fn send(&mut self, now: Instant, kind: Kind, offset: u64, payload: Bytes, is_last: bool) {
        let (received, limit) = (self.receiving.acknowledged(), self.receiving.offer());
        self.last_sent = now;
        if matches!(kind, Kind::Open | Kind::Data | Kind::Probe) {
            self.last_asked = now;
        }
        let frame = Frame { stream: self.id, kind, is_last, offset, received, limit, payload };
        self.outputs.push_back(Output::Send(frame));
    }

    /// The frame that answers whatever comes for this stream now that it is over.
    fn last_word(&self) -> Frame {
        let (kind, payload) = match &self.over {
            Some((reason, detail)) => (Kind::Reset(*reason), detail.clone()),
            None => (Kind::Credit, Bytes::new()),
        };
        let (received, limit) = (self.receiving.acknowledged(), self.receiving.limit());
        Frame { stream: self.id, kind, is_last: false, offset: 0, received, limit, payload }
    }
}
