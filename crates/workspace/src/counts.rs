//! Figures for health and metrics.

/// What the workspace is doing and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections of clients.
    pub clients: usize,
    /// Sessions, including those that have ended.
    pub sessions: usize,
    /// Sessions with a process.
    pub live: usize,
    /// Bytes of output since the start.
    pub output_bytes: u64,
    /// How often a client fell behind and was sent a snapshot.
    pub resyncs: u64,
}
