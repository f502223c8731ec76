//! A device's facts, as peers send them (spec, "hello"; stock peers' capabilities).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{
    date::AppleTime,
    lenient,
    wire_id::{MAX_ID, WireId},
};

/// The hardware of a machine. Names of chips and the like are kept unchanged, including unknown
/// ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardware {
    /// `nvidiaGPU`, `amdGPU`, `intelCPU`, `m2Max`, …
    #[serde(default, deserialize_with = "lenient::value")]
    pub chip_family: String,
    /// For people.
    #[serde(default, deserialize_with = "lenient::value")]
    pub chip_name: String,
    /// Memory, in GiB.
    #[serde(default, rename = "totalRAMGB", deserialize_with = "lenient::value")]
    pub total_ram_gb: f64,
    /// Cores of its GPU; 0 where that is unknown.
    #[serde(default, deserialize_with = "lenient::value")]
    pub gpu_core_count: u32,
    /// How fast memory is read, in GB/s; estimated.
    #[serde(default, rename = "memoryBandwidthGBs", deserialize_with = "lenient::value")]
    pub memory_bandwidth_gbs: f64,
    /// 1 is best, 4 is least.
    #[serde(default = "least_tier", deserialize_with = "lenient::tier")]
    pub tier: u8,
    /// `cuda`, `rocm`, `metal`, `cpu`, …
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub gpu_backend: Option<String>,
    /// `linux`, `macOS`, …
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub platform: Option<String>,
    /// The GPU's own memory, in GiB.
    #[serde(rename = "gpuVRAMGB")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub gpu_vram_gb: Option<f64>,
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            chip_family: "unknown".to_owned(),
            chip_name: "unknown".to_owned(),
            total_ram_gb: 0.0,
            gpu_core_count: 0,
            memory_bandwidth_gbs: 0.0,
            tier: least_tier(),
            gpu_backend: None,
            platform: None,
            gpu_vram_gb: None,
        }
    }
}

/// The tier of a node that does not report one.
fn least_tier() -> u8 {
    4
}

/// A device's description of itself (spec, "hello").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// A UUID. Stock nodes make a new one at each start.
    #[serde(default = "no_id", deserialize_with = "device_id")]
    pub id: WireId,
    /// For people.
    #[serde(default, deserialize_with = "lenient::value")]
    pub name: String,
    /// Its hardware.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub hardware: Hardware,
    /// When it was first seen, by its own clock.
    #[serde(default)]
    pub registered_at: AppleTime,
    /// When it was last seen, by its own clock.
    #[serde(default)]
    pub last_seen_at: AppleTime,
    /// Always true, since a device only describes itself.
    #[serde(default, deserialize_with = "lenient::value")]
    pub is_current_device: bool,
    /// The models that it has loaded.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub loaded_models: Vec<String>,
    /// All other fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

pub(super) fn no_id() -> WireId {
    WireId::from("")
}

/// The id of a device; empty where it is invalid. A bad id is harmless here: nothing is looked up
/// by it.
pub(super) fn device_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WireId, D::Error> {
    let text: String = lenient::value(deserializer)?;
    Ok(if text.len() <= MAX_ID { WireId::from(text.as_str()) } else { no_id() })
}

/// A node's capabilities, as it registers them with a relay. Relays pass them on verbatim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Its hardware.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub hardware: Hardware,
    /// The models that it serves now.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub loaded_models: Vec<String>,
    /// Models that it could load.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient::texts")]
    pub swappable_models: Vec<String>,
    /// The largest model that fits, in GiB.
    #[serde(default, rename = "maxModelSizeGB", deserialize_with = "lenient::value")]
    pub max_model_size_gb: f64,
    /// Whether it takes requests at all.
    #[serde(default, deserialize_with = "lenient::value")]
    pub is_available: bool,
    /// How many requests it takes at once.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub max_concurrent_requests: Option<u32>,
    /// The longest context, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub effective_context: Option<u32>,
    /// Whether it is plugged in.
    #[serde(rename = "onACPower")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub on_ac_power: Option<bool>,
    /// A Warren's own fields.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::any")]
    pub warren: Option<WarrenNode>,
    /// All other fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A Warren's own capabilities: links to it can be sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarrenNode {
    /// The version of the sealed form: 2.
    pub mesh: u32,
    /// The version of its program.
    pub version: String,
    /// Whether it requires a proof of the passcode.
    #[serde(default)]
    pub psk: bool,
}
