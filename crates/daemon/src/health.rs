//! The state that `/health` reports.

use std::sync::Arc;

use api::Condition;
use mesh::Mesh;
use protocol::admin::status::{FleetHealth, WorkspaceHealth};

use crate::{
    fleet_part::{FleetCell, FleetPart},
    ledger::Ledger,
    stores::Stores,
    workspace_part::WorkspacePart,
};

/// The state that `/health` reports.
pub(crate) struct Health {
    pub(crate) stores: Stores,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) mesh: Option<Mesh>,
    pub(crate) fleet: FleetCell,
    pub(crate) workspace: Option<WorkspacePart>,
}

impl Condition for Health {
    fn degraded(&self) -> Option<String> {
        let of_fleet = || self.fleet.get().and_then(FleetPart::problem);
        self.ledger.degraded().or_else(|| self.stores.problem()).or_else(of_fleet)
    }

    fn peers(&self) -> u32 {
        let linked = self.mesh.as_ref().map_or(0, Mesh::linked);
        u32::try_from(linked).unwrap_or(u32::MAX)
    }

    fn fleet(&self) -> Option<FleetHealth> {
        self.fleet.get().map(FleetPart::health)
    }

    fn workspace(&self) -> Option<WorkspaceHealth> {
        self.workspace.as_ref().map(WorkspacePart::health)
    }
}
