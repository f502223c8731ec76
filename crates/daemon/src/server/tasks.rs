//! The tasks of a running server, and how they end.

use std::{sync::Arc, time::Duration};

use access::Moment;
use api::admin::RecentSeries;
use scheduler::Scheduler;
use tokio::{
    spawn,
    task::{JoinHandle, spawn_blocking},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::{
    key_keeper, ledger::Ledger, reload, room_keeper, signals::Stop, storage, stores::SharingTasks,
};

/// How long the last rows of usage may take to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

/// The tasks of a running server, by how they end.
pub(super) struct Tasks {
    /// Tasks that go on until they are aborted.
    endless: Vec<JoinHandle<()>>,
    /// Tasks that end once the drain begins. They are waited for in this order.
    keepers: Vec<JoinHandle<()>>,
    /// Writes the rows of the ledger until the ledger is closed.
    writer: JoinHandle<()>,
    sharing: Option<SharingTasks>,
    /// Sends spans until the token is cancelled.
    export: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Tasks {
    pub(super) fn start(parts: &mut Parts, ending: &Stop) -> Self {
        let (export, hang_ups) = (parts.jobs.export.take(), parts.hang_ups.take());
        let ledger = Arc::clone(&parts.jobs.ledger);
        let following = hang_ups.map(|hang_ups| {
            spawn(reload::follow(hang_ups, parts.reloading.clone(), ending.clone()))
        });
        Self {
            endless: endless(parts).into_iter().chain(following).collect(),
            keepers: keepers(parts, ending.drain()),
            writer: spawn_blocking(move || ledger.write()),
            sharing: sharing(parts, ending.drain()),
            export: export.map(|export| {
                let over = CancellationToken::new();
                (over.clone(), spawn(export.run(over)))
            }),
        }
    }

    /// Ends the tasks. Called once all jobs have ended, so that the ledger has every row.
    pub(super) async fn end(self, ledger: &Ledger) -> anyhow::Result<()> {
        self.endless.iter().for_each(JoinHandle::abort);
        ledger.close(FLUSH_WITHIN);
        self.writer.await?;
        if let Some((over, export)) = self.export {
            over.cancel();
            export.await?;
        }
        if let Some(sharing) = self.sharing {
            sharing.end().await;
        }
        for keeper in self.keepers {
            keeper.await?;
        }
        Ok(())
    }
}

fn endless(parts: &Parts) -> Vec<JoinHandle<()>> {
    let (scheduler, series) = (&parts.jobs.scheduler, Arc::clone(&parts.jobs.series));
    vec![
        spawn(scheduler.clone().run()),
        spawn(end_steps(series, scheduler.clone())),
        spawn(parts.links.participants.clone().call_endpoints()),
    ]
}

fn keepers(parts: &Parts, stop: &CancellationToken) -> Vec<JoinHandle<()>> {
    let (base, scheduler) = (&parts.base, &parts.jobs.scheduler);
    let (keys, rooms, ages) = (base.keys.clone(), base.rooms.clone(), || Arc::clone(&base.ages));
    let homes = parts.rooms_of_fleet.clone();
    let degraded = parts.jobs.metrics.database_degraded().clone();
    let mut all = vec![
        spawn(key_keeper::keep(keys, scheduler.clone(), stop.clone())),
        spawn(room_keeper::keep(rooms, ages(), scheduler.clone(), stop.clone())),
        spawn(base.responses.clone().keep(stop.clone())),
    ];
    all.extend(homes.map(|homes| spawn(homes.keep(stop.clone()))));
    all.push(spawn(storage::watch(base.stores.clone(), ages(), degraded, stop.clone())));
    all.push(spawn(Arc::clone(&base.models).keep(scheduler.clone(), stop.clone())));
    all
}

fn sharing(parts: &Parts, stop: &CancellationToken) -> Option<SharingTasks> {
    let (base, scheduler) = (&parts.base, &parts.jobs.scheduler);
    let rooms = parts.rooms_of_fleet.is_some().then(|| base.rooms.clone());
    SharingTasks::start(&base.stores, &base.keys, &base.invitations, scheduler, rooms, stop)
}

/// Ends each step of the series when its time is over, for ever.
async fn end_steps(series: Arc<RecentSeries>, scheduler: Scheduler) {
    let mut steps = tokio::time::interval(RecentSeries::STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick comes at once.
    steps.tick().await;
    loop {
        steps.tick().await;
        let (queued, in_flight) = scheduler.counts();
        series.end_step(Moment::now().seconds(), queued, in_flight);
    }
}
