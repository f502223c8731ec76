//! Changes of a table that several servers share, and rows that wait on this machine's disk for its database.

/// Records of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<T> {
    /// Whether these are all that there are: what is not among them is gone.
    pub whole: bool,
    /// The records, the oldest first.
    pub records: Vec<T>,
}

/// Rows that wait, the oldest first. They were added by one run of a server, and have its name and their numbers: so the
/// database takes each once, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRows<T> {
    /// The run of a server that added them.
    pub source: String,
    /// Each with its number.
    pub rows: Vec<(i64, T)>,
}

impl<T> WaitingRows<T> {
    /// The number of the last one.
    pub fn last(&self) -> Option<i64> {
        self.rows.last().map(|(number, _)| *number)
    }
}
