//! The size of a session's terminal, and of its viewers' windows.

use std::{collections::BTreeSet, time::Instant};

use session::terminal::{
    size::{Size, Sizes},
    viewer::ViewerId,
};

use crate::{identity::ClientId, refusal::Refusal};

/// The clients' windows, and the terminal's size that follows from them.
pub(crate) struct Windows {
    sizes: Sizes,
    /// The clients that reported their sizes: exactly those that `sizes` knows.
    clients: BTreeSet<ClientId>,
}

impl Windows {
    pub(crate) const fn new(size: Size) -> Self {
        Self { sizes: Sizes::new(size), clients: BTreeSet::new() }
    }

    /// The size that the terminal has.
    pub(crate) const fn size(&self) -> Size {
        self.sizes.current()
    }

    /// The terminal's size, as columns and rows.
    pub(crate) const fn cells(&self) -> (u16, u16) {
        (self.size().cols(), self.size().rows())
    }

    pub(crate) fn resize(
        &mut self,
        client: ClientId,
        size: (u16, u16),
        visible: bool,
        now: Instant,
    ) -> Result<(), Refusal> {
        let result = self.sizes.resize(viewer(client), size, visible, now);
        result.map_err(|refused| Refusal::failed(&refused))?;
        self.clients.insert(client);
        Ok(())
    }

    pub(crate) fn typed(&mut self, client: ClientId, now: Instant) {
        if self.clients.contains(&client) {
            self.sizes.typed(viewer(client), now);
        }
    }

    pub(crate) fn take_control(&mut self, client: ClientId, now: Instant) -> Result<(), Refusal> {
        if !self.clients.contains(&client) {
            return Err(Refusal::invalid(
                "the size of your terminal is not known: send resize before take_control",
            ));
        }
        self.sizes.take_control(viewer(client), now);
        Ok(())
    }

    pub(crate) fn leave(&mut self, client: ClientId, now: Instant) {
        if self.clients.remove(&client) {
            self.sizes.leave(viewer(client), now);
        }
    }

    /// The client in control, of those that are meant.
    pub(crate) fn in_control(&self, is_meant: impl Fn(ClientId) -> bool) -> Option<ClientId> {
        self.sizes
            .in_control(|viewer| is_meant(ClientId(viewer.0)))
            .map(|viewer| ClientId(viewer.0))
    }

    /// Whether no change of the size is pending.
    pub(crate) fn is_settled(&self) -> bool {
        self.due_at().is_none()
    }

    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.sizes.poll_timeout()
    }

    /// Takes the change of the terminal's size that is due now.
    pub(crate) fn take_new_size(&mut self, now: Instant) -> Option<Size> {
        self.sizes.handle_timeout(now);
        self.sizes.poll_output()
    }
}

const fn viewer(client: ClientId) -> ViewerId {
    ViewerId(client.0)
}
