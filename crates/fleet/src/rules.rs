//! The rules that tests switch off one by one.

/// The rules without which servers would break their word. The simulator's tests switch single ones
/// off, to prove that it would notice; nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A borrower counts a lease from when it asked, and stops when it is over; without this rule it
    /// counts from when the grant came.
    pub leases: bool,
    /// A lender waits for a margin after a lease, for what is under way.
    pub margin: bool,
    /// A lender asks for lent slots back when its own jobs wait.
    pub recall: bool,
    /// A receiver of a stream notices what is missing; without this rule it takes what comes.
    pub gaps: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { leases: true, margin: true, recall: true, gaps: true }
    }
}
