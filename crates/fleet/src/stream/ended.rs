//! Streams that ended lately: a late frame of one is answered, and a late copy of its first frame does
//! not open it again.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use super::{Frame, Kind, Stream, StreamId};

/// How long a stream is known after its end.
pub const REMEMBERED: Duration = Duration::from_secs(10);
/// The most streams that are known after their end. Above it the oldest are forgotten.
pub const MOST_ENDED: usize = 65_536;

/// The answer to a frame of a stream that is not open here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It opens a stream: [`Stream::accept`] it, or answer with a reset.
    Open,
    /// Send this frame to the sender.
    Reply(Frame),
    /// Nothing.
    Silence,
}

/// The streams that ended lately.
#[derive(Debug, Default)]
pub struct EndedStreams {
    words: BTreeMap<StreamId, Frame>,
    order: VecDeque<(Instant, StreamId)>,
}

impl EndedStreams {
    /// Notes a stream that is over.
    pub fn note(&mut self, now: Instant, stream: &Stream) {
        self.forget(now);
        if self.words.insert(stream.id(), stream.last_word()).is_none() {
            self.order.push_back((now, stream.id()));
        }
        while self.order.len() > MOST_ENDED {
            self.forget_first();
        }
    }

    /// The answer to a frame of a stream that is not open here.
    pub fn answer(&mut self, now: Instant, frame: &Frame) -> Answer {
        self.forget(now);
        match (frame.kind, self.words.get(&frame.stream)) {
            (Kind::Reset(_) | Kind::Credit, _) => Answer::Silence,
            (_, Some(word)) => Answer::Reply(word.clone()),
            (Kind::Open, None) => Answer::Open,
            (_, None) => Answer::Reply(Frame::unknown(frame.stream)),
        }
    }

    /// How many streams are known.
    pub fn known(&self) -> usize {
        self.words.len()
    }

    fn forget(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(at, _)| *at + REMEMBERED <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.words.remove(&id);
        }
    }
}
