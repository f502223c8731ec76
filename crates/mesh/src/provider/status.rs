//! A peer's current offer to the dispatcher.

use std::time::Duration;

use base::Thermal;
use base::{Endpoint, Endpoints, ModelName, Scope};
use scheduler::{Distance, Offer};
use tokio::time::Instant;

use crate::{
    link::Carrier,
    peer::{Peer, PeerFacts, PeerId},
};

/// The largest request to a peer, in bytes. In base64 it still fits into a frame of a stock mesh
/// relay.
pub(super) const MAX_REQUEST: u64 = 10 * 1024 * 1024;

/// How long a reported load counts. Heartbeats are seconds apart, and the peer's queue may be empty
/// long before the next one. A peer that is asked too early queues the request itself.
const LOAD_COUNTS: Duration = Duration::from_secs(2);

/// A peer's current offer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PeerStatus {
    pub(super) models: Vec<ModelName>,
    pub(super) capacity: u32,
    pub(super) distance: Distance,
    /// How many requests wait at the peer, by its last report.
    pub(super) load: u32,
    /// When the load becomes too old to count; `None` while no request waits.
    pub(super) load_until: Option<Instant>,
    /// In thousandths of a token a second.
    pub(super) speed: Option<u32>,
    /// In per cent. At 0 it gets no jobs now.
    pub(super) throttle: u8,
}

impl PeerStatus {
    /// The peer's offer; `None` if no link leads to it and no mesh relay lists it.
    pub(super) fn of(peer: &Peer) -> Option<Self> {
        let link = peer.link();
        let listed = matches!(peer.id, PeerId::Node(_)) && !peer.relays().is_empty();
        if link.is_none() && !listed {
            return None;
        }
        let lan = matches!(link.as_ref().map(|link| &link.carrier), Some(Carrier::Lan(_)));
        let distance = if lan { Distance::Near } else { Distance::Far };
        let usable = link.as_ref().is_none_or(|link| link.is_usable());
        // Reports that came over a link which has ended are too old.
        Some(Self::new(&peer.facts(), distance, usable, link.is_some()))
    }

    fn new(facts: &PeerFacts, distance: Distance, usable: bool, linked: bool) -> Self {
        let throttle = match () {
            () if !usable || !facts.available => 0,
            () if linked => cooled(facts.throttle, facts.thermal),
            () => 100,
        };
        let models = facts.models.iter().map(|model| ModelName::from(model.as_str()));
        let load_until = busy_until(facts).filter(|_| linked);
        Self {
            models: models.collect(),
            capacity: facts.capacity.max(1),
            distance,
            load: load_until.map_or(0, |_| facts.queue_depth),
            load_until,
            speed: facts.speed.map(|speed| (speed * 1000.0) as u32),
            throttle,
        }
    }

    /// Whether it can be given jobs.
    pub(super) fn is_serving(&self) -> bool {
        self.throttle > 0 && !self.models.is_empty()
    }

    /// Makes the peer count as full for a moment.
    pub(super) fn fill(&mut self) {
        // One more than its capacity, since the scheduler is about to subtract the job that the
        // peer refuses.
        self.load = self.capacity.saturating_add(1);
        self.load_until = Instant::now().checked_add(LOAD_COUNTS);
    }

    pub(super) fn offer(&self) -> Offer {
        Offer {
            scope: Scope::server(),
            models: self.models.clone(),
            unloaded: Vec::new(),
            max_concurrent: self.capacity,
            load: self.load,
            max_size: MAX_REQUEST,
            endpoints: Endpoints::only(Endpoint::ChatCompletions),
            distance: self.distance,
            lingers: false,
            acknowledges: false,
            borrowed: false,
        }
    }
}

/// Until when the reported load counts. `None` if it does not count now.
fn busy_until(facts: &PeerFacts) -> Option<Instant> {
    let until = facts.queue_reported?.checked_add(LOAD_COUNTS)?;
    (facts.queue_depth > 0 && until > Instant::now()).then_some(until)
}

/// The throttle of a peer at this heat. Stock peers use the same numbers.
fn cooled(throttle: u8, thermal: Thermal) -> u8 {
    let percent = match thermal {
        Thermal::Nominal => 100,
        Thermal::Fair => 80,
        Thermal::Serious => 30,
        Thermal::Critical => 0,
    };
    // The result is at most 100, so it fits. Rounding down must not pause a peer that serves.
    let least = u16::from(throttle > 0 && percent > 0);
    (u16::from(throttle.min(100)) * percent / 100).max(least) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> PeerFacts {
        let models = vec!["m".to_owned()];
        PeerFacts { models, available: true, throttle: 100, ..PeerFacts::default() }
    }

    #[test]
    fn heat_lowers_the_throttle_of_a_peer_and_pauses_it_in_the_end() {
        use Thermal::{Critical, Fair, Nominal, Serious};
        assert_eq!(
            [Nominal, Fair, Serious, Critical].map(|heat| cooled(75, heat)),
            [75, 60, 22, 0]
        );
        assert_eq!((cooled(1, Serious), cooled(0, Nominal), cooled(255, Nominal)), (1, 0, 100));
    }

    #[test]
    fn a_peer_is_serving_while_it_gives_anything() {
        let status =
            |facts: &PeerFacts, usable| PeerStatus::new(facts, Distance::Near, usable, true);
        assert!(status(&facts(), true).is_serving());
        assert!(!status(&facts(), false).is_serving());
        assert!(!status(&PeerFacts { available: false, ..facts() }, true).is_serving());
        assert!(!status(&PeerFacts { throttle: 0, ..facts() }, true).is_serving());
        assert!(!status(&PeerFacts { models: Vec::new(), ..facts() }, true).is_serving());
    }

    #[test]
    fn facts_from_a_lost_link_do_not_count() {
        let queue_reported = Some(Instant::now());
        let paused =
            PeerFacts { throttle: 0, queue_depth: 5, queue_reported, speed: Some(1.5), ..facts() };
        let status = PeerStatus::new(&paused, Distance::Far, true, false);
        assert_eq!((status.throttle, status.load, status.speed), (100, 0, Some(1_500)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reported_load_counts_for_two_seconds() {
        let queue_reported = Some(Instant::now());
        let busy = PeerFacts { queue_depth: 5, queue_reported, ..facts() };
        let load = || PeerStatus::new(&busy, Distance::Far, true, true).load;
        assert_eq!(load(), 5);
        tokio::time::advance(LOAD_COUNTS - Duration::from_millis(1)).await;
        assert_eq!(load(), 5);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(load(), 0);
    }
}
