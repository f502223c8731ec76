//! The hardware of this machine, in the peers' form.

use base::NodeId;
use hardware::Machine;
use protocol::mesh::{Hardware, WireId};

/// The UUID by which stock peers know a node. It is the first half of the node's public key in the
/// form of a random UUID, so it is the same after each start.
pub(crate) fn device_id(id: &NodeId) -> WireId {
    let mut half = [0; 16];
    half.copy_from_slice(&id.as_bytes()[..16]);
    WireId::from_random(u128::from_be_bytes(half))
}

/// The hardware of this machine.
pub(super) struct MachineFacts {
    pub(super) hardware: Hardware,
    pub(super) max_model_size_gb: f64,
}

impl MachineFacts {
    pub(super) fn of(machine: &Machine) -> Self {
        let max_model_size_gb = machine.max_model_size_gb();
        Self { hardware: hardware(machine), max_model_size_gb }
    }
}

fn hardware(machine: &Machine) -> Hardware {
    Hardware {
        chip_family: machine.chip_family.to_owned(),
        chip_name: machine.chip_name.clone(),
        total_ram_gb: machine.total_ram_gb,
        gpu_core_count: machine.gpu_core_count,
        memory_bandwidth_gbs: machine.memory_bandwidth_gbs,
        tier: machine.tier(),
        gpu_backend: Some(machine.gpu_backend.to_owned()),
        platform: Some(machine.platform.to_owned()),
        gpu_vram_gb: machine.gpu_vram_gb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_by_the_same_uuid_whenever_it_starts() {
        let id = device_id(&NodeId::new([0xab; 32]));
        assert_eq!(id, device_id(&NodeId::new([0xab; 32])));
        assert_eq!(id.as_str(), "abababab-abab-4bab-abab-abababababab");
        assert_ne!(id, device_id(&NodeId::new([0xac; 32])));
    }
}
