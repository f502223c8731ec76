//! The values of settings by their names, as they would be written in a file.

use serde_json::{Value, json};

use super::Settings;
use crate::{
    configuration::Defaults,
    options::{
        RoomEndpoints,
        listed::{secs, word},
    },
    telemetry::tracing_export::RATIO,
    workspace_settings,
};

impl Settings {
    /// The values of those settings that have a default. The settings reference is made from these.
    pub fn values(&self) -> Defaults {
        let all = [self.of_server(), self.of_mesh(), self.of_workspace()].concat();
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn of_server(&self) -> Vec<(&'static str, Value)> {
        let jobs = &self.dispatch;
        vec![
            ("listen", json!(self.listen)),
            ("data_dir", json!(self.data_dir)),
            ("max_queue_len", json!(jobs.max_queue_len)),
            ("queue_timeout_secs", secs(jobs.queue_timeout)),
            ("busy_timeout_secs", secs(jobs.busy_timeout)),
            ("request_timeout_secs", secs(jobs.request_timeout)),
            ("idle_timeout_secs", secs(jobs.idle_timeout)),
            ("max_requeue_count", json!(jobs.max_requeue_count)),
            ("resume_answers", json!(self.resume_answers)),
            ("max_queued_mib", json!(jobs.max_queued_bytes >> 20)),
            ("heartbeat_interval_secs", secs(self.heartbeat)),
            ("max_body_mib", json!(self.max_body >> 20)),
            ("drain_timeout_secs", secs(self.drain)),
            ("log_format", word(&self.log_format)),
            ("log", json!(self.log)),
            ("otlp_sample", json!(RATIO)),
            ("sse_keepalive_secs", secs(self.keepalive)),
            ("routing", word(&self.routing)),
            ("ledger", json!(self.ledger)),
            ("usage_retention_days", json!(self.usage_retention.as_secs() / 86_400)),
            ("keep_responses_days", json!(self.kept_responses.as_secs() / 86_400)),
            ("store_responses", json!(self.keep_unasked)),
            ("require_key", json!(self.require_key)),
            ("open_rooms", json!(self.open_rooms)),
            ("room_idle_secs", secs(self.room_idle)),
            ("room_endpoints", word(&RoomEndpoints::default())),
            ("open", json!(self.open)),
            ("cluster.no_peer_discovery", json!(!self.cluster.member.discovery)),
            ("cluster.allow_plain_peers", json!(self.cluster.member.allow_plain)),
        ]
    }

    fn of_mesh(&self) -> Vec<(&'static str, Value)> {
        let mesh = &self.mesh;
        vec![
            ("mesh.enabled", json!(mesh.enabled)),
            ("mesh.plain_passcode", json!(mesh.node.plain_passcode)),
            ("mesh.require_sealed", json!(mesh.node.require_sealed)),
            ("mesh.route", kebab(&mesh.route)),
            ("mesh.accept_unsigned", json!(mesh.accept_unsigned)),
            ("mesh.share", kebab(&mesh.node.share.with)),
            ("mesh.share.with", kebab(&mesh.node.share.with)),
            ("mesh.share.pause_on_battery", json!(mesh.node.share.pause_on_battery)),
            ("mesh.share.offer_models", json!(mesh.node.share.models_offered)),
        ]
    }

    fn of_workspace(&self) -> Vec<(&'static str, Value)> {
        let mut all = vec![("workspace.enabled", json!(self.workspace.is_some()))];
        all.extend(self.workspace.iter().flat_map(workspace_settings::values));
        all
    }
}

/// The name of a variant as it is written in a file: `prefer-local` for `PreferLocal`.
fn kebab(name: &dyn std::fmt::Debug) -> Value {
    let mut text = String::new();
    for (place, letter) in format!("{name:?}").char_indices() {
        if letter.is_uppercase() && place > 0 {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    json!(text)
}
