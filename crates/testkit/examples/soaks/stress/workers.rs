//! Workers that are killed and restarted.

use std::time::Duration;

use testkit::{Daemon, MockBackend, Random, WorkerProcess};
use tokio::{task::JoinHandle, time::interval};
use tokio_util::sync::CancellationToken;

use crate::stress::Settings;

const KILL_EVERY: Duration = Duration::from_secs(1);

const SLOTS: &str = "16";

pub(crate) struct Killed {
    pub(crate) times: u64,
    pub(crate) workers: Vec<WorkerProcess>,
}

/// Starts the workers, then kills one every second and starts it again, until it is stopped.
pub(crate) async fn kill_and_restart(
    settings: &Settings,
    daemon: &Daemon,
    backend: &MockBackend,
    mut random: Random,
    stop: CancellationToken,
) -> JoinHandle<Killed> {
    let (binary, server, lent) = (settings.trial.binary.clone(), daemon.url(), backend.url());
    let start = move |number: usize| {
        let name = format!("worker-{number}");
        let args = ["--models", "m", "--max-concurrent", SLOTS];
        WorkerProcess::start(&binary, &server, &lent, &name, &args)
    };
    let mut workers: Vec<_> = (0..settings.workers).map(&start).collect();
    daemon.has_workers(workers.len()).await;
    tokio::spawn(async move {
        let mut times = 0;
        let mut tick = interval(KILL_EVERY);
        tick.tick().await;
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let victim = random.below(workers.len() as u64) as usize;
            workers[victim].kill9().await;
            workers[victim] = start(victim);
            times += 1;
        }
        Killed { times, workers }
    })
}
