//! A caller's view of a pull.

use protocol::admin::mesh::MeshTransfer;
use tokio::sync::watch;

/// A caller's view of a model that is being fetched. Dropping it stops nothing.
#[derive(Debug, Clone)]
pub struct Pull(pub(super) watch::Receiver<MeshTransfer>);

impl Pull {
    /// How it is now.
    pub fn now(&self) -> MeshTransfer {
        self.0.borrow().clone()
    }

    /// Waits for news, a few times a second at most; `None` after the last, whose state is `done`, `failed`
    /// or `cancelled`. Cancel safe.
    pub async fn next(&mut self) -> Option<MeshTransfer> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

/// Why a pull does not even begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// The model cannot be called so.
    #[error("no model can be called so: {0}")]
    Name(#[from] models::NameError),
    /// As many as are allowed at once are running.
    #[error("{0} models are being fetched already: wait for one, or cancel it")]
    TooMany(usize),
    /// Nothing can be fetched: the folder for models cannot be used, or the server is stopping.
    #[error("{0}")]
    Unavailable(String),
}
