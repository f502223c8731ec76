//! The viewers of a session, and the position of each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use session::terminal::{
    log::Log,
    viewer::{Start, Viewer, ViewerId},
};

use super::{client_id::ClientId, output::Output, windows::Windows};

/// A client that has not asked for more for this long counts as having no room.
const BUSY: Duration = Duration::from_millis(50);

/// The viewers of one session.
#[derive(Default)]
pub(super) struct Viewers {
    all: BTreeMap<ViewerId, Watching>,
    last: u64,
    /// Whether a viewer has requested a size since the last check. It may not get that size.
    has_wish: bool,
}

/// One viewer.
pub(super) struct Watching {
    start: Start,
    /// How long the viewer may take nothing once it is behind.
    patience: Duration,
    /// The viewer's position in the log; `None` as long as the output is on the disk only.
    viewer: Option<Viewer>,
    pub(super) client: ClientId,
    asking: Arc<Asking>,
    /// Whether `session_history` was sent.
    pub(super) has_begun: bool,
    /// The number of the next aside to send.
    pub(super) aside: u64,
    /// The size that the client assumes for the terminal: the announced one, or the one that the
    /// client requested later.
    pub(super) shown: Option<(u16, u16)>,
}

/// When the client last stopped asking for more; `None` while it asks.
pub(super) struct Asking(Mutex<Option<Instant>>);

impl Viewers {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there were viewers, and none is left.
    pub(super) fn have_left(&self) -> bool {
        self.is_empty() && self.last > 0
    }

    pub(super) fn has(&self, client: ClientId) -> bool {
        self.all.values().any(|watching| watching.client == client)
    }

    pub(super) fn add(
        &mut self,
        client: ClientId,
        after: Option<u64>,
        patience: Duration,
        output: &Output,
        now: Instant,
    ) -> (ViewerId, Arc<Asking>) {
        self.last += 1;
        let id = ViewerId(self.last);
        let start = after.map_or(Start::Snapshot, Start::After);
        let viewer = (!output.is_napping()).then(|| Viewer::new(start, patience, &output.log, now));
        let asking = Arc::new(Asking(Mutex::new(Some(now))));
        let watching = Watching {
            start,
            patience,
            viewer,
            client,
            asking: Arc::clone(&asking),
            has_begun: false,
            aside: 0,
            shown: None,
        };
        self.all.insert(id, watching);
        (id, asking)
    }

    pub(super) fn get(&mut self, id: ViewerId) -> Option<&mut Watching> {
        self.all.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: ViewerId) -> Option<ClientId> {
        self.all.remove(&id).map(|watching| watching.client)
    }

    /// Checks the backlogs after new output: a viewer falls behind if it has no room and its
    /// backlog is too large.
    pub(super) fn look_at_backlogs(&mut self, log: &Log, now: Instant) {
        for watching in self.all.values_mut() {
            if watching.asking.since().is_some_and(|since| since + BUSY <= now)
                && let Some(viewer) = &mut watching.viewer
            {
                let _waits = viewer.next(log, false, now);
            }
        }
    }

    /// Notes that a client requests this size. The client assumes it until another size is
    /// announced.
    pub(super) fn wishes(&mut self, client: ClientId, size: (u16, u16)) {
        for watching in self.all.values_mut().filter(|watching| watching.client == client) {
            watching.shown = Some(size);
        }
        self.has_wish = true;
    }

    /// Whether a viewer requested a size since the last call.
    pub(super) fn take_wish(&mut self) -> bool {
        std::mem::take(&mut self.has_wish)
    }
}

impl Watching {
    /// The viewer's position in this log. The first call creates it.
    pub(super) fn viewer(&mut self, log: &Log, now: Instant) -> &mut Viewer {
        self.viewer.get_or_insert_with(|| Viewer::new(self.start, self.patience, log, now))
    }

    /// Whether the client has to get the terminal's size and screen, because it assumes another
    /// size. Only true once for a change, when the size is settled and the viewer is not behind.
    pub(super) fn wants_size(&mut self, windows: &Windows, log: &Log) -> bool {
        let size = windows.cells();
        let is_near = || self.viewer.as_ref().is_some_and(|viewer| viewer.is_near(log));
        let is_news = self.has_begun && self.shown.is_some_and(|shown| shown != size);
        let wants = is_news && windows.is_settled() && is_near();
        if wants {
            self.shown = Some(size);
        }
        wants
    }

    /// The number of the last output that was sent.
    pub(super) fn place(&self) -> u64 {
        self.viewer.as_ref().map_or(0, Viewer::place)
    }

    /// Notes that a snapshot of the output up to this number was sent.
    pub(super) fn resynced(&mut self, seq: u64) {
        if let Some(viewer) = &mut self.viewer {
            viewer.resynced(seq);
        }
    }
}

impl Asking {
    pub(super) fn begin(&self) {
        self.set(None);
    }

    pub(super) fn end(&self, now: Instant) {
        self.set(Some(now));
    }

    fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}
