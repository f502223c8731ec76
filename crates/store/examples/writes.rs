//! write cost
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]
use std::time::Instant;
use base::{Endpoint, JobId};
use store::{SqliteStore, UsageEntry, UsageStore};
fn main() {
    let rows: u64 = std::env::args().nth(1).map_or(50_000, |n| n.parse().unwrap());
    let batch: u64 = std::env::args().nth(2).map_or(1_000, |n| n.parse().unwrap());
    let key: base::KeyId = "k-0123456789abcdef".into();
    let model: base::ModelName = "bench".into();
    let provider: std::sync::Arc<str> = "bench-worker".into();
    let dir = std::path::PathBuf::from("/tmp/wt-ledger-db"); let _ = std::fs::remove_dir_all(&dir); std::fs::create_dir_all(&dir).unwrap();
    let store = SqliteStore::open(&dir.join("w.db")).unwrap();
    let mut mixed = 1u64;
    let batches: Vec<Vec<UsageEntry>> = (0..rows / batch).map(|b| (b*batch..(b+1)*batch).map(|n| { mixed = mixed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        UsageEntry { at_ms: 1_763_000_000_000 + n / 25, job: JobId::from_random(u128::from(mixed) << 64 | u128::from(mixed.rotate_left(17))), key: key.clone(), model: model.clone(), served_model: None,
        provider: Some(provider.clone()), endpoint: Endpoint::ChatCompletions, outcome: "answered", status: Some(200), prompt_tokens: Some(9), completion_tokens: Some(12),
        estimated: false, queue_ms: 0, first_byte_ms: Some(1), total_ms: 1, streaming: false, requeues: 0 } }).collect()).collect();
    let began = Instant::now();
    for b in &batches { store.add_usage(b).unwrap(); }
    let t = began.elapsed();
    eprintln!("{:?} {:.2} us/row", t, t.as_secs_f64() * 1e6 / rows as f64);
    drop(store);
    eprintln!("{} bytes/row", std::fs::metadata(dir.join("w.db")).unwrap().len() / rows);
}
