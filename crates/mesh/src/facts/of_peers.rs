//! The facts that peers send about themselves. Peers may be strangers, so the fields are bounded
//! and cleaned here.

use base::plain::stripped;
use protocol::{
    json::clip,
    mesh::{
        Capabilities, Hardware,
        cluster::{Heartbeat, Hello},
    },
};
use tokio::time::Instant;

use crate::peer::PeerFacts;

/// The most models that a peer may have.
const MAX_MODELS: usize = 1_024;

/// The longest name of a peer, a model or a chip, in bytes.
const MAX_NAME: usize = 200;

/// The most requests that a peer counts as taking at once.
const MAX_CAPACITY: u32 = 1_024;

/// The highest speed that is believed, in tokens a second.
const MAX_SPEED: f64 = 1_000_000.0;

impl PeerFacts {
    /// Takes in a hello or its answer.
    pub(crate) fn greeted(&mut self, hello: &Hello) {
        let device = &hello.device_info;
        self.greeted = true;
        self.name = name(&device.name);
        self.hardware = hardware(&device.hardware);
        let listed = if hello.loaded_models.is_empty() {
            &device.loaded_models
        } else {
            &hello.loaded_models
        };
        self.models = models(listed);
        self.available = true;
        let warren = hello.warren.as_ref();
        self.warren = warren.map(|warren| name(&warren.version));
        self.takes(warren.and_then(|warren| warren.max_concurrent_requests));
        self.at_full_speed();
    }

    /// Takes in a heartbeat or its answer.
    pub(crate) fn beat(&mut self, heartbeat: &Heartbeat) {
        self.beats = true;
        self.models = models(&heartbeat.loaded_models);
        self.available = true;
        self.throttle = heartbeat.throttle_level.min(100);
        self.thermal = heartbeat.thermal_level;
        self.queue_depth = heartbeat.queue_depth;
        self.queue_reported = Some(Instant::now());
        self.generating = heartbeat.is_generating;
        let speed = heartbeat.ewma_tokens_per_second;
        self.speed = speed.filter(|speed| *speed > 0.0).map(|speed| speed.min(MAX_SPEED));
        self.takes(heartbeat.max_concurrent_requests);
    }

    /// Takes in what a mesh relay lists. While the peer itself sends heartbeats, those are newer.
    pub(crate) fn listed(&mut self, listed_name: &str, capabilities: &Capabilities) {
        self.name = name(listed_name);
        self.hardware = hardware(&capabilities.hardware);
        let warren = capabilities.warren.as_ref();
        self.warren = warren.map(|warren| name(&warren.version));
        if self.beats {
            return;
        }
        self.models = models(&capabilities.loaded_models);
        self.available = capabilities.is_available;
        self.takes(capabilities.max_concurrent_requests);
        self.at_full_speed();
    }

    /// Its last link has ended. From now on a mesh relay's list is newer than its own heartbeats.
    pub(crate) fn unlinked(&mut self) {
        self.beats = false;
    }

    fn takes(&mut self, requests: Option<u32>) {
        self.capacity = requests.unwrap_or(self.capacity).clamp(1, MAX_CAPACITY);
    }

    /// A peer counts as not paused until its first heartbeat.
    fn at_full_speed(&mut self) {
        if !self.beats {
            self.throttle = 100;
        }
    }
}

/// A text of a bounded length, without characters that would confuse a terminal.
fn name(text: &str) -> String {
    stripped(clip(text.trim(), MAX_NAME))
}

/// The models that can be asked for. `*` is left out, since a provider with it would offer every
/// model.
fn models(names: &[String]) -> Vec<String> {
    let fits = |model: &&String| {
        let plain = !model.chars().any(char::is_control) && !model.trim().is_empty();
        plain && model.len() <= MAX_NAME && *model != "*"
    };
    let mut models: Vec<_> = names.iter().filter(fits).take(MAX_MODELS).cloned().collect();
    models.sort_unstable();
    models.dedup();
    models
}

fn hardware(claimed: &Hardware) -> Hardware {
    Hardware {
        chip_family: name(&claimed.chip_family),
        chip_name: name(&claimed.chip_name),
        gpu_backend: claimed.gpu_backend.as_deref().map(name),
        platform: claimed.platform.as_deref().map(name),
        ..claimed.clone()
    }
}

#[cfg(test)]
mod tests {
    use base::Thermal;
    use protocol::mesh::cluster::{ClusterMessage, decode};
    use serde_json::{Value, json};

