//! Metrics of the mesh and of the mesh relay, which are read when metrics are requested.

use mesh::admin::MeshCounts;
use mesh_relay::Counts;
use prometheus_client::{
    encoding::text::encode_registry,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::telemetry::metrics::{Labels, counter, gauge};

/// Appends the metrics of the mesh and of the mesh relay.
pub(crate) fn encode(text: &mut String, mesh: Option<&MeshCounts>, relay: Option<&Counts>) {
    let mut registry = Registry::with_prefix("warren_mesh");
    if let Some(counts) = mesh {
        of_mesh(&mut registry, counts);
    }
    if let Some(counts) = relay {
        of_relay(registry.sub_registry_with_prefix("relay"), counts);
    }
    // Writing to a string does not fail.
    let _ = encode_registry(text, &registry);
}

fn of_mesh(registry: &mut Registry, counts: &MeshCounts) {
    let peers = Family::<Labels<1>, Gauge>::default();
    for (kind, number) in
        [("lan", counts.lan), ("relay", counts.relayed), ("listed", counts.listed)]
    {
        let labels = [("kind", kind.to_owned())];
        peers.get_or_create(&labels).set(i64::try_from(number).unwrap_or(i64::MAX));
    }
    registry.register("peers", "Peers, by how they are reached", peers);
    let lent = gauge(counts.lent as usize);
    registry.register("lent", "Requests of peers that are being answered", lent);
    let help = "Parts of answers of peers that nobody waited for";
    registry.register("late_answers", help, counter(counts.late));
    let bad = Family::<Labels<1>, Counter>::default();
    for (kind, number) in &counts.bad {
        bad.get_or_create(&[("kind", kind.clone())]).inc_by(*number);
    }
    registry.register("bad_messages", "Messages of peers that made no sense, by kind", bad);
    let problems = gauge(counts.problems);
    registry.register("problems", "What is wrong with the node: see warren mesh id", problems);
    for (name, help, bytes) in [
        ("transfer_in", "Of models fetched from peers", counts.bytes_in),
        ("transfer_out", "Of models passed on to peers", counts.bytes_out),
    ] {
        registry.register_with_unit(name, help, Unit::Bytes, counter(bytes));
    }
    let help = "Pieces of models that were not what they should be";
    registry.register("corrupt_pieces", help, counter(counts.corrupt));
}

fn of_relay(registry: &mut Registry, counts: &Counts) {
    for (name, help, number) in [
        ("connections", "Connections that stand", counts.connections),
        ("nodes", "Nodes that are registered", counts.registered),
        ("sessions", "Relay sessions that are open", counts.sessions),
    ] {
        registry.register(name, help, gauge(number));
    }
    for (name, help, number) in [
        ("received", "Messages that nodes sent", counts.received),
        ("sent", "Messages sent to nodes", counts.sent),
        ("forwarded", "Messages passed on from one node to another", counts.frames),
        ("waits", "How often a sender had to wait", counts.waits),
    ] {
        registry.register(name, help, counter(number));
    }
    let help = "Of messages passed on from one node to another";
    registry.register_with_unit("forwarded", help, Unit::Bytes, counter(counts.bytes));
    let refused = Family::<Labels<1>, Counter>::default();
    for (code, number) in &counts.refused {
        refused.get_or_create(&[("reason", code.as_str().to_owned())]).inc_by(*number);
    }
    registry.register("refused", "What was refused, by reason", refused);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown() {
        let bad = [("hello".to_owned(), 2)].into();
        let mesh = MeshCounts { lan: 3, bytes_in: 7, bad, ..MeshCounts::default() };
        let refused = [(protocol::mesh::relay::Code::RateLimited, 5)].into();
        let relay = Counts { registered: 4, bytes: 9, refused, ..Counts::default() };
        let mut text = String::new();
        encode(&mut text, Some(&mesh), Some(&relay));
        for line in [
            "warren_mesh_peers{kind=\"lan\"} 3",
            "warren_mesh_bad_messages_total{kind=\"hello\"} 2",
            "warren_mesh_transfer_in_bytes_total 7",
            "warren_mesh_relay_nodes 4",
            "warren_mesh_relay_forwarded_bytes_total 9",
            "warren_mesh_relay_refused_total{reason=\"rate_limited\"} 5",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let mut nothing = String::new();
        encode(&mut nothing, None, None);
        assert_eq!(nothing, "");
    }
}
