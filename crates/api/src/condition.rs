//! Problems of the server's other parts, for `/health`.

use protocol::admin::status::{FleetHealth, WorkspaceHealth};

/// The condition of parts that the server can serve without.
pub trait Condition: Send + Sync {
    /// The problem and its consequence; `None` when all is well.
    fn degraded(&self) -> Option<String>;

    /// The number of mesh peers that the server is linked to.
    fn peers(&self) -> u32 {
        0
    }

    /// The servers that act as one with this one; `None` when the settings say that it works alone.
    fn fleet(&self) -> Option<FleetHealth> {
        None
    }

    /// The state of the server's workspace; `None` when it has none.
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
