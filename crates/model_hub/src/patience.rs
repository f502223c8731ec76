//! How long is waited, and how often something is tried.

use std::time::Duration;

/// The rules of a hub's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the head of an answer, and for a whole answer that is no file.
    pub head: Duration,
    /// How far a file may fall behind [`RATE`](Self::RATE) before its connection is given up.
    pub stall: Duration,
    /// How often in a row something is tried of which nothing comes.
    pub tries: u32,
    /// The first pause between two tries.
    pub first_pause: Duration,
    /// The longest one.
    pub last_pause: Duration,
}

impl Patience {
    /// The least bytes a second of a file.
    pub const RATE: u32 = 1024;
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            head: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            tries: 6,
            first_pause: Duration::from_millis(500),
            last_pause: Duration::from_secs(30),
        }
    }
}
