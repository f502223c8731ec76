//! The processes that are killed, and those that are watched meanwhile.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use testkit::{Random, processes};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::engines::{ROOM, house::House, load::Report};

/// How often the engines are counted.
const LOOK: Duration = Duration::from_millis(50);

/// How many looks in a row may see one too many: one that was killed is still there for a moment.
const TOLERATED: u32 = 20;

/// The number of kills so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kills(Arc<[AtomicU64; 3]>);

const ENGINE: usize = 0;
const WORKER: usize = 1;
const SERVER: usize = 2;

impl Kills {
    fn count(&self, what: usize) {
        self.0[what].fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [engines, workers, servers] = [ENGINE, WORKER, SERVER].map(|what| &self.0[what]);
        let number = |what: &AtomicU64| what.load(Ordering::Relaxed);
        let (engines, workers, servers) = (number(engines), number(workers), number(servers));
        write!(f, "{engines} times an engine, {workers} the worker, {servers} the server")
    }
}

/// Kills one thing after the other until it is stopped: mostly engines, sometimes the worker or the server.
pub(crate) async fn kill(
    house: Arc<House>,
    kills: Kills,
    mut random: Random,
    stop: CancellationToken,
    report: Report,
) {
    let every = house.kill_every();
    let mut next = Instant::now() + every;
    while stop.run_until_cancelled(sleep_until(next)).await.is_some() {
        match random.below(5) {
            0 => {
                house.kill_worker(&report).await;
                kills.count(WORKER);
            }
            1 => {
                house.kill_server().await;
                kills.count(SERVER);
            }
            _ => {
                let engines = house.engines();
                if let Some(victim) =
                    engines.get(random.below(engines.len().max(1) as u64) as usize)
                {
                    processes::kill9(victim.pid);
                    kills.count(ENGINE);
                }
            }
        }
        next = Instant::now() + every;
    }
}

/// Looks all the time how many engines run.
pub(crate) async fn count(house: Arc<House>, stop: CancellationToken, report: Report) {
    let (mut seen, mut too_many) = (HashSet::new(), 0);
    while stop.run_until_cancelled(sleep(LOOK)).await.is_some() {
        let engines = house.engines();
        let number = engines.len();
        too_many = if number > ROOM { too_many + 1 } else { 0 };
        if too_many == TOLERATED {
            report.wrong(format!("{number} engines run, and there is memory for {ROOM}"));
        }
        seen.extend(engines);
        report.tally(|tally| {
            tally.most = tally.most.max(number);
            tally.loads = seen.len();
        });
    }
}
