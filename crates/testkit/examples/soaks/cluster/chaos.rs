//! Links that are cut or held and healed, members that are stopped or killed and started again.

use std::{sync::Arc, time::Duration};

use testkit::{Fault, Random};
use tokio::time::{Instant, sleep, sleep_until};

use crate::cluster::{account::Report, ledger::Ledger, members::Members};

/// Faults of links, one after the other. Several tasks of it give several faults at once.
pub(crate) async fn links(
    members: Arc<Members>,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        sleep(Duration::from_millis(random.below(2_000))).await;
        let one = members.any(&mut random);
        let other = members.any_but(one, &mut random);
        let fault = match random.below(5) {
            0 | 1 => Fault { is_cut: true, ..Fault::default() },
            2 => Fault { holds: [true, true], ..Fault::default() },
            3 => Fault { holds: [true, false], ..Fault::default() },
            _ => Fault { holds: [false, true], ..Fault::default() },
        };
        // Now and then so long that requests are given up.
        let most = if random.chance(0.1) { 25_000 } else { 6_000 };
        let time = Duration::from_millis(50 + random.below(most));
        report.tally(|counts| match fault.is_cut {
            true => counts.cuts += 1,
            false => counts.holds += 1,
        });
        crate::cluster::trace(format_args!("{fault:?} between {one} and {other} for {time:?}"));
        members.ways.set(one, other, fault);
        sleep_until(until.min(Instant::now() + time)).await;
        members.ways.set(one, other, Fault::default());
    }
}

/// Faults of members, one after the other.
pub(crate) async fn machines(
    members: Arc<Members>,
    ledger: Arc<Ledger>,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() + Duration::from_secs(8) < until {
        sleep(Duration::from_millis(2_000 + random.below(4_000))).await;
        let number = members.any(&mut random);
        if random.chance(0.6) {
            stop(&members, number, &mut random).await;
            report.tally(|counts| counts.stops += 1);
        } else {
            crate::cluster::trace(format_args!("{number} is killed"));
            if let Err(wrong) = members.kill_and_restart(number).await {
                report.wrong(format!("a member that was killed and started again: {wrong}"));
            }
            crate::cluster::trace(format_args!("{number} is back"));
            ends(&members, &ledger, number).await;
            report.tally(|counts| counts.kills += 1);
        }
    }
}

async fn stop(members: &Members, number: usize, random: &mut Random) {
    let time = Duration::from_millis(200 + random.below(6_000));
    crate::cluster::trace(format_args!("{number} is stopped for {time:?}"));
    let daemon = members.all[number].daemon.lock().await;
    daemon.sigstop();
    sleep(time).await;
    daemon.sigcont();
}

/// The processes of its sessions have ended with it.
async fn ends(members: &Members, ledger: &Ledger, owner: usize) {
    let kills = members.kills(owner);
    for object in ledger.all().into_values() {
        if let Some(mark) = object.mark.filter(|_| object.owner == owner && object.kills < kills) {
            mark.is_gone().await;
        }
    }
}
