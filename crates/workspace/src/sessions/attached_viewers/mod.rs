//! The viewers of a session: the position of each, and the size of their terminal.
//!
//! - [`AttachedViewers`]: all viewers; [`ViewerStream`]: the stream of one
//! - [`windows`]: the terminal's size, which follows from the viewers' windows
//! - [`steps`]: the next message for each viewer

pub(crate) mod steps;
pub(crate) mod windows;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use session::terminal::{
    log::Log,
    size::Size,
    viewer::{Start, Viewer, ViewerId},
};

use self::windows::Windows;
use super::output::Output;
use crate::{identity::ClientId, refusal::Refusal};

/// A client that has not asked for more for this long counts as having no room.
const BUSY: Duration = Duration::from_millis(50);

/// The viewers of one session. They have no lock of their own: they have positions in the log of the session's output,
/// so the session's lock covers both.
pub(crate) struct AttachedViewers {
    all: BTreeMap<ViewerId, ViewerStream>,
    last: u64,
    windows: Windows,
    /// Whether a viewer has requested a size since the last [`AttachedViewers::take_vain_wish`]. It may not get that
    /// size.
    has_wish: bool,
}

/// The stream of one viewer.
struct ViewerStream {
    start: Start,
    /// How long the viewer may take nothing once it is behind.
    patience: Duration,
    /// The viewer's position in the log; `None` while the output is only on the disk.
    viewer: Option<Viewer>,
    client: ClientId,
    demand: Arc<Demand>,
    /// Whether `session_history` was sent.
    has_begun: bool,
    /// The number of the next aside to send.
    aside: u64,
    /// The size that the client assumes for the terminal: the announced one, or the one that the
    /// client requested later.
    shown: Option<(u16, u16)>,
}

/// Whether a client asks for more: the time when it last stopped, and `None` while it asks. It has a
/// lock of its own, so that a client can ask and stop without the session's lock.
pub(crate) struct Demand(Mutex<Option<Instant>>);

