//! The fields of a node's capabilities that a relay needs.

use serde_json::value::RawValue;

use super::discover::Filter;
use crate::mesh::device::{Capabilities, WarrenNode};

/// The capabilities of a node that a relay reads; it passes all of them on verbatim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The models that it serves now.
    pub loaded_models: Vec<String>,
    /// Models that it could load.
    pub swappable: Vec<String>,
    /// Its memory, in GiB; 0 if it does not report it.
    pub total_ram_gb: f64,
    /// Its tier: 1 is the best; 4 is the lowest, and the tier of a node that does not report one.
    pub tier: u8,
    /// Whether it takes requests.
    pub is_available: bool,
    /// The number of requests that it takes at once, if it reports it.
    pub max_concurrent: Option<u32>,
    /// A Warren's own fields.
    pub warren: Option<WarrenNode>,
}

impl Facts {
    /// Reads registered capabilities. Unreadable ones count as unknown.
    pub fn read(capabilities: &RawValue) -> Self {
        let read = serde_json::from_str::<Capabilities>(capabilities.get());
        read.map_or_else(|_| Self { tier: 4, ..Self::default() }, Self::from)
    }

    /// Whether it passes a filter. [`Filter::max_peers`] does not apply to a single node.
    pub fn pass(&self, filter: &Filter) -> bool {
        let has = |model: &String| self.models().any(|name| name.eq_ignore_ascii_case(model));
        filter.model_id.as_ref().is_none_or(has)
            && filter.min_ram_gb.is_none_or(|least| self.total_ram_gb >= least)
            && filter.min_tier.is_none_or(|worst| u32::from(self.tier) <= worst)
    }

    fn models(&self) -> impl Iterator<Item = &String> {
        self.loaded_models.iter().chain(&self.swappable)
    }
}

impl From<Capabilities> for Facts {
    fn from(capabilities: Capabilities) -> Self {
        Self {
            loaded_models: capabilities.loaded_models,
            swappable: capabilities.swappable_models,
            total_ram_gb: capabilities.hardware.total_ram_gb,
            tier: capabilities.hardware.tier,
            is_available: capabilities.is_available,
            max_concurrent: capabilities.max_concurrent_requests,
            warren: capabilities.warren,
        }
    }
}
