//! Problems of the server's other parts, for `/health`.

use protocol::admin::status::WorkspaceHealth;

/// The condition of parts without which a server still serves.
pub trait Condition: Send + Sync {
    /// The problem and its consequence; `None` when all is well.
    fn degraded(&self) -> Option<String>;

    /// How many peers of the mesh it is linked to.
    fn peers(&self) -> u32 {
        0
    }

    /// What its workspace is doing; `None` when it has none.
    fn workspace(&self) -> Option<WorkspaceHealth> {
        None
    }
}

/// A server without such parts.
impl Condition for () {
    fn degraded(&self) -> Option<String> {
        None
    }
}
