//! Machines that come and go, and the relay.

use std::{sync::Arc, time::Duration};

use testkit::{Random, lab::Crew};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::mesh::{
    account::Report,
    machine::Machine,
    peers::Mesh,
    plan::{self, MACHINES},
};

/// The shortest time that a machine runs, and the most that is added to it, in milliseconds.
const RUNS: (u64, u64) = (3_000, 17_000);

/// The longest that it is away then, in milliseconds.
const AWAY: u64 = 3_000;

/// The longest that most are frozen, in milliseconds.
const FROZEN: u64 = 5_000;

/// The shortest time that the relay runs, and the most that is added to it, in milliseconds.
const RELAYS: (u64, u64) = (15_000, 20_000);

/// The longest that it is away then, in milliseconds.
const RELAY_AWAY: u64 = 3_000;

/// Stops and starts a machine, or the relay.
struct Churner {
    mesh: Arc<Mesh>,
    report: Report,
    random: Random,
    stop: CancellationToken,
}

/// From now on every machine comes and goes, and so does the relay.
pub(crate) fn start(mesh: &Arc<Mesh>, random: &mut Random, report: &Report) -> Crew {
    let mut crew = Crew::of("what comes and goes");
    let stop = crew.stop_token();
    let mut churner = || Churner {
        mesh: Arc::clone(mesh),
        report: report.clone(),
        random: random.fork(),
        stop: stop.clone(),
    };
    crew.spawn(churner().relay());
    for number in 0..MACHINES {
        crew.spawn(churner().machine(number));
    }
    crew
}

impl Churner {
    async fn machine(mut self, number: usize) {
        let mesh = Arc::clone(&self.mesh);
        let machine = &mesh.machines[number];
        while self.wait(RUNS).await {
            if machine.has_crashed().await {
                machine.keep_current_log().await;
                return self.report.wrong(format!("machine {number} has ended by itself"));
            }
            if !self.end(machine).await {
                continue;
            }
            self.away(AWAY).await;
            machine.start().await;
            self.report.tally(|tally| tally.lives.started += 1);
        }
    }

    /// Whether it has to be started again.
    async fn end(&mut self, machine: &Machine) -> bool {
        match self.random.below(100) {
            0..50 => {
                machine.kill().await;
                self.report.tally(|tally| tally.lives.killed += 1);
            }
            50..85 => {
                let stopped = machine.stop().await;
                self.report.tally(|tally| tally.lives.stopped += 1);
                stopped.unwrap_or_else(|wrong| self.report.wrong(wrong));
            }
            some => {
                let shortly = Duration::from_millis(self.random.below(FROZEN));
                let time = if some < 97 { shortly } else { plan::FROZEN };
                machine.freeze(time).await;
                self.report.tally(|tally| tally.lives.frozen += 1);
                return false;
            }
        }
        true
    }

    async fn relay(mut self) {
        while self.wait(RELAYS).await {
            self.mesh.relay.kill().await;
            self.away(RELAY_AWAY).await;
            self.mesh.relay.start().await;
            self.report.tally(|tally| tally.lives.relays += 1);
        }
    }

    /// Waits for a while. Returns whether the churn goes on.
    async fn wait(&mut self, (least, more): (u64, u64)) -> bool {
        let time = Duration::from_millis(least + self.random.below(more));
        self.stop.run_until_cancelled(sleep(time)).await.is_some()
    }

    async fn away(&mut self, most: u64) {
        sleep(Duration::from_millis(self.random.below(most))).await;
    }
}
