//! Takes over what other servers change, and sends the rows of this server's ledger and audit log to the shared
//! database.
//!
//! - `limits`: what this server holds of shared limits

mod limits;

use std::{path::Path, sync::Arc, time::Duration};

use access::{Invitations, Keys, Moment};
use base::{Backoff, Secret, error::chain};
use rooms::Rooms;
use scheduler::Scheduler;
pub(crate) use store::SharedStore as Shared;
use store::{KeyStore, SqliteStore, StoreError};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Stores;

/// How often changes are looked for, even if none was announced.
const SWEEP: Duration = Duration::from_secs(1);

/// The longest wait for new rows before the file is looked at all the same.
const ROWS: Duration = Duration::from_secs(1);

/// The pauses between two tries while rows cannot be sent.
const RETRY: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// How long a server that ends may take to send its last rows. Those that are left are sent after its next start.
const LAST_ROWS: Duration = Duration::from_secs(5);

pub(super) fn open(own: &Arc<SqliteStore>, url: &Secret, file: &Path) -> anyhow::Result<Stores> {
    let shared = Arc::new(Shared::open(url, file)?);
    tracing::info!(database = shared.shown(), "keys, usage and the audit log are shared");
    hint_at_import(own, &shared)?;
    let desk = limits::desk(&shared)?;
    Ok(Stores { desk: Some(desk), ..Stores::of(own, &shared, Some(Arc::clone(&shared))) })
}

/// Logs how to take this machine's own keys along, if the database has no keys.
fn hint_at_import(own: &SqliteStore, shared: &Shared) -> Result<(), StoreError> {
    let own = own.load_keys()?.len();
    if own > 0 && shared.load_keys()?.is_empty() {
        tracing::warn!(
            own,
            "this server has keys of its own, and the shared database has none: `warren database import` takes keys \
             and usage along"
        );
    }
    Ok(())
}

/// The tasks of a server that shares its state.
pub(crate) struct SharingTasks {
    shared: Arc<Shared>,
    taking_over: JoinHandle<()>,
    /// Whether all was sent in the end.
    sending: JoinHandle<bool>,
    limiting: Option<JoinHandle<()>>,
    ending: CancellationToken,
}

impl SharingTasks {
    /// Starts the tasks, if this server has a shared database. Changes by other servers are taken over until `stop`.
    /// `rooms` is set if servers share rooms.
    pub(crate) fn start(
        stores: &Stores,
        keys: &Keys,
        invitations: &Invitations,
        scheduler: &Scheduler,
        rooms: Option<Rooms>,
        stop: &CancellationToken,
    ) -> Option<Self> {
        let shared = Arc::clone(stores.shared.as_ref()?);
        let news = News {
            shared: Arc::clone(&shared),
            keys: keys.clone(),
            invitations: invitations.clone(),
            scheduler: scheduler.clone(),
            rooms,
        };
        let ending = CancellationToken::new();
        let taking_over = tokio::spawn(take_over(Arc::new(news), stop.clone()));
        let sending = tokio::spawn(send(Arc::clone(&shared), ending.clone()));
        let limiting = stores
            .desk
            .clone()
            .map(|desk| tokio::spawn(limits::keep(Arc::clone(&shared), desk, ending.clone())));
        Some(Self { shared, taking_over, sending, limiting, ending })
    }

    /// Sends the last rows, and ends the tasks. Called once the ledger has ended.
    pub(crate) async fn end(self) {
        self.ending.cancel();
        self.shared.wake();
        let is_sent =
            timeout(LAST_ROWS, self.sending).await.is_ok_and(|ended| matches!(ended, Ok(true)));
        if !is_sent {
            let usage = self.shared.waiting();
            tracing::warn!(
                usage,
                "rows of usage or of the audit log wait on this machine's disk for the next start"
            );
        }
        if let Some(limiting) = self.limiting {
            let _ended = limiting.await;
        }
        // This task ends by itself: its `stop` was cancelled when the drain began.
        let _ended = self.taking_over.await;
    }
}

/// The parts that take over changes.
struct News {
    shared: Arc<Shared>,
    keys: Keys,
    invitations: Invitations,
    scheduler: Scheduler,
    /// The rooms, if servers share them.
    rooms: Option<Rooms>,
}

impl News {
    /// Waits for a change, a second at most, and takes over what has changed. Blocks.
    fn next(&self) -> Result<(), StoreError> {
        self.shared.wait_for_change(SWEEP);
        let stale = self.shared.stale()?;
        if stale.keys {
            let revoked = self.keys.refresh(|| self.shared.changed_keys(), Moment::now())?;
            for id in revoked {
                tracing::info!(key = %id, "a key was revoked by another server");
                self.scheduler.revoke(&id);
            }
        }
        if stale.page_sessions {
            let sessions = self.keys.page_sessions();
            for id in sessions.refresh(|| self.shared.changed_page_sessions())? {
                tracing::info!(page_session = %id, "a session of the page was ended by another server");
                self.scheduler.sign_out(&id);
            }
        }
        if let Some(rooms) = self.rooms.as_ref().filter(|_| stale.rooms) {
            let closed = rooms.take_over(self.shared.changed_rooms()?, Moment::now().wall_ms);
            closed.iter().for_each(|scope| self.scheduler.close(scope));
        }
        if stale.invitations {
            self.invitations.refresh(|| self.shared.changed_invitations())?;
        }
        Ok(())
    }
}

async fn take_over(news: Arc<News>, stop: CancellationToken) {
    let mut outage = Outage::default();
    while !stop.is_cancelled() {
        let news = Arc::clone(&news);
        if let Ok(taken) = spawn_blocking(move || news.next()).await {
            outage.note("changes of other servers are not heard of", taken.as_ref().err());
        }
    }
}

/// Sends rows as they come, and at the end those that are left.
async fn send(shared: Arc<Shared>, ending: CancellationToken) -> bool {
    let (mut outage, mut retry) = (Outage::default(), RETRY);
    loop {
        let is_last = ending.is_cancelled();
        let sender = Arc::clone(&shared);
        let Ok(sent) = spawn_blocking(move || sender.send()).await else { return false };
        if let Ok(sent) = &sent {
            retry.reset();
            if sent.refused > 0 {
                tracing::error!(
                    rows = sent.refused,
                    "the shared database refuses rows for what is in them: they are lost"
                );
            }
        }
        let left = sent.as_ref().map_or(1, |sent| sent.left);
        let failed = sent.err();
        let has_failed = failed.is_some();
        outage.note("usage waits on this machine's disk", failed.as_ref());
        match (has_failed, left) {
            (true, _) if is_last => return false,
            (true, _) => drop(timeout(retry.next(rand::random()), ending.cancelled()).await),
            (false, 0) if is_last => return true,
            (false, 0) => wait_for_rows(&shared).await,
            (false, _) => {}
        }
    }
}

/// Waits for the first row, and then a moment for others: to send a few costs as much as to send one.
async fn wait_for_rows(shared: &Arc<Shared>) {
    let waiter = Arc::clone(shared);
    let _waited = spawn_blocking(move || waiter.wait_for_rows(ROWS)).await;
    sleep(Duration::from_millis(20)).await;
}

/// A failure that goes on. Only its beginning and its end are logged.
#[derive(Default)]
struct Outage(bool);

impl Outage {
    fn note(&mut self, what: &'static str, failed: Option<&StoreError>) {
        match failed {
            Some(error) if !self.0 => tracing::error!(problem = chain(error), "{what}"),
            None if self.0 => tracing::info!("no more: {what}"),
            _ => {}
        }
        self.0 = failed.is_some();
    }
}
