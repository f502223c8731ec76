//! How much memory a link may take.

/// The most bytes that a link reads and writes at once. A link keeps its buffers for its whole
/// life, so a server with thousands of idle links needs small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest message that is taken.
    pub max_message: usize,
    /// The size of one read from the socket.
    pub read_buffer: usize,
    /// How many bytes are gathered before the socket is tried.
    pub write_buffer: usize,
    /// Longer messages are written in fragments of this size. WebSocket libraries with default
    /// settings take no frame over 16 MiB.
    pub fragment: usize,
}

impl Limits {
    /// The size, in bytes, up to which the library adds pongs to the write buffer. The library
    /// requires that this is more than the write buffer's own size.
    pub(crate) fn pong_buffer(&self) -> usize {
        self.write_buffer + 1
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message: 64 * 1024 * 1024,
            read_buffer: 32 * 1024,
            write_buffer: 128 * 1024,
            fragment: 15 * 1024 * 1024,
        }
    }
}
