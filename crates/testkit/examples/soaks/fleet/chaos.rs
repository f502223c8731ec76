//! The faults of the house, one after the other.

use std::{sync::Arc, time::Duration};

use testkit::{Random, way};
use tokio::time::{Instant, sleep, sleep_until};

use crate::fleet::{
    account::Report,
    faults::{Deed, Fault, Part},
    house::House,
    judge::{SERVERS, WORKERS},
};

/// The shortest time that a part is away, and the most that is added to it, in milliseconds.
const AWAY: (u64, u64) = (500, 5_500);

/// The last fault begins so long before the end, so that its end is still seen under load.
const LAST: Duration = Duration::from_secs(8);

/// A fault at each step, of every kind before one comes again.
pub(crate) async fn run(
    house: Arc<House>,
    mut random: Random,
    report: Report,
    every: Duration,
    until: Instant,
) {
    let (mut next, mut kinds) = (Instant::now() + every / 2, Vec::new());
    while next + LAST < until {
        sleep_until(next).await;
        next += every;
        if kinds.is_empty() {
            kinds = KINDS.to_vec();
        }
        let (part, deed) = kinds.swap_remove(random.below(kinds.len() as u64) as usize);
        let fault = Fault { part: part(&mut random), deed };
        trace(fault);
        report.tally(|counts| counts.fault(fault));
        let number = house.faults.begin(fault);
        commit(&house, fault, away(&mut random)).await;
        house.faults.end(number);
    }
}

type Kind = (fn(&mut Random) -> Part, Deed);

const KINDS: [Kind; 12] = [
    (server, Deed::Kill),
    (server, Deed::Stop),
    (server, Deed::Restart),
    (worker, Deed::Kill),
    (worker, Deed::Stop),
    (worker, Deed::Restart),
    (|_| Part::Nats, Deed::Kill),
    (|_| Part::Nats, Deed::Stop),
    (|_| Part::Postgres, Deed::Kill),
    (|_| Part::Postgres, Deed::Stop),
    (way, Deed::Kill),
    (way, Deed::Stop),
];

fn server(random: &mut Random) -> Part {
    Part::Server(random.below(SERVERS as u64) as usize)
}

fn worker(random: &mut Random) -> Part {
    Part::Worker(random.below(WORKERS as u64) as usize)
}

fn way(random: &mut Random) -> Part {
    Part::Way(random.below(SERVERS as u64) as usize)
}

fn away(random: &mut Random) -> Duration {
    Duration::from_millis(AWAY.0 + random.below(AWAY.1))
}

/// Does it, and puts the part in order again after a while.
async fn commit(house: &House, fault: Fault, away: Duration) {
    match fault.part {
        Part::Server(number) => of_server(house, number, fault.deed, away).await,
        Part::Worker(number) => of_worker(house, number, fault.deed, away).await,
        Part::Nats => of_nats(house, fault.deed, away).await,
        Part::Postgres => of_postgres(house, fault.deed, away).await,
        Part::Way(number) => {
            let is_cut = fault.deed == Deed::Kill;
            let way = &house.servers[number].way;
            way.set(way::Fault { is_cut, holds: [!is_cut; 2] });
            sleep(away).await;
            way.set(way::Fault::default());
        }
    }
}

async fn of_server(house: &House, number: usize, deed: Deed, away: Duration) {
    let mut daemon = house.servers[number].daemon.lock().await;
    match deed {
        Deed::Kill => {
            daemon.kill9().await;
            sleep(away).await;
            daemon.start_again().await;
        }
        Deed::Stop => {
            daemon.sigstop();
            sleep(away).await;
            daemon.sigcont();
        }
        Deed::Restart => daemon.stop_and_restart().await,
    }
}

async fn of_worker(house: &House, number: usize, deed: Deed, away: Duration) {
    let mut process = house.workers[number].process.lock().await;
    match deed {
        Deed::Kill => {
            process.kill9().await;
            sleep(away).await;
            *process = house.worker_process(number);
        }
        Deed::Stop => {
            process.sigstop();
            sleep(away).await;
            process.sigcont();
        }
        Deed::Restart => {
            process.sigterm();
            let _code = process.exit().await;
            *process = house.worker_process(number);
        }
    }
}

async fn of_nats(house: &House, deed: Deed, away: Duration) {
    let mut nats = house.nats.lock().await;
    if deed == Deed::Stop {
        nats.freeze();
        sleep(away).await;
        return nats.thaw();
    }
    nats.kill();
    sleep(away).await;
    nats.run();
}

async fn of_postgres(house: &House, deed: Deed, away: Duration) {
    let mut postgres = house.postgres.lock().await;
    if deed == Deed::Stop {
        postgres.freeze();
        sleep(away).await;
        return postgres.thaw();
    }
    postgres.kill();
    sleep(away).await;
    postgres.run();
}

/// Prints a fault, if that is asked for.
#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
fn trace(fault: Fault) {
    if std::env::var_os("SOAK_TRACE").is_some() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        eprintln!("{:.3} {fault:?}", now.unwrap_or_default().as_secs_f64());
    }
}
