//! Looks after the database while the server runs: checks that its file is still there and sound, and stores the
//! time for deleting by age.

use std::{sync::Arc, time::Duration};

use access::Moment;
use base::error::chain;
use prometheus_client::metrics::gauge::Gauge;
use store::{AgeClock, AgeStore, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{rounds::Rounds, stores::Stores};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(3);

/// Every look whose number is a multiple of this goes through the whole database.
const THOROUGH: u32 = 20;

/// The clock for deleting by age, which goes on from the time that the database has.
///
/// # Errors
/// When that time cannot be read.
pub(crate) fn age_clock(store: &Arc<dyn AgeStore>) -> Result<Arc<AgeClock>, StoreError> {
    let now = Moment::now();
    Ok(Arc::new(AgeClock::open(Arc::clone(store), now.wall_ms, now.steady)?))
}

/// The time by which things are deleted for their age, in milliseconds since 1970.
pub(crate) fn aged(ages: &AgeClock, now: Moment) -> u64 {
    ages.now(now.wall_ms, now.steady)
}

/// Runs until `stop`. `degraded` is 1 while the database cannot keep what is written.
pub(crate) async fn watch(
    stores: Stores,
    ages: Arc<AgeClock>,
    degraded: Gauge,
    stop: CancellationToken,
) {
    let mut rounds = Rounds::new(LOOK, stop);
    let (mut was_degraded, mut number) = (false, 0_u32);
    while rounds.next().await {
        number = number.wrapping_add(1);
        let (stores, ages) = (stores.clone(), Arc::clone(&ages));
        let look = move || {
            aged(&ages, Moment::now());
            (stores.look(number.is_multiple_of(THOROUGH)), ages.save())
        };
        let Ok((problem, saved)) = tokio::task::spawn_blocking(look).await else { continue };
        let is_degraded = problem.is_some();
        degraded.set(i64::from(is_degraded));
        log(was_degraded, problem, saved);
        was_degraded = is_degraded;
    }
}

/// Logs the beginning and the end of a problem, and a failure to store the time for deleting by age.
fn log(was_degraded: bool, problem: Option<String>, saved: Result<(), StoreError>) {
    match (problem, saved) {
        (Some(problem), _) if !was_degraded => {
            tracing::error!(problem, "the database is not written");
        }
        (None, _) if was_degraded => tracing::info!("the database is written again"),
        (None, Err(error)) => {
            let problem = chain(&error);
            tracing::warn!(problem, "how far the time for deleting has come is not stored");
        }
        _ => {}
    }
}
