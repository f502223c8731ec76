//! Where watchers are.

use crate::{load::watch::Watch, targets::Target};

/// Watchers of each room, where they are spread.
pub(super) const EACH: u32 = 10;

/// Watchers that never read, where there are some.
pub(super) const SILENT: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowd {
    Spread,
    Together,
    /// The same, with some that never read.
    WithSilent,
}

impl Crowd {
    pub(super) const ALL: [Self; 3] = [Self::Spread, Self::Together, Self::WithSilent];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spread => "many rooms",
            Self::Together => "one room",
            Self::WithSilent => "and silent",
        }
    }

    pub(super) fn watch(self, target: &Target, rooms: &[String], quick: bool) -> Watch {
        let all = u32::try_from(rooms.len()).unwrap_or(u32::MAX).saturating_mul(EACH);
        let events = if quick { 40 } else { 200 };
        let one = || rooms[..1].to_vec();
        let (rooms, watchers, silent, events) = match self {
            Self::Spread => (rooms.to_vec(), EACH, 0, if quick { 100 } else { 2000 }),
            Self::Together => (one(), all, 0, events),
            Self::WithSilent => (one(), all - SILENT, SILENT, events),
        };
        Watch { addr: target.addr, rooms, watchers, silent, events }
    }
}
