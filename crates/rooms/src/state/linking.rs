//! Connecting, disconnecting, and the passing of time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use base::ProviderId;
use protocol::room::limits::MAX_MODELS;

use super::{RoomState, SweepResult, left, offline, updated};
use crate::{
    check,
    events::Announcement,
    member::{End, FORGOTTEN, Link, OFFLINE},
    participant::ConnectionEnd,
};

/// A new connection's data for its owner.
pub(crate) struct LinkHandle {
    pub(crate) serial: u64,
    pub(crate) seen: Arc<AtomicU64>,
    pub(crate) end: Arc<End>,
}

impl RoomState {
    /// Connects a participant as this provider. Its older connection ends.
    pub(crate) fn link(
        &mut self,
        id: &str,
        provider: ProviderId,
        now: u64,
    ) -> Option<(LinkHandle, Announcement)> {
        self.member(id)?.end(ConnectionEnd::Superseded);
        // Before the new link: the models of the old one would else be counted for ever.
        self.unlink(id, now);
        self.counted += 1;
        let (serial, end) = (self.counted, Arc::<End>::default());
        let member = self.members.get_mut(id)?;
        member.link = Link::Up { serial, provider, end: Arc::clone(&end) };
        // Never set back: the connection writes it too, without the lock.
        member.link_seen.fetch_max(now, Ordering::Relaxed);
        member.stored.updated_at = now;
        let comes_back = std::mem::take(&mut member.is_shown_offline);
        let linked = LinkHandle { serial, seen: Arc::clone(&member.link_seen), end };
        let models = member.stored.about.models.clone();
        self.count_in(&models);
        self.providers.insert(provider, id.to_owned());
        let announcement = updated(self.participant(id)?, comes_back);
        Some((linked, announcement))
    }

    /// Handles the end of a connection. Announces nothing if the participant has a newer one.
    pub(crate) fn disconnect(&mut self, id: &str, serial: u64, now: u64) -> Option<Announcement> {
        // A late end of an older connection must not disconnect the newer one.
        if !self.is_linked(id, serial) {
            return None;
        }
        self.unlink(id, now);
        let member = self.members.get_mut(id)?;
        member.stored.updated_at = now;
        member.stale = true;
        Some(updated(self.participant(id)?, false))
    }

    fn is_linked(&self, id: &str, serial: u64) -> bool {
        let link = self.member(id).map(|member| &member.link);
        matches!(link, Some(Link::Up { serial: own, .. }) if *own == serial)
    }

    /// Marks a participant as disconnected, if it was connected.
    pub(super) fn unlink(&mut self, id: &str, now: u64) {
        let Some(member) = self.members.get_mut(id) else { return };
        let Link::Up { provider, .. } = member.link else { return };
        member.link = Link::Down { since: now };
        // A participant without a connection can be evicted soon: the room has to look again.
        self.full_until = 0;
        let models = member.stored.about.models.clone();
        self.count_out(&models);
        self.providers.remove(&provider);
    }

    /// Sets the models of a connection's participant. Invalid names are left out.
    pub(crate) fn set_models(
        &mut self,
        id: &str,
        serial: u64,
        models: Vec<String>,
        now: u64,
    ) -> Option<Announcement> {
        let models: Vec<_> =
            models.into_iter().filter(|model| check::model(model).is_ok()).collect();
        let models: Vec<_> = models.into_iter().take(MAX_MODELS).collect();
        if !self.is_linked(id, serial) || self.member(id)?.stored.about.models == models {
            return None;
        }
        let member = self.members.get_mut(id)?;
        let old = std::mem::replace(&mut member.stored.about.models, models.clone());
        member.stored.updated_at = now;
        member.stale = true;
        self.count_out(&old);
        self.count_in(&models);
        Some(updated(self.participant(id)?, false))
    }

    /// Marks silent participants as offline and forgets them after a day.
    pub(crate) fn sweep(&mut self, now: u64, aged: u64) -> SweepResult {
        let mut swept = SweepResult::default();
        for member in self.members.values_mut().filter(|member| !member.is_up()) {
            let silent = now.saturating_sub(member.seen());
            // Judged by `aged`: a clock that jumps ahead must not delete what cannot be brought back.
            if aged.saturating_sub(member.seen()) >= FORGOTTEN {
                swept.forgotten.push(member.id.clone());
                continue;
            }
            if silent >= OFFLINE && !std::mem::replace(&mut member.is_shown_offline, true) {
                swept.announcements.push(offline(&member.id));
            }
            if member.stale {
                swept.stale.push(member.id.clone());
            }
        }
        for id in &swept.forgotten {
            self.activity.forget(id);
            let member = self.members.remove(id);
            swept
                .announcements
                .extend(member.map(|member| left(&member.id, member.is_shown_offline)));
        }
        swept
    }
}
