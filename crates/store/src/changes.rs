//! Changes in a table that several servers share.

/// Records of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<T> {
    /// Whether these are all that there are: what is not among them is gone.
    pub whole: bool,
    /// The records, the oldest first.
    pub records: Vec<T>,
}
