//! Finds close frames whose reason is not UTF-8 among the bytes that come.
//!
//! The library reports such a frame as it reports a text message that is not UTF-8. The link passes
//! over such a text, but a close frame must end it.

use std::io::Cursor;

use tungstenite::protocol::frame::{
    FrameHeader,
    coding::{Control, OpCode},
};

/// The longest payload of a control frame (RFC 6455 section 5.5), in bytes. The library refuses longer
/// ones.
const MAX_CONTROL: u64 = 125;

/// The longest head of a frame, in bytes.
const MAX_HEAD: usize = 14;

/// Follows the frames that come, and remembers whether a bad close frame was among them.
#[derive(Debug, Default)]
pub(crate) struct CloseWatch {
    /// The head of the current frame, as far as it has come. For a close frame, its payload as
    /// well.
    begun: Vec<u8>,
    /// How many bytes of the current payload are still to come. They are not looked at.
    skipped: u64,
    has_seen: bool,
}

impl CloseWatch {
    /// Whether a close frame has come whose reason is not UTF-8.
    pub(crate) fn has_seen(&self) -> bool {
        self.has_seen
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn see(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.begun.is_empty()
                && self.skipped == 0
                && let Some((head, length)) = data_frame(bytes)
            {
                self.skipped = length;
                bytes = &bytes[head..];
            } else if self.skipped > 0 {
                let skipped = self.skipped.min(bytes.len() as u64);
                self.skipped -= skipped;
                // Fits: not more than `bytes.len()`.
                bytes = &bytes[skipped as usize..];
            } else if self.begun.len() < MAX_HEAD + MAX_CONTROL as usize {
                self.begun.push(*first);
                self.look();
                bytes = rest;
            } else {
                // No frame begins like this: the library ends the link.
                return;
            }
        }
    }

    /// Examines the frame that has begun. Does nothing while its head, or the payload of a close
    /// frame, is incomplete.
    fn look(&mut self) {
        let mut head = Cursor::new(&self.begun[..]);
        let Ok(Some((header, length))) = FrameHeader::parse(&mut head) else { return };
        let payload = &self.begun[head.position() as usize..];
        if header.opcode == OpCode::Control(Control::Close) && length <= MAX_CONTROL {
            if (payload.len() as u64) < length {
                return;
            }
            self.has_seen |= !has_good_reason(payload, header.mask);
        } else {
            self.skipped = length;
        }
        self.begun.clear();
    }
}

/// The lengths of head and payload of a frame that is no close frame, if all of its head is there.
fn data_frame(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut head = Cursor::new(bytes);
    let (header, length) = FrameHeader::parse(&mut head).ok()??;
    let is_close = header.opcode == OpCode::Control(Control::Close);
    (!is_close).then_some((head.position() as usize, length))
}

/// Whether the payload of a close frame, after its code of two bytes, is UTF-8.
fn has_good_reason(payload: &[u8], mask: Option<[u8; 4]>) -> bool {
    let mask = mask.unwrap_or_default().into_iter().cycle();
    let reason: Vec<u8> =
        payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask).skip(2).collect();
    std::str::from_utf8(&reason).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let length = payload.len();
        let length = match length {
            0..126 => vec![length as u8 | 0x80],
            126..65_536 => [&[0xfe][..], &(length as u16).to_be_bytes()].concat(),
            _ => [&[0xff][..], &(length as u64).to_be_bytes()].concat(),
        };
        let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [&[0x80 | kind], &length[..], &mask].concat().into_iter().chain(payload).collect()
    }

    fn has_seen(frames: &[Vec<u8>], at_once: usize) -> bool {
        let mut watch = CloseWatch::default();
        frames.concat().chunks(at_once).for_each(|bytes| watch.see(bytes));
        watch.has_seen()
    }

    #[test]
    fn only_a_close_with_a_bad_reason_is_seen_wherever_reads_cut_it() {
        let bad_text = |length| masked(1, &vec![0xff; length]);
        let before = [0, 1, 125, 126, 65_535, 65_536].map(bad_text);
        let bad_close = masked(8, b"\x03\xe8caf\xe9");
        let plain = vec![0x88, 4, 3, 0xe8, b'o', 0xff];
        for at_once in [1, 2, 3, 7, 1000, usize::MAX] {
            for good in [masked(8, b""), masked(8, b"\xff"), masked(8, "\u{3}\u{3}é".as_bytes())] {
                let good = [&before[..], &[good]].concat();
                assert!(!has_seen(&good, at_once), "{at_once}");
            }
            for bad in [&bad_close, &plain] {
                let bad = [&before[..], std::slice::from_ref(bad)].concat();
                assert!(has_seen(&bad, at_once), "{at_once}");
            }
        }
    }

    #[test]
    fn nothing_gathers_of_what_is_no_frame() {
        let mut watch = CloseWatch::default();
        (0..10_000).for_each(|_| watch.see(&[0x8b, 0xff, 0xff, 0xff]));
        assert!(watch.begun.len() <= MAX_HEAD + MAX_CONTROL as usize);
    }
}
