//! The rules that must hold in the end.

use std::time::Duration;

use testkit::lab::settles;
use tokio::time::Instant;

use crate::fleet::{account::Report, bill::Bills, house::House, judge::WORKERS};

/// How long that may take.
const SETTLE: Duration = Duration::from_secs(60);

/// All servers are healthy and have all workers, no slot is lost, and the ledger has every row.
pub(crate) async fn settle(house: &House, bills: &Bills, report: &Report) {
    let begun = Instant::now();
    settles(report, "a server's health", SETTLE, async || unhealthy(house).await).await;
    settles(report, "the workers", SETTLE, async || busy(house).await).await;
    settles(report, "a backend", SETTLE, async || asked(house)).await;
    settles(report, "the ledger", SETTLE, async || bills.missing(house).await).await;
    report.tally(|counts| counts.settled = begun.elapsed());
    bills.compare(house, report).await;
}

async fn unhealthy(house: &House) -> Option<String> {
    for (number, server) in house.servers.iter().enumerate() {
        let health = server.health().await.unwrap_or_default();
        if health["status"] != "ok" {
            return Some(format!("server {number}: {health}"));
        }
    }
    None
}

/// A server that lacks a worker, or a worker that has a request.
async fn busy(house: &House) -> Option<String> {
    for (number, server) in house.servers.iter().enumerate() {
        let workers = server.workers().await;
        if workers.len() != WORKERS {
            return Some(format!("server {number} has {} workers", workers.len()));
        }
        if let Some(busy) = workers.iter().find(|worker| worker["in_flight_count"] != 0) {
            return Some(format!("at server {number}: {busy}"));
        }
    }
    None
}

fn asked(house: &House) -> Option<String> {
    let busy = house.workers.iter().find(|worker| worker.backend.counts().in_flight() != 0)?;
    Some(format!("{:?}", busy.backend))
}
