//! The size of a session's terminal, and of its viewers' windows.

use std::{collections::BTreeSet, time::Instant};

use session::terminal::{
    size::{Size, Sizes},
    viewer::ViewerId,
};

use super::client_id::ClientId;
use crate::refusal::Refusal;

/// The clients' windows, and the terminal's size that follows from them.
pub(super) struct Windows {
    sizes: Sizes,
    /// The clients that reported their sizes: exactly those that `sizes` knows.
    own: BTreeSet<ClientId>,
}

impl Windows {
    pub(super) const fn new(size: Size) -> Self {
        Self { sizes: Sizes::new(size), own: BTreeSet::new() }
    }

    /// The size that the terminal has.
    pub(super) const fn size(&self) -> Size {
        self.sizes.current()
    }

    /// The terminal's size, as columns and rows.
    pub(super) const fn cells(&self) -> (u16, u16) {
        (self.size().cols(), self.size().rows())
    }

    pub(super) fn resize(
        &mut self,
        client: ClientId,
        size: (u16, u16),
        visible: bool,
        now: Instant,
    ) -> Result<(), Refusal> {
        let told = self.sizes.resize(viewer(client), size, visible, now);
        told.map_err(|refused| Refusal::failed(&refused))?;
        self.own.insert(client);
        Ok(())
    }

    pub(super) fn typed(&mut self, client: ClientId, now: Instant) {
        if self.own.contains(&client) {
            self.sizes.typed(viewer(client), now);
        }
    }

    pub(super) fn take_control(&mut self, client: ClientId, now: Instant) -> Result<(), Refusal> {
        if !self.own.contains(&client) {
            return Err(Refusal::invalid(
                "the size of your terminal is not known: send resize before take_control",
            ));
        }
        self.sizes.take_control(viewer(client), now);
        Ok(())
    }

    pub(super) fn leave(&mut self, client: ClientId, now: Instant) {
        if self.own.remove(&client) {
            self.sizes.leave(viewer(client), now);
        }
    }

    /// Whether no change of the size is pending.
    pub(super) fn is_settled(&self) -> bool {
        self.due_at().is_none()
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        self.sizes.poll_timeout()
    }

    /// The new size of the terminal, if a change is due now.
    pub(super) fn due(&mut self, now: Instant) -> Option<Size> {
        self.sizes.handle_timeout(now);
        self.sizes.poll_output()
    }
}

const fn viewer(client: ClientId) -> ViewerId {
    ViewerId(client.0)
}
