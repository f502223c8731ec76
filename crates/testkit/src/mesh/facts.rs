//! The facts that peers report about themselves.

use serde_json::{Value, json};

use super::wire::apple_now;

pub(super) fn hardware() -> Value {
    json!({
        "chipFamily": "intelCPU", "chipName": "Intel(R) Xeon(R) Processor", "gpuBackend": "cpu",
        "gpuCoreCount": 0, "memoryBandwidthGBs": 50.0, "platform": "linux", "tier": 2,
        "totalRAMGB": 23.540_584_564_208_984,
    })
}

pub(super) fn mac_hardware() -> Value {
    json!({
        "chipFamily": "m2Max", "chipName": "Apple M2 Max", "totalRAMGB": 64, "gpuCoreCount": 38,
        "memoryBandwidthGBs": 400, "tier": 1, "gpuBackend": "metal", "platform": "macOS",
    })
}

pub(super) fn capabilities(models: &[String]) -> Value {
    json!({
        "effectiveContext": 8192, "hardware": hardware(), "isAvailable": true,
        "loadedModels": models, "maxConcurrentRequests": 2,
        "maxModelSizeGB": 17.655_438_423_156_74, "onACPower": true,
    })
}

pub(super) fn gateway_capabilities() -> Value {
    json!({
        "hardware": {
            "chipFamily": "gatewayVirtual", "chipName": "gateway", "gpuCoreCount": 0,
            "memoryBandwidthGBs": 0.0, "platform": "gateway", "tier": 0, "totalRAMGB": 0.0,
        },
        "isAvailable": false, "loadedModels": [], "maxModelSizeGB": 0.0,
    })
}

pub(super) fn device(id: &str, name: &str, hardware: &Value, models: &[String]) -> Value {
    json!({
        "hardware": hardware, "id": id, "isCurrentDevice": true, "lastSeenAt": apple_now(),
        "loadedModels": models, "name": name, "registeredAt": apple_now(),
    })
}

/// A heartbeat of a device that is well.
pub(super) fn heartbeat(device: &str, models: &[String]) -> Value {
    json!({
        "deviceID": device, "isGenerating": false, "loadedModels": models, "queueDepth": 0,
        "thermalLevel": "nominal", "throttleLevel": 100, "timestamp": apple_now(),
    })
}
