//! Reports to the database what this server holds and needs of shared limits, and hears what other servers need.

use std::{sync::Arc, time::Duration};

use access::{Charge, Desk, Moment, UnsentUse};
use store::{StoreError, pools::Report};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Outage, Shared};

/// The longest time between two reports, even if nothing has changed.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How often pools that are no longer needed are deleted.
const FORGET: Duration = Duration::from_secs(3_600);

/// How long the last report of a server that ends may take.
const LAST: Duration = Duration::from_secs(3);

/// A desk that counts the use of shared limits. It begins with what this server knows without the database: the
/// number of servers, and its own unsent rows.
pub(super) fn desk(shared: &Shared) -> Result<Desk, StoreError> {
    let unsent = shared.unsent_sums()?.into_iter().map(|sum| UnsentUse {
        used: Charge { tokens: sum.tokens, money: sum.money() },
        key: sum.key,
        day_ms: sum.day_ms,
    });
    Ok(Desk::new(shared.known_servers()?, unsent.collect()))
}

/// Runs until `ending`, then gives everything back.
pub(super) async fn keep(shared: Arc<Shared>, desk: Desk, ending: CancellationToken) {
    let mut outage = Outage::default();
    let (mut forget_at, mut heartbeat) = (Instant::now(), Instant::now());
    while !ending.is_cancelled() {
        let Some(reports) = desk.reports(Moment::now(), Instant::now() >= heartbeat) else {
            wait(&shared, &desk, heartbeat, &ending).await;
            continue;
        };
        heartbeat = Instant::now() + HEARTBEAT;
        let reported = report(&shared, &desk, reports).await;
        outage.note(
            "limits are not shared: this server uses its part of them",
            reported.as_ref().err(),
        );
        if reported.is_ok() && Instant::now() >= forget_at {
            forget_at = Instant::now() + FORGET;
            forget(&shared).await;
        }
        match reported {
            Ok(()) => wait(&shared, &desk, heartbeat, &ending).await,
            // Not woken by new work: that does not bring the database back.
            Err(_) => drop(timeout(HEARTBEAT, ending.cancelled()).await),
        }
    }
    let leaving = async {
        let reports = desk.last_reports(Moment::now());
        report(&shared, &desk, reports).await?;
        let shared = Arc::clone(&shared);
        spawn_blocking(move || shared.leave()).await.unwrap_or(Ok(()))
    };
    if !matches!(timeout(LAST, leaving).await, Ok(Ok(()))) {
        tracing::warn!("what this server holds of limits is free for others in some seconds");
    }
}

async fn report(shared: &Arc<Shared>, desk: &Desk, reports: Vec<Report>) -> Result<(), StoreError> {
    let teller = Arc::clone(shared);
    match spawn_blocking(move || teller.report(&reports)).await {
        Ok(Ok(answers)) => {
            desk.answered(&answers, Moment::now());
            Ok(())
        }
        Ok(Err(error)) => {
            desk.unanswered();
            Err(error)
        }
        Err(_) => {
            desk.unanswered();
            Ok(())
        }
    }
}

async fn forget(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    let forget = move || shared.forget_pools(Moment::now().wall_ms);
    if let Ok(Err(error)) = spawn_blocking(forget).await {
        tracing::warn!(%error, "what is over of limits is not forgotten");
    }
}

/// Waits until something has to be reported, other servers need something, or `until`.
async fn wait(shared: &Shared, desk: &Desk, until: Instant, ending: &CancellationToken) {
    let most = until.saturating_duration_since(Instant::now());
    let most = desk.pause(Moment::now().steady, most);
    let recalled = async {
        desk.recall(&shared.recalled().await);
    };
    tokio::select! {
        () = desk.work() => {}
        () = recalled => {}
        () = tokio::time::sleep(most) => {}
        () = ending.cancelled() => {}
    }
}
