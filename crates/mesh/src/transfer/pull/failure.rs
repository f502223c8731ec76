//! Why a pull ends without the model.

use models::ArrivalError;

/// Why a pull ends without the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// For programs: as `MeshTransfer::code` has it.
    pub(super) code: &'static str,
    /// For people.
    pub(super) why: String,
}

impl Failure {
    pub(super) fn new(code: &'static str, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    /// The error, on this machine or at a peer.
    pub(super) fn of(error: &ArrivalError) -> Self {
        use ArrivalError as E;
        let code = match error {
            E::NoSpace { .. } | E::Full { .. } => "no_space",
            E::Exists { .. } | E::InTheWay { .. } => "exists",
            E::Busy { .. } => "refused",
            E::Disk { .. } | E::Damaged { .. } => "disk",
            E::Incomplete { .. } => "lost",
            E::Corrupt { .. }
            | E::Tree { .. }
            | E::NoTree { .. }
            | E::Outside { .. }
            | E::Stock(_)
            | E::Manifest(_)
            | E::Altered { .. } => "corrupt",
        };
        Self::new(code, base::error::chain(error))
    }

    /// Whether another peer may do better.
    pub(super) fn is_the_peers(&self) -> bool {
        matches!(self.code, "corrupt" | "lost")
    }
}
