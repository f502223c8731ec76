//! The progress of a pull, and the reasons why it does not begin or ends without the model.

use models::ArrivalError;
use protocol::admin::mesh::MeshTransfer;
use tokio::sync::watch;

/// A caller's view of a model that is being fetched. Dropping this does not stop the pull.
#[derive(Debug, Clone)]
pub struct Pull(pub(super) watch::Receiver<MeshTransfer>);

impl Pull {
    /// The state now.
    pub fn now(&self) -> MeshTransfer {
        self.0.borrow().clone()
    }

    /// Waits for a change. There are at most a few a second. Returns `None` after the last one,
    /// whose state is `done`, `failed` or `cancelled`. Cancel safe.
    pub async fn next(&mut self) -> Option<MeshTransfer> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

/// Why a pull does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// No model can have this name.
    #[error("no model can be called so: {0}")]
    Name(#[from] models::NameError),
    /// The most pulls that may run at a time are running.
    #[error("{0} models are being fetched already: wait for one, or cancel it")]
    TooMany(usize),
    /// Nothing can be fetched: the folder for models cannot be used, or the server is stopping.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a pull ends without the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The code for programs, as in `MeshTransfer::code`.
    pub(super) code: &'static str,
    /// The text for people.
    pub(super) why: String,
}

impl Failure {
    pub(super) fn new(code: &'static str, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    /// The failure that follows from an error of the arriving files. It may be this machine's disk,
    /// or what a peer sent.
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

    /// Whether it is the peer's fault, so that another peer may do better.
    pub(super) fn is_the_peers(&self) -> bool {
        matches!(self.code, "corrupt" | "lost")
    }
}
