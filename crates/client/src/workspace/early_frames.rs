//! The frames that came while a request waited for its answer.

use std::collections::VecDeque;

use super::connection::ServerFrame;

/// The most frames that are kept, and the bytes above which no more are kept. A server that sends more before
/// it answers would otherwise fill the memory.
const MOST: usize = 4096;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A frame, and its length in bytes.
pub(super) struct SizedFrame {
    pub(super) frame: ServerFrame,
    pub(super) bytes: usize,
}

/// Frames that wait to be taken, oldest first.
#[derive(Default)]
pub(super) struct EarlyFrames {
    frames: VecDeque<SizedFrame>,
    bytes: usize,
}

impl EarlyFrames {
    /// Keeps a frame. Returns `false` if too much is kept: then the frame is dropped.
    pub(super) fn keep(&mut self, frame: SizedFrame) -> bool {
        // Without the new frame: one that is as long as a message may be is kept.
        let has_room = self.frames.len() < MOST && self.bytes < MOST_BYTES;
        if has_room {
            self.bytes += frame.bytes;
            self.frames.push_back(frame);
        }
        has_room
    }

    pub(super) fn take(&mut self) -> Option<ServerFrame> {
        let SizedFrame { frame, bytes } = self.frames.pop_front()?;
        self.bytes -= bytes;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::ServerMessage;

    use super::*;

    fn message(bytes: usize) -> SizedFrame {
        let frame = ServerFrame::Message(Box::new(ServerMessage::error("x")));
        SizedFrame { frame, bytes }
    }

    #[test]
    fn no_more_frames_are_kept_than_the_bound() {
        let mut early = EarlyFrames::default();
        assert_eq!((0..).take_while(|_| early.keep(message(1))).count(), MOST);
        assert!(early.take().is_some() && early.keep(message(1)));
    }

    #[test]
    fn messages_count_by_their_bytes_and_a_long_one_is_kept_whole() {
        let mut early = EarlyFrames::default();
        assert_eq!((0..).take_while(|_| early.keep(message(MOST_BYTES / 4))).count(), 4);
        while early.take().is_some() {}
        assert!(early.keep(message(3 * MOST_BYTES)) && !early.keep(message(1)));
        assert!(early.take().is_some() && early.take().is_none() && early.keep(message(1)));
    }
}
