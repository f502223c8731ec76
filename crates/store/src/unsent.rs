//! Rows that wait on this machine's disk until the database that several servers share takes them.

/// Rows that wait, the oldest first. They were added by one run of a server, and have its name and their numbers: so the
/// database takes each once, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<T> {
    /// The run of a server that added them.
    pub source: String,
    /// Each with its number.
    pub rows: Vec<(i64, T)>,
}

impl<T> Waiting<T> {
    /// The number of the last one.
    pub fn last(&self) -> Option<i64> {
        self.rows.last().map(|(number, _)| *number)
    }
}
