//! The admission of connections, and the bounds that all of them share.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use access::{Keys, LocalRules, LockOut, LockOutSettings, Token, WorkspaceRules};
use base::Live;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use workspace::{ClientId, Settings};

use crate::{message_slots::MessageSlots, services::Services, shares, strangers::Strangers};

/// The state that all connections share.
pub(crate) struct Admission {
    pub(crate) services: Arc<Services>,
    pub(crate) local: Live<LocalRules>,
    pub(crate) rules: WorkspaceRules,
    lock_out: Mutex<LockOut>,
    pub(crate) strangers: Strangers,
    pub(crate) clients: Arc<Semaphore>,
    pub(crate) most_clients: usize,
    pub(crate) message_rate: u32,
    /// The slots for large messages.
    pub(crate) large: MessageSlots,
    /// The memory for long answers, in KiB.
    pub(crate) answers: Arc<Semaphore>,
    /// The number of authenticated connections.
    pub(crate) connected: AtomicUsize,
    last_client: AtomicU64,
    pub(crate) closing: CancellationToken,
    pub(crate) links: TaskTracker,
}

impl Admission {
    pub(crate) fn new(
        settings: &Settings,
        keys: &Keys,
        local: Live<LocalRules>,
        services: Services,
    ) -> Self {
        let token = settings.token.as_ref().map(Token::new);
        let administrator = settings.administrator.as_ref().map(Token::new);
        Self {
            services: Arc::new(services),
            local,
            rules: WorkspaceRules { token, administrator, keys: keys.clone() },
            lock_out: Mutex::new(LockOut::new(LockOutSettings::default())),
            strangers: Strangers::new(settings.max_strangers),
            clients: semaphore(settings.max_clients),
            most_clients: settings.max_clients,
            message_rate: settings.message_rate,
            large: MessageSlots::default(),
            answers: semaphore(shares::IN_ALL),
            connected: AtomicUsize::new(0),
            last_client: AtomicU64::new(0),
            closing: CancellationToken::new(),
            links: TaskTracker::new(),
        }
    }

    pub(crate) fn lock_out(&self) -> MutexGuard<'_, LockOut> {
        self.lock_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.last_client.fetch_add(1, Ordering::Relaxed))
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}
