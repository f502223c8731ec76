//! Clients that ask for long answers and read none of them.

use serde_json::json;
use testkit::{DEADLINE, eventually};

use super::kit::WorkspaceHost;

const MIB: u64 = 1024 * 1024;

/// The most that all long answers together may take.
const IN_ALL: u64 = 256 * MIB;

/// The most that the server may grow by for anything else.
const ELSE: u64 = 24 * MIB;

/// More of them than there is room for.
const CLIENTS: usize = 30;

#[tokio::test]
async fn unread_answers_take_what_the_book_says_and_give_it_back() {
    let place = WorkspaceHost::start().await;
    std::fs::write(place.path().join("large"), vec![7; 8 << 20]).unwrap();
    let mut first = place.client().await;
    let project = place.project(&mut first).await;
    let chunk = json!({
        "type": "read_project_file_chunk", "request_id": "r", "project_id": project, "path": "large",
        "offset": 0, "len": 8 << 20,
    });
    first.ask(chunk.clone(), "project_file_chunk").await;
    let before = place.daemon.resident_bytes();
    let mut unread = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = place.slow_client().await;
        client.say(chunk.clone()).await;
        client.say(chunk.clone()).await;
        unread.push(client);
    }
    // As much as there is room for: two answers of 11 MiB for each of ten clients.
    let is_full = async || place.daemon.resident_bytes() > before + 200 * MIB;
    eventually("room taken by answers", DEADLINE, is_full).await;
    let grown = place.daemon.peak_resident_bytes().saturating_sub(before);
    assert!(grown < IN_ALL + ELSE, "{grown}");
    drop(unread);
    let is_back = async || place.daemon.resident_bytes() < before + ELSE;
    eventually("memory given back", DEADLINE, is_back).await;
    let grown = place.daemon.peak_resident_bytes().saturating_sub(before);
    assert!(grown < IN_ALL + ELSE, "{grown}");
}
