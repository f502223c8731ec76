//! Changes of a table that several servers share, and rows that wait on this machine's disk for the shared database.

/// Records of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<T> {
    /// Whether these are all records of the table: a record that is not among them was deleted.
    pub whole: bool,
    /// The records, the oldest first.
    pub records: Vec<T>,
}

/// Rows that wait, the oldest first. They were added by one run of a server. By the name of the run and the number of
/// the row, the database takes each row once, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRows<T> {
    /// The run of a server that added them.
    pub source: String,
    /// The rows, each with its number.
    pub rows: Vec<(i64, T)>,
}

impl<T> WaitingRows<T> {
    /// The number of the last row.
    pub fn last(&self) -> Option<i64> {
        self.rows.last().map(|(number, _)| *number)
    }
}
