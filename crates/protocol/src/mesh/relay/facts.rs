//! The fields of a node's capabilities that a relay needs.

use serde_json::value::RawValue;

use super::discover::Filter;
use crate::mesh::device::{Capabilities, WarrenNode};

/// What a relay needs of a node's capabilities, read on the side: they are passed on word for word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The models that it serves now.
    pub loaded_models: Vec<String>,
    /// Models that it could load.
    pub swappable: Vec<String>,
    /// Its memory, in GiB; 0 where it does not tell.
    pub total_ram_gb: f64,
    /// 1 is best, 4 is least, and of who does not tell.
    pub tier: u8,
    /// Whether it takes requests.
    pub is_available: bool,
    /// How many requests it takes at once, where it tells.
    pub max_concurrent: Option<u32>,
    /// A Warren's own fields.
    pub warren: Option<WarrenNode>,
}

impl Facts {
    /// Of capabilities as they were registered. Of what cannot be read, nothing is known.
    pub fn read(capabilities: &RawValue) -> Self {
        let read = serde_json::from_str::<Capabilities>(capabilities.get());
        read.map_or_else(|_| Self { tier: 4, ..Self::default() }, Self::from)
    }

    /// Whether a filter lets it through. [`Filter::max_peers`] is not for a single node to judge.
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
