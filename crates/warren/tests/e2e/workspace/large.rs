//! Large messages that are begun and never finished.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::workspace::WorkspaceClient;

use super::kit::WorkspaceHost;
use crate::cli::make_key;

const MIB: usize = 1024 * 1024;

impl WorkspaceHost {
    /// Uploads 3 MiB, and returns how long that took.
    async fn uploads(&self, project: &str, name: &str) -> Duration {
        let mut client = self.client().await;
        let began = Instant::now();
        let upload = json!({"type": "upload_project_file", "request_id": name, "path": name,
            "project_id": project, "data": "AAAA".repeat(MIB)});
        client.ask(upload, "project_fs_action_result").await;
        began.elapsed()
    }
}

#[tokio::test]
async fn a_reader_who_begins_messages_and_ends_none_keeps_no_administrator_waiting() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let project = place.project(&mut client).await;
    let (_, key) = make_key(&place.daemon, json!({"scopes": ["workspace:read"]})).await;
    let mut holders = Vec::new();
    for _ in 0..10 {
        let mut holder = WorkspaceClient::connect(place.daemon.address(), &key).await;
        // Data beyond 1 MiB is not read before there is a place for it, and fits into the socket's
        // buffers.
        holder.begin(MIB + MIB / 4).await;
        holders.push(holder);
    }
    let took = place.uploads(&project, "one").await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    drop(holders);
}
