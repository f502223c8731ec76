//! What ails the server, as its other parts see it.

use protocol::admin::status::WorkspaceHealth;

/// What may ail a server that goes on serving.
pub trait Condition: Send + Sync {
    /// What is not as it should be, and what that means; `None` when all is well.
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

/// Nothing ails it.
impl Condition for () {
    fn degraded(&self) -> Option<String> {
        None
    }
}
