//! Which providers know how much of a prompt.

use base::ProviderId;

/// How many providers are listed.
const MOST: usize = 8;

/// Providers, and how many bytes of a prompt each of them knows, as far as is remembered. The ones
/// that know most come first. Their number is bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    providers: [Option<(ProviderId, u32)>; MOST],
}

impl Known {
    /// Notes that a provider knows this many bytes. The caller must begin with the most bytes: for
    /// each provider only the first call counts. Returns whether there is room for more providers.
    pub fn note(&mut self, provider: ProviderId, bytes: u32) -> bool {
        // Its longest head came first, and includes the shorter ones.
        if self.of(provider) > 0 {
            return true;
        }
        let mut free = self.providers.iter_mut().filter(|slot| slot.is_none());
        if let Some(slot) = free.next() {
            *slot = Some((provider, bytes));
        }
        free.next().is_some()
    }

    /// How much this provider knows, in bytes; 0 if nothing is remembered of it.
    pub fn of(&self, provider: ProviderId) -> u32 {
        self.iter().find(|(other, _)| *other == provider).map_or(0, |(_, bytes)| bytes)
    }

    /// All providers with what they know, those that know most first.
    pub fn iter(&self) -> impl Iterator<Item = (ProviderId, u32)> + use<> {
        self.providers.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::provider;

    #[test]
    fn the_first_note_of_a_provider_counts_and_the_room_is_bounded() {
        let mut known = Known::default();
        assert!(known.note(provider(1), 9_000) && known.note(provider(1), 500));
        assert_eq!((known.of(provider(1)), known.of(provider(2))), (9_000, 0));
        let room = (2..20).filter(|number| known.note(provider(*number), 400)).count();
        assert_eq!((room, known.iter().count()), (MOST - 2, MOST));
    }
}
