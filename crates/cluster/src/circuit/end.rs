//! One end of a circuit, pure: which pieces have to be sent again over the next link, and which
//! have come already.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use wire::{Frame, Utf8Bytes};

use super::TooMuch;
use crate::link::frame::PIECE;

/// An end takes no more frames to send while this many bytes are not acknowledged.
pub(crate) const WINDOW: usize = 1024 * 1024;
/// The same bound in pieces.
pub(crate) const WINDOW_PIECES: usize = 512;
/// The other end gets an acknowledgement after this many bytes or pieces, or after a short pause.
const ACK_BYTES: usize = WINDOW / 8;
const ACK_PIECES: u64 = WINDOW_PIECES as u64 / 8;

/// A part of a frame, as a link carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its number in its direction of the circuit, from 0.
    pub(crate) number: u64,
    pub(crate) is_text: bool,
    /// Whether the frame goes on in the next piece.
    pub(crate) more: bool,
    pub(crate) bytes: Bytes,
}

/// One end of a circuit.
#[derive(Debug)]
pub(crate) struct CircuitEnd {
    /// The longest frame that the other end may send, in bytes.
    max_frame: usize,
    /// The pieces that are not acknowledged. The first has the number `acked`.
    unacked: VecDeque<Piece>,
    unacked_bytes: usize,
    acked: u64,
    /// How many of these pieces were given to the present link.
    given: usize,
    /// The number after the last piece that was ever given to a link.
    ever_given: u64,
    /// The number of the next piece from the other end.
    received: u64,
    /// The part of a frame that has come so far.
    partial: BytesMut,
    /// Whole frames that have come and were not taken yet, each with the number after its last
    /// piece.
    ready: VecDeque<(u64, Frame)>,
    ready_bytes: usize,
    /// The number after the pieces whose frames were taken; the last number that was acknowledged;
    /// and the bytes taken since.
    taken: u64,
    acknowledged: u64,
    taken_bytes: usize,
}

impl CircuitEnd {
    pub(crate) fn new(max_frame: usize) -> Self {
        Self {
            max_frame,
            unacked: VecDeque::new(),
            unacked_bytes: 0,
            acked: 0,
            given: 0,
            ever_given: 0,
            received: 0,
            partial: BytesMut::new(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            taken: 0,
            acknowledged: 0,
            taken_bytes: 0,
        }
    }

    /// Whether another frame may be put in.
    pub(crate) fn has_room(&self) -> bool {
        self.unacked_bytes < WINDOW && self.unacked.len() < WINDOW_PIECES
    }

    /// Whether nothing waits for the other end's acknowledgement.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.unacked.is_empty()
    }

    /// Whether the other end has acknowledged or sent anything.
    pub(crate) fn is_begun(&self) -> bool {
        self.acked > 0 || self.received > 0
    }

    /// Puts a frame at the end of the queue.
    pub(crate) fn put(&mut self, frame: Frame) {
        let (is_text, mut bytes) = match frame {
            Frame::Text(text) => (true, Bytes::from(text)),
            Frame::Binary(bytes) => (false, bytes),
        };
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let more = !bytes.is_empty();
            let number = self.acked + self.unacked.len() as u64;
            self.unacked_bytes += piece.len();
            self.unacked.push_back(Piece { number, is_text, more, bytes: piece });
            if !more {
                return;
            }
        }
    }

    /// The next piece for the present link. At most a window of pieces is under way.
    pub(crate) fn next_piece(&mut self) -> Option<Piece> {
        if self.given >= WINDOW_PIECES {
            return None;
        }
        let piece = self.unacked.get(self.given)?.clone();
        self.given += 1;
        self.ever_given = self.ever_given.max(piece.number + 1);
        Some(piece)
    }

    /// Begins on another link, over which every piece that is not acknowledged is sent again.
    pub(crate) fn relinked(&mut self) {
        self.given = 0;
    }

    /// Takes in that the other end has taken all pieces below this number. A number above the sent
    /// pieces is ignored.
    pub(crate) fn acknowledged(&mut self, number: u64) {
        if number > self.ever_given {
            return;
        }
        while self.acked < number {
            let Some(piece) = self.unacked.pop_front() else { return };
            self.unacked_bytes -= piece.bytes.len();
            self.acked += 1;
            // The piece may have arrived over an earlier link before it was given to this one.
            self.given = self.given.saturating_sub(1);
        }
    }

    /// Takes in a piece of the other end. A piece that came before over an earlier link is ignored,
    /// and so is one after a gap: it will be sent again.
    ///
    /// # Errors
    /// [`TooMuch`] when the frame is too long, or the other end does not keep to its window.
    pub(crate) fn receive(&mut self, piece: &Piece) -> Result<(), TooMuch> {
        if piece.number != self.received {
            // The other end does not know that this piece came, so it is acknowledged again.
            self.acknowledged = self.acknowledged.min(piece.number);
            return Ok(());
        }
        let len = self.partial.len() + piece.bytes.len();
        let is_over = self.ready_bytes + len > WINDOW + self.max_frame
            || self.ready.len() > 2 * WINDOW_PIECES;
        if len > self.max_frame || is_over {
            return Err(TooMuch);
        }
        self.received += 1;
        self.partial.extend_from_slice(&piece.bytes);
        if !piece.more {
            let bytes = self.partial.split().freeze();
            self.ready_bytes += bytes.len();
            self.ready.push_back((self.received, frame(piece.is_text, bytes)?));
        }
        self.take_partial();
        Ok(())
    }

    /// The next frame that has come whole. Taking it makes room at the other end.
    pub(crate) fn take_frame(&mut self) -> Option<Frame> {
        let (number, frame) = self.ready.pop_front()?;
        self.ready_bytes -= frame.len();
        self.taken_bytes += frame.len();
        self.taken = number;
        self.take_partial();
        Some(frame)
    }

    /// Whether a frame has come whole.
    pub(crate) fn has_frame(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Counts the first pieces of a long frame as taken, since its rest cannot come before they are
    /// acknowledged. All frames before it must have been taken, or they would be acknowledged, too.
    fn take_partial(&mut self) {
        if self.ready.is_empty() {
            self.taken = self.received;
        }
    }

    /// The number to acknowledge, if enough has been taken since the last one.
    pub(crate) fn ack_due(&mut self) -> Option<u64> {
        let is_due = self.taken_bytes >= ACK_BYTES || self.taken - self.acknowledged >= ACK_PIECES;
        if is_due { self.ack() } else { None }
    }

    /// The number to acknowledge, if the other end does not have it yet.
    pub(crate) fn ack(&mut self) -> Option<u64> {
        (self.acknowledged < self.taken).then(|| self.ack_again())
    }

    /// The number to acknowledge over a new link, whether or not the other end has it.
    pub(crate) fn ack_again(&mut self) -> u64 {
        self.acknowledged = self.taken;
        self.taken_bytes = 0;
        self.taken
    }
}