impl AttachedViewers {
    /// No viewers of a terminal of this size.
    pub(crate) const fn new(size: Size) -> Self {
        Self { all: BTreeMap::new(), last: 0, windows: Windows::new(size), has_wish: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there were viewers, and all of them have left.
    pub(crate) fn have_left(&self) -> bool {
        self.is_empty() && self.last > 0
    }

    /// Adds a viewer that wants the output after a number, or a snapshot. It gets all asides from
    /// now on, however long it takes to load its history.
    pub(crate) fn add(
        &mut self,
        client: ClientId,
        after: Option<u64>,
        patience: Duration,
        output: &Output,
        now: Instant,
    ) -> (ViewerId, Arc<Demand>) {
        self.last += 1;
        let id = ViewerId(self.last);
        let start = after.map_or(Start::Snapshot, Start::After);
        let is_loaded = !output.is_unloaded();
        let viewer = is_loaded.then(|| Viewer::new(start, patience, output.log(), now));
        // It has not asked for anything yet.
        let demand = Arc::new(Demand(Mutex::new(Some(now))));
        let stream = ViewerStream {
            start,
            patience,
            viewer,
            client,
            demand: Arc::clone(&demand),
            has_begun: false,
            aside: output.asides().end(),
            shown: None,
        };
        self.all.insert(id, stream);
        (id, demand)
    }

    /// The client whose terminal answers the program's queries: of the clients that are attached and have a window,
    /// the one in control.
    pub(crate) fn in_control(&self) -> Option<ClientId> {
        let is_attached = |client| self.all.values().any(|stream| stream.client == client);
        self.windows.in_control(is_attached)
    }

    /// The client of a viewer.
    pub(crate) fn client_of(&self, id: ViewerId) -> Option<ClientId> {
        self.all.get(&id).map(|stream| stream.client)
    }

    /// Whether a client has a viewer.
    pub(crate) fn has_client(&self, client: ClientId) -> bool {
        self.all.values().any(|stream| stream.client == client)
    }

    /// The number of the last output that a viewer was sent.
    pub(crate) fn position(&self, id: ViewerId) -> u64 {
        self.all.get(&id).map_or(0, ViewerStream::position)
    }

    /// Removes a viewer. The window of a client without viewers does not count any more.
    pub(crate) fn remove(&mut self, id: ViewerId, now: Instant) {
        let Some(stream) = self.all.remove(&id) else { return };
        if !self.all.values().any(|other| other.client == stream.client) {
            self.windows.leave(stream.client, now);
        }
    }

    /// Checks the backlogs after new output: a viewer falls behind if it has no room and its
    /// backlog is too large.
    pub(crate) fn check_backlogs(&mut self, log: &Log, now: Instant) {
        for stream in self.all.values_mut() {
            if stream.demand.stopped_at().is_some_and(|since| since + BUSY <= now)
                && let Some(viewer) = &mut stream.viewer
            {
                // Without room this only notes whether the viewer is behind.
                let _waits = viewer.next(log, false, now);
            }
        }
    }
}

/// Sizes.
impl AttachedViewers {
    /// The clients' windows, and the size that the terminal has.
    pub(crate) const fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Notes the size of a client's window. The client assumes that size for the terminal, until
    /// another size is announced.
    pub(crate) fn resize(
        &mut self,
        client: ClientId,
        size: (u16, u16),
        visible: bool,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.windows.resize(client, size, visible, now)?;
        if visible {
            for stream in self.all.values_mut().filter(|stream| stream.client == client) {
                stream.shown = Some(size);
            }
            self.has_wish = true;
        }
        Ok(())
    }

    /// Notes that a client has typed, which gives its window precedence.
    pub(crate) fn typed(&mut self, client: ClientId, now: Instant) {
        self.windows.typed(client, now);
    }

    /// Gives the terminal the size of this client's window.
    pub(crate) fn take_control(&mut self, client: ClientId, now: Instant) -> Result<(), Refusal> {
        self.windows.take_control(client, now)
    }

    /// Forgets the window of a client that has gone.
    pub(crate) fn client_gone(&mut self, client: ClientId, now: Instant) {
        self.windows.leave(client, now);
    }

    /// Once the size is settled, takes the viewers' requests for a size, which the terminal may not have got. Returns
    /// whether there was a request.
    pub(crate) fn take_vain_wish(&mut self) -> bool {
        self.windows.is_settled() && std::mem::take(&mut self.has_wish)
    }

    /// Takes the change of the terminal's size that is due now.
    pub(crate) fn take_new_size(&mut self, now: Instant) -> Option<Size> {
        self.windows.take_new_size(now)
    }
}

impl ViewerStream {
    /// The viewer's position in this log. The first call creates it.
    fn viewer(&mut self, log: &Log, now: Instant) -> &mut Viewer {
        self.viewer.get_or_insert_with(|| Viewer::new(self.start, self.patience, log, now))
    }

    /// Takes a change of the terminal's size that the client does not know of, once the size is
    /// settled and the viewer is not behind. Returns whether there is such a change.
    fn take_resize(&mut self, windows: &Windows, log: &Log) -> bool {
        let size = windows.cells();
        let is_near = || self.viewer.as_ref().is_some_and(|viewer| viewer.is_near(log));
        let is_news = self.has_begun && self.shown.is_some_and(|shown| shown != size);
        let is_taken = is_news && windows.is_settled() && is_near();
        if is_taken {
            self.shown = Some(size);
        }
        is_taken
    }

    /// The number of the last output that was sent.
    fn position(&self) -> u64 {
        self.viewer.as_ref().map_or(0, Viewer::position)
    }

    /// Notes that a snapshot of the output up to this number was sent.
    fn resynced(&mut self, seq: u64) {
        if let Some(viewer) = &mut self.viewer {
            viewer.resynced(seq);
        }
    }
}

impl Demand {
    /// The client asks for more from now on.
    pub(crate) fn begin(&self) {
        self.set(None);
    }

    /// The client asks for no more.
    pub(crate) fn end(&self, now: Instant) {
        self.set(Some(now));
    }

    fn stopped_at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, stopped_at: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stopped_at;
    }
}
