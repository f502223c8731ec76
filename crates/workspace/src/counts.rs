//! Figures for health and metrics.

/// The current figures of the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions, including those that have ended.
    pub sessions: usize,
    /// Sessions that have not ended.
    pub live: usize,
    /// Those of them that are terminals.
    pub terminals: usize,
    /// Bytes of output since the start.
    pub output_bytes: u64,
    /// How often a client fell behind and was sent a snapshot.
    pub resyncs: u64,
}
