//! The state that must be left in the end: nothing in flight, nothing queued, no message that was not understood,
//! and no more memory than there was need for.

use std::time::Duration;

use serde_json::json;
use testkit::lab::{not_zero, settles};

use crate::mesh::{
    account::Report,
    machine::Machine,
    peers::Mesh,
    plan::{self, MACHINES},
};

/// How long the last slots may take to be free after the last request, on a computer that is busy: what
/// is lost stays lost.
const SETTLE: Duration = Duration::from_secs(60);

/// The most memory of a machine that is idle, in MiB.
const MOST_MIB: u64 = 200;

/// The counts that must be 0 on each machine, whatever has happened.
const NEVER: [&str; 3] =
    ["warren_mesh_bad_messages_total", "warren_mesh_corrupt_pieces_total", "warren_mesh_problems"];

/// Checks that nothing is held any more.
pub(crate) async fn settle(mesh: &Mesh, report: &Report) {
    for machine in &mesh.machines {
        let what = format!("machine {} is not idle", machine.number);
        settles(report, &what, SETTLE, async || busy(machine).await).await;
        metrics(machine, report).await;
    }
    relay(mesh, report).await;
}

async fn busy(machine: &Machine) -> Option<String> {
    let Some(health) = machine.get("/health").await else { return Some("no answer".to_owned()) };
    let stats = machine.get("/admin/stats").await.unwrap_or_default();
    let transfers = machine.get("/admin/mesh/transfers").await.unwrap_or_default();
    let quiet = ["done", "failed", "cancelled"];
    let moving = transfers["transfers"].as_array().cloned().unwrap_or_default();
    let moving: Vec<_> = moving
        .iter()
        .filter(|transfer| !quiet.contains(&transfer["state"].as_str().unwrap_or_default()))
        .filter(|transfer| transfer["direction"] == "in")
        .collect();
    let counts = machine.backend.counts();
    let idle =
        health["in_flight"] == 0 && health["queue_depth"] == 0 && stats["queues"] == json!([]);
    let idle = idle && counts.in_flight() == 0 && moving.is_empty();
    (!idle).then(|| format!("{health} {stats} {counts:?} {moving:?}"))
}

async fn metrics(machine: &Machine, report: &Report) {
    let text = machine.text("/metrics").await;
    let number = machine.number;
    if !text.contains("warren_mesh_peers") {
        report.wrong(format!("machine {number} tells nothing of the mesh in /metrics: {text}"));
    }
    let is_meant = |line: &str| {
        let held = line.contains("in_flight") || line.starts_with("warren_mesh_lent");
        held || NEVER.iter().any(|name| line.starts_with(name))
    };
    for line in not_zero(&text, is_meant) {
        report.wrong(format!("in /metrics of machine {number} at the end: {line}"));
    }
}

/// Every node is at the relay once, and no relay session is left over from an earlier process.
async fn relay(mesh: &Mesh, report: &Report) {
    let there = (0..MACHINES).filter(|machine| plan::at_relay(*machine)).count() as u64;
    let pairs = there * (there - 1) / 2;
    let most = [("nodes", there, there), ("sessions", 0, 2 * pairs)];
    for (name, least, most) in most {
        let counted = mesh.relay.metric(&format!("warren_mesh_relay_{name}")).await;
        if !counted.is_some_and(|counted| (least..=most).contains(&counted)) {
            report.wrong(format!("the relay counts {counted:?} {name}, not {least} to {most}"));
        }
    }
}

/// The most memory that one of them occupies, in MiB.
pub(crate) async fn memory(mesh: &Mesh, report: &Report) -> u64 {
    let mut most = mesh.relay.resident_mib().await;
    for machine in &mesh.machines {
        most = most.max(machine.resident_mib().await);
    }
    if most > MOST_MIB {
        report.wrong(format!("one of them occupies {most} MiB when nothing goes on"));
    }
    most
}

/// Ends all of it in order.
pub(crate) async fn end(mesh: &Mesh, report: &Report) {
    for machine in &mesh.machines {
        if let Err(wrong) = machine.stop().await {
            report.wrong(wrong);
        }
    }
    match mesh.relay.stop().await {
        Some(0) => {}
        code => report.wrong(format!("the relay stopped with {code:?}")),
    }
}
