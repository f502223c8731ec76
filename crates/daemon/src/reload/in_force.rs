//! The settings in force after a reload.

use std::sync::Arc;

use crate::{
    configuration::Configuration,
    settings::{MeshSettings, Settings},
};

/// The settings that usually take effect at once, but cannot this time: a listener cannot change between TLS and clear
/// text, and the currency of prices and budgets cannot change.
pub(super) fn held_back(before: &Settings, read: &Settings) -> Vec<&'static str> {
    let mut held = Vec::new();
    if before.tls.is_some() != read.tls.is_some() {
        held.extend(["tls_cert", "tls_key"]);
    }
    if before.prices.currency != read.prices.currency {
        held.push("prices");
    }
    held
}

/// The former settings, in which those that take effect at once are replaced by the read ones. Settings that the parts
/// share by handles ([`Live`](base::Live)) keep the former handle.
pub(super) fn settings(
    before: &Settings,
    read: &Settings,
    configuration: Configuration,
) -> Settings {
    let held = held_back(before, read);
    let tls = if held.contains(&"tls_cert") { before } else { read };
    let prices = if held.contains(&"prices") { before } else { read };
    Settings {
        worker_secret: read.worker_secret.clone(),
        node_token: read.node_token.clone(),
        dispatch: dispatch::Config {
            // Stays: the memory for uploads was sized by it.
            max_queued_bytes: before.dispatch.max_queued_bytes,
            ..read.dispatch.clone()
        },
        resume_answers: read.resume_answers,
        max_body: read.max_body,
        drain: read.drain,
        keepalive: read.keepalive,
        aliases: read.aliases.clone(),
        prices: Arc::clone(&prices.prices),
        usage_retention: read.usage_retention,
        kept_responses: read.kept_responses,
        keep_unasked: read.keep_unasked,
        require_key: read.require_key,
        open: read.open,
        open_rooms: read.open_rooms,
        room_endpoints: read.room_endpoints,
        room_idle: read.room_idle,
        mesh: MeshSettings { route: read.mesh.route, ..before.mesh.clone() },
        tls_certificate: tls.tls_certificate.clone(),
        tls_key: tls.tls_key.clone(),
        fingerprint: tls.fingerprint,
        log: read.log.clone(),
        configuration,
        ..before.clone()
    }
}