    use super::*;

    fn hello(hello: &Value) -> Hello {
        let message = json!({ "hello": hello }).to_string();
        match decode(message.as_bytes()).unwrap().message {
            ClusterMessage::Hello(hello) => *hello,
            other => panic!("{other:?}"),
        }
    }

    fn beat(beat: &Value) -> Heartbeat {
        let message = json!({ "heartbeat": beat }).to_string();
        match decode(message.as_bytes()).unwrap().message {
            ClusterMessage::Heartbeat(beat) => *beat,
            other => panic!("{other:?}"),
        }
    }

    fn capabilities(fields: &Value) -> Capabilities {
        serde_json::from_value(fields.clone()).unwrap()
    }

    #[test]
    fn a_stock_hello_makes_a_peer_that_can_be_asked() {
        let mut facts = PeerFacts::default();
        facts.greeted(&hello(&json!({"deviceInfo": {"hardware": {"tier": 2}, "id": "63c9bd98",
            "loadedModels": ["qwen/qwen3-8b"], "name": "Loopback Node D"}, "protocolVersion": 1})));
        assert_eq!((facts.name.as_str(), facts.models.len()), ("Loopback Node D", 1));
        assert_eq!((facts.available, facts.throttle, facts.capacity), (true, 100, 1));
        assert_eq!((facts.hardware.tier, facts.warren), (2, None));
    }

    #[test]
    fn heartbeats_report_changes() {
        let mut facts = PeerFacts::default();
        facts.beat(&beat(&json!({"thermalLevel": "serious", "throttleLevel": 25, "loadedModels": ["b", "a", "b"],
            "queueDepth": 3, "isGenerating": true, "ewmaTokensPerSecond": 11.5, "maxConcurrentRequests": 7})));
        assert_eq!((facts.thermal, facts.throttle, facts.queue_depth), (Thermal::Serious, 25, 3));
        assert_eq!(
            (facts.models, facts.speed, facts.capacity),
            (vec!["a".into(), "b".into()], Some(11.5), 7)
        );
        assert!(facts.generating);
    }

    #[test]
    fn a_relay_s_list_counts_only_while_the_peer_itself_says_nothing() {
        let list = capabilities(
            &json!({"loadedModels": ["old"], "isAvailable": true, "maxConcurrentRequests": 2}),
        );
        let mut facts = PeerFacts::default();
        facts.listed("n", &list);
        assert_eq!(
            (facts.models.clone(), facts.throttle, facts.capacity),
            (vec!["old".into()], 100, 2)
        );
        facts.beat(&beat(&json!({"throttleLevel": 0, "loadedModels": ["new"]})));
        facts.listed("renamed", &list);
        assert_eq!((facts.models.clone(), facts.throttle), (vec!["new".into()], 0));
        assert_eq!(facts.name, "renamed");
        facts.unlinked();
        facts.listed("n", &capabilities(&json!({"isAvailable": false})));
        assert_eq!((facts.models.len(), facts.available, facts.throttle), (0, false, 100));
    }

    #[test]
    fn a_peers_claims_are_bounded_and_cleaned() {
        let many: Vec<String> = (0..3_000).map(|number| format!("m{number}")).collect();
        let mut facts = PeerFacts::default();
        let long = "é".repeat(300);
        facts.greeted(&hello(&json!({"deviceInfo": {"name": format!("a\u{1b}[31m\u{202e}{long}"),
            "hardware": {"chipName": long}}, "loadedModels": many,
            "warren": {"nodeID": "00".repeat(32), "maxConcurrentRequests": 4_000_000_000_u32}})));
        assert!(facts.name.starts_with("a[31mé") && facts.name.len() <= MAX_NAME);
        assert!(facts.hardware.chip_name.len() <= MAX_NAME);
        assert_eq!((facts.models.len(), facts.capacity), (MAX_MODELS, MAX_CAPACITY));
        facts.beat(&beat(&json!({"loadedModels": ["*", "", " ", "a\nb", long, "m"],
            "ewmaTokensPerSecond": 1e300, "maxConcurrentRequests": 0})));
        assert_eq!(
            (facts.models, facts.speed, facts.capacity),
            (vec!["m".into()], Some(MAX_SPEED), 1)
        );
        facts = PeerFacts::default();
        facts.beat(&beat(&json!({"ewmaTokensPerSecond": -3})));
        assert_eq!(facts.speed, None);
    }
}
