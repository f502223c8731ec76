//! Reads frames without keeping them: how much output there was, whether any of it is missing, and
//! whether the last word was in it.

use anyhow::{Result, bail};

use super::super::{
    find::Find,
    frames::{self, BINARY, CLOSE, OUTPUT, TEXT},
};
use crate::programs::OVER;

/// From this many bytes on it pays to skip the middle of a frame.
pub(super) const SKIPPED: usize = 16 << 10;

/// The end of a frame that is read in any case: the last word is there.
const END: usize = 64;

/// The beginning of a text that holds its type.
const KIND: usize = 64;

pub(super) struct Skim {
    /// The beginning of a frame that is not whole.
    head: Vec<u8>,
    opcode: u8,
    /// Bytes of the frame that are still to come.
    left: usize,
    bytes: u64,
    last: Option<u64>,
    missed: u64,
    find: Find,
    over: bool,
}

impl Default for Skim {
    fn default() -> Self {
        let find = Find::new(OVER);
        let (head, opcode, left) = (Vec::new(), 0, 0);
        Self { head, opcode, left, bytes: 0, last: None, missed: 0, find, over: false }
    }
}

impl Skim {
    pub(super) fn feed(&mut self, mut piece: &[u8]) -> Result<()> {
        while !piece.is_empty() {
            if self.left == 0 {
                self.head.push(piece[0]);
                piece = &piece[1..];
                self.begin()?;
            } else {
                let (payload, rest) = piece.split_at(self.left.min(piece.len()));
                self.payload(payload);
                piece = rest;
            }
        }
        Ok(())
    }

    /// Passes over the next bytes, which are output.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
        self.bytes += bytes as u64;
        self.find = Find::new(OVER);
    }

    pub(super) fn middle(&self) -> usize {
        if self.opcode == BINARY { self.left.saturating_sub(END) } else { 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Begins a frame once enough of it is known.
    fn begin(&mut self) -> Result<()> {
        let Some(header) = frames::header(&self.head)? else { return Ok(()) };
        let known = match header.opcode {
            BINARY => OUTPUT,
            TEXT => KIND,
            CLOSE => bail!("closed by the daemon"),
            _ => 0,
        };
        let known = known.min(header.payload);
        if self.head.len() < header.length + known {
            return Ok(());
        }
        let head = std::mem::take(&mut self.head);
        self.opcode = header.opcode;
        self.left = header.payload - known;
        match header.opcode {
            BINARY => self.number(frames::seq(&head[header.length..])?),
            TEXT => self.told(&head[header.length..]),
            _ => {}
        }
        Ok(())
    }

    fn number(&mut self, seq: u64) {
        self.missed += u64::from(self.last.is_some_and(|last| seq != last + 1));
        self.last = Some(seq);
    }

    fn told(&mut self, text: &[u8]) {
        if memchr::memmem::find(text, b"\"session_snapshot\"").is_some() {
            // What follows goes on from there.
            self.missed += 1;
            self.last = None;
        }
    }

    fn payload(&mut self, payload: &[u8]) {
        self.left -= payload.len();
        match self.opcode {
            BINARY => {
                self.bytes += payload.len() as u64;
                self.over |= self.find.feed(payload);
            }
            // A screen that was sent again may have the last word, too.
            TEXT => self.over |= self.find.feed(payload),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(seq: u64, text: &[u8]) -> Vec<u8> {
        frame(BINARY, &[&[1; 17], &seq.to_be_bytes()[..], text].concat())
    }

    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x80 | opcode, 126];
        frame.extend((payload.len() as u16).to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn streams_are_counted_however_they_are_cut() {
        let told = br#"{"type":"session_status_changed","session":{}}"#;
        let stream = [
            output(7, b"first"),
            frame(TEXT, told),
            frame(frames::PING, b"x"),
            output(8, &[b'y'; 300]),
            output(9, b"the end [over]"),
        ]
        .concat();
        for piece in 1..stream.len() {
            let mut skim = Skim::default();
            stream.chunks(piece).for_each(|piece| skim.feed(piece).unwrap());
            assert!(skim.is_over(), "in pieces of {piece}");
            assert_eq!((skim.bytes(), skim.missed()), (319, 0), "in pieces of {piece}");
        }
    }

    #[test]
    fn a_missing_piece_is_seen() {
        let snapshot = br#"{"type":"session_snapshot","session_id":"x","seq":20,"data":"[over]"}"#;
        let mut skim = Skim::default();
        skim.feed(&output(1, b"a")).unwrap();
        skim.feed(&output(3, b"b")).unwrap();
        assert_eq!(skim.missed(), 1);
        skim.feed(&frame(TEXT, snapshot)).unwrap();
        skim.feed(&output(21, b"c")).unwrap();
        assert_eq!(skim.missed(), 2);
        assert!(skim.feed(&frame(CLOSE, b"")).is_err());
    }

    #[test]
    fn the_middle_of_a_frame_may_be_passed_over() {
        let frame = output(1, &[&[b'x'; 30_000][..], b"[over]"].concat());
        let mut skim = Skim::default();
        skim.feed(&frame[..40]).unwrap();
        let middle = skim.middle();
        assert!(middle > SKIPPED);
        skim.skip(middle);
        skim.feed(&frame[40 + middle..]).unwrap();
        assert!(skim.is_over());
        assert_eq!(skim.bytes(), 30_006);
    }
}