fn frame(is_text: bool, bytes: Bytes) -> Result<Frame, TooMuch> {
    match is_text {
        true => Utf8Bytes::try_from(bytes).map(Frame::Text).map_err(|_| TooMuch),
        false => Ok(Frame::Binary(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Frame {
        Frame::from(text.to_owned())
    }

    fn end() -> CircuitEnd {
        CircuitEnd::new(1024 * 1024)
    }

    /// Everything that the one end gives to its link, taken by the other.
    fn carry(from: &mut CircuitEnd, to: &mut CircuitEnd) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(piece) = from.next_piece() {
            to.receive(&piece).unwrap();
            frames.extend(to.take_frame());
        }
        frames
    }

    #[test]
    fn a_long_frame_travels_in_pieces_and_arrives_whole() {
        let (mut one, mut other) = (end(), end());
        let long = Frame::from(Bytes::from(vec![7; 3 * PIECE + 1]));
        one.put(long.clone());
        one.put(text(""));
        assert_eq!(carry(&mut one, &mut other), [long, text("")]);
        one.acknowledged(other.ack().unwrap());
        assert!(one.is_acknowledged() && other.ack().is_none());
    }

    #[test]
    fn a_frame_over_the_bound_ends_the_circuit() {
        let (mut one, mut other) = (end(), CircuitEnd::new(PIECE));
        one.put(Frame::from(Bytes::from(vec![7; PIECE + 1])));
        let mut pieces = std::iter::from_fn(|| one.next_piece());
        assert!(other.receive(&pieces.next().unwrap()).is_ok());
        assert!(other.receive(&pieces.next().unwrap()).is_err());
    }

    #[test]
    fn a_window_without_acknowledgement_is_full() {
        let mut one = end();
        let frames = (0..).take_while(|_| {
            one.put(text("key"));
            one.has_room()
        });
        assert_eq!(frames.count(), WINDOW_PIECES - 1);
        let mut one = end();
        one.put(Frame::from(Bytes::from(vec![0; WINDOW])));
        assert!(!one.has_room());
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
        let mut one = end();
        one.put(text("key"));
        one.acknowledged(1);
        assert!(!one.is_acknowledged(), "it was given to no link");
        let piece = one.next_piece().unwrap();
        one.acknowledged(2);
        one.relinked();
        assert_eq!(one.next_piece().unwrap(), piece);
    }

    proptest! {
        /// Whenever the links between two ends break and whatever they lose then, every frame
        /// arrives once and in order.
        #[test]
        fn frames_arrive_once_and_in_order(
            steps in prop::collection::vec((0..6u8, 0..3 * PIECE), 1..200),
        ) {
            let (mut one, mut other) = (end(), end());
            let (mut sent, mut arrived) = (Vec::new(), Vec::new());
            // Copies that an earlier link delivers late.
            let mut late = Vec::new();
            for (index, (step, size)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 if one.has_room() => {
                        let mut bytes = vec![0; size];
                        bytes.extend(index.to_le_bytes());
                        sent.push(Frame::from(Bytes::from(bytes)));
                        one.put(sent[sent.len() - 1].clone());
                    }
                    2 => if let Some(piece) = one.next_piece() {
                        late.push(piece.clone());
                        other.receive(&piece).unwrap();
                        arrived.extend(other.take_frame());
                    },
                    3 => one.relinked(),
                    4 => { one.next_piece(); one.relinked(); }
                    5 => {
                        if let Some(piece) = late.pop() {
                            other.receive(&piece).unwrap();
                        }
                        if let Some(number) = other.ack_due() {
                            one.acknowledged(number);
                        }
                    }
                    _ => {}
                }
            }
            arrived.extend(std::iter::from_fn(|| other.take_frame()));
            one.relinked();
            one.acknowledged(other.ack_again());
            while !one.is_acknowledged() {
                let before = arrived.len();
                arrived.extend(carry(&mut one, &mut other));
                let number = other.ack();
                prop_assert!(arrived.len() > before || number.is_some(), "it is stuck");
                number.into_iter().for_each(|number| one.acknowledged(number));
            }
            prop_assert_eq!(arrived, sent);
            prop_assert!(one.is_acknowledged());
        }
    }
}
