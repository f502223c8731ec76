//! The facts that this machine sends about itself, and the facts that peers send about themselves.
//!
//! - `machine`: this machine's hardware
//! - `served`: what this machine's own providers serve now
//! - `of_peers`: the facts that peers send, within bounds

mod machine;
mod of_peers;
mod served;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use base::NodeId;
use hardware::{Condition, Machine, PowerRules, Root, Thermal};
use protocol::mesh::{
    AppleTime, Capabilities, DeviceInfo, Hardware, WarrenNode, WireId,
    cluster::{Heartbeat, Hello, WarrenHello},
};
use scheduler::Scheduler;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use machine::MachineFacts;
pub(crate) use machine::device_id;
pub(crate) use served::ServedModels;

use crate::{
    settings::Settings,
    share::{MachineLoad, Moment, Share, Sharing},
};

/// How often the condition of this machine is read.
const READ_EVERY: Duration = Duration::from_secs(5);

/// The most addresses that are sent.
const MAX_ADDRESSES: usize = 16;

/// The facts that this machine sends about itself: identity, hardware, models and condition.
pub(crate) struct Facts {
    id: NodeId,
    device: WireId,
    name: String,
    version: &'static str,
    /// Whether it has a passcode.
    psk: bool,
    share: Share,
    scheduler: Scheduler,
    /// The number of peers' requests that are being answered here.
    lent: Arc<AtomicU32>,
    started: AppleTime,
    machine: OnceLock<MachineFacts>,
    state: Mutex<FactsState>,
}

struct FactsState {
    condition: Condition,
    /// The bound address of its LAN listener.
    listens: Option<SocketAddr>,
    /// The addresses at which peers can reach it.
    addresses: Vec<SocketAddr>,
}

impl Facts {
    /// `lent` is the number of peers' requests that are being answered here.
    pub(crate) fn new(
        settings: &Settings,
        id: NodeId,
        scheduler: Scheduler,
        lent: Arc<AtomicU32>,
    ) -> Self {
        // Until the first reading, the condition of a machine without sensors is assumed.
        let condition = Condition {
            thermal: Thermal::Nominal,
            on_ac_power: true,
            battery_percent: None,
            load: 0.0,
        };
        Self {
            id,
            device: device_id(&id),
            name: settings.name.clone(),
            version: settings.version,
            psk: settings.passcode.is_some(),
            share: settings.share.clone(),
            scheduler,
            lent,
            started: now(),
            machine: OnceLock::new(),
            state: Mutex::new(FactsState { condition, listens: None, addresses: Vec::new() }),
        }
    }

    /// Finds out the hardware and the condition of this machine, which may take seconds.
    pub(crate) async fn detect(&self) {
        let found = tokio::task::spawn_blocking(|| MachineFacts::of(&Machine::detect())).await;
        if let Ok(found) = found {
            // A second call finds the same, so it does not matter which result is kept.
            let _ = self.machine.set(found);
        }
        self.read_condition().await;
    }

