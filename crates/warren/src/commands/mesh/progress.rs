//! Shows a transfer of the mesh.

use client::admin::mesh::MeshTransfer;

use super::short;
use crate::commands::{
    progress::{Progress, Step},
    table::plain,
    words::{bytes, count, span},
};

/// Shows a step.
pub(crate) fn show(progress: &mut Progress, step: &MeshTransfer) {
    progress.show(Step {
        name: &plain(&step.model),
        state: &step.state,
        bytes: step.bytes,
        total: step.total.unwrap_or(0),
        line: line(step),
    });
}

/// A step in one line: amount, speed, time left, source.
fn line(step: &MeshTransfer) -> String {
    let mut parts = vec![plain(&step.state)];
    match step.total {
        Some(total) => parts.push(format!("{} of {}", bytes(step.bytes), bytes(total))),
        None if step.bytes > 0 => parts.push(bytes(step.bytes)),
        None => {}
    }
    if step.state == "running" {
        parts.push(format!("{}/s", bytes(step.rate)));
        parts.extend(step.eta_secs.map(|secs| format!("{} left", span(secs))));
    }
    match &step.peers[..] {
        [] => {}
        [one] => parts.push(format!("from {}", plain(&short(one)))),
        several => parts.push(format!("from {}", count(several.len() as u64, "peer"))),
    }
    parts.extend(step.detail.as_deref().map(plain));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_amount_speed_time_left_and_source() {
        let mut step = MeshTransfer { state: "searching".to_owned(), ..MeshTransfer::default() };
        assert_eq!(line(&step), "searching");
        step = MeshTransfer {
            state: "running".to_owned(),
            bytes: 1 << 20,
            total: Some(4 << 20),
            rate: 1 << 20,
            eta_secs: Some(3),
            peers: vec!["ab".repeat(32)],
            ..step
        };
        let told = "running, 1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3s left, from abababab";
        assert_eq!(line(&step), told);
        step.peers.push("cd".repeat(32));
        assert!(line(&step).ends_with("from 2 peers"));
    }
}
