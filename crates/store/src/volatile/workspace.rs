//! Facts of the workspace.

use super::{VolatileStore, lock};
use crate::{
    StoreError,
    workspace::{Change, Fact, WorkspaceStore},
};

impl WorkspaceStore for VolatileStore {
    fn load_facts(&self, kind: &str) -> Result<Vec<Fact>, StoreError> {
        let facts = lock(&self.facts);
        let of_kind = facts.iter().filter(|((of, _), _)| of == kind);
        let fact = |((kind, id), json): (&(String, String), &String)| Fact {
            kind: kind.clone(),
            id: id.clone(),
            json: json.clone(),
        };
        Ok(of_kind.map(fact).collect())
    }

    fn change_facts(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut facts = self.writes(&self.facts)?;
        for change in changes.iter().cloned() {
            match change {
                Change::Keep(Fact { kind, id, json }) => facts.insert((kind, id), json),
                Change::Forget { kind, id } => facts.remove(&(kind, id)),
            };
        }
        Ok(())
    }
}