    /// Reads the condition of this machine every few seconds, until `stop`.
    pub(crate) async fn keep_reading(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(READ_EVERY)).await.is_some() {
            self.read_condition().await;
        }
    }

    /// Sets the bound address of the LAN listener.
    pub(crate) fn listens(&self, bound: SocketAddr) {
        self.lock().listens = Some(bound);
    }

    /// The bound address of the LAN listener, if there is one.
    pub(crate) fn listening(&self) -> Option<SocketAddr> {
        self.lock().listens
    }

    /// The UUID by which stock peers know this machine. It follows from the node id.
    pub(crate) fn device_id(&self) -> &WireId {
        &self.device
    }

    /// The hello for a link that this machine opens or answers. A sealed link's hello has more
    /// fields.
    pub(crate) fn hello(&self, sealed: bool) -> Hello {
        let served = self.served();
        let addresses = if sealed { self.lock().addresses.clone() } else { Vec::new() };
        let warren = WarrenHello {
            node_id: self.id,
            version: self.version.to_owned(),
            psk: self.psk,
            addresses,
            max_concurrent_requests: Some(served.capacity),
            instance: None,
            dial: None,
        };
        Hello {
            device_info: self.device_info(&served.models),
            protocol_version: 1,
            cluster_passcode_hash: None,
            loaded_models: served.models,
            owner_user_id: None,
            warren: Some(warren),
            extra: Map::new(),
        }
    }

    /// The heartbeat to send now.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        let served = self.served();
        let level = self.lock().condition.thermal;
        Heartbeat {
            device_id: self.device.clone(),
            timestamp: now(),
            thermal_level: level,
            throttle_level: self.throttle(&served),
            is_generating: served.in_flight > 0,
            queue_depth: served.queue_depth,
            organization_id: None,
            owner_user_id: None,
            ewma_tokens_per_second: served.speed,
            max_concurrent_requests: Some(served.capacity),
            loaded_models: served.models,
            extra: Map::new(),
        }
    }

    /// The capabilities for mesh relays.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let served = self.served();
        let available = self.share.with != Sharing::Off && self.throttle(&served) > 0;
        let version = self.version.to_owned();
        let on_ac_power = self.lock().condition.on_ac_power;
        Capabilities {
            hardware: self.hardware(),
            loaded_models: served.models,
            swappable_models: Vec::new(),
            max_model_size_gb: self.machine.get().map_or(0.0, |facts| facts.max_model_size_gb),
            is_available: available,
            max_concurrent_requests: Some(served.capacity),
            effective_context: None,
            on_ac_power: Some(on_ac_power),
            warren: Some(WarrenNode { mesh: 2, version, psk: self.psk }),
            extra: Map::new(),
        }
    }

    /// The state of this machine, for the rules of sharing.
    pub(crate) fn load(&self) -> MachineLoad {
        // Only one rule needs the load, and finding it takes the scheduler's lock.
        let own_load = self.share.max_load.map_or(0.0, |_| self.own_load(&self.served()));
        MachineLoad { own_load, throttle: self.throttle_of_machine() }
    }

    fn device_info(&self, models: &[String]) -> DeviceInfo {
        DeviceInfo {
            id: self.device.clone(),
            name: self.name.clone(),
            hardware: self.hardware(),
            registered_at: self.started,
            last_seen_at: now(),
            is_current_device: true,
            loaded_models: models.to_vec(),
            extra: Map::new(),
        }
    }

    fn hardware(&self) -> Hardware {
        self.machine.get().map(|facts| facts.hardware.clone()).unwrap_or_default()
    }

    fn served(&self) -> ServedModels {
        ServedModels::of(&self.scheduler.status(), &self.share)
    }

    /// The throttle, or 0 while a sharing rule lets no requests in.
    fn throttle(&self, served: &ServedModels) -> u8 {
        let throttle = self.throttle_of_machine();
        let load = MachineLoad { own_load: self.own_load(served), throttle };
        if self.share.pauses(Moment::now(), load).is_some() { 0 } else { throttle }
    }

    fn throttle_of_machine(&self) -> u8 {
        let pause_on_battery = self.share.pause_on_battery;
        let rules = PowerRules { pause_on_battery, pause_when_hot: true };
        self.lock().condition.throttle(rules)
    }

    fn own_load(&self, served: &ServedModels) -> f64 {
        served.own_load(self.lent.load(Ordering::Relaxed))
    }

    async fn read_condition(&self) {
        // Reading takes files or tools of the system, so it runs on a blocking thread.
        let reading = tokio::task::spawn_blocking(|| {
            (Condition::read(&Root::system()), hardware::addresses())
        });
        let Ok((condition, ips)) = reading.await else { return };
        let mut state = self.lock();
        state.condition = condition;
        state.addresses = match state.listens {
            Some(bound) if bound.ip().is_unspecified() => {
                let all = ips.into_iter().map(|ip| SocketAddr::new(ip, bound.port()));
                all.take(MAX_ADDRESSES).collect()
            }
            bound => bound.into_iter().collect(),
        };
    }

    fn lock(&self) -> MutexGuard<'_, FactsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> AppleTime {
    AppleTime::from_unix_ms(access::Moment::now().wall_ms)
}

#[cfg(test)]
mod tests;
