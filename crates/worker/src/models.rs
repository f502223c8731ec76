//! What a backend offers, models and endpoints, asked again and again.

use std::{sync::Arc, time::Duration};

use backend::{Backend, BackendError};
use base::Endpoints;
use protocol::relay::normalise_models;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    event::{Event, Teller},
    lent::Lent,
};

/// A backend that cannot be reached so often in a row offers nothing until it is back: one
/// failure may be a restart.
const MISSES: u32 = 2;

/// Backends are not asked more often than this.
const SHORTEST: Duration = Duration::from_millis(10);

/// Keeps a backend's offer up to date for ever: every so often, and when somebody asks for it.
pub(crate) async fn watch(lent: Arc<Lent>, every: Duration, teller: Teller) {
    let mut ticks = interval(every.max(SHORTEST));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut known, mut served) = (Known::default(), Served::default());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = lent.asked_to_refresh() => {}
        }
        let polled = match lent.fixed_models() {
            Some(models) => Ok(models.to_vec()),
            None => lent.backend().models().await,
        };
        if lent.was_lost() || is_unreachable(&polled) {
            served.lost();
        }
        if polled.is_ok() {
            served.learn(lent.backend()).await;
        }
        let news = known.observe(polled);
        tell(&lent, &known, news, &teller);
        lent.publish(&known.models, served.endpoints);
    }
}

fn is_unreachable(polled: &Result<Vec<String>, BackendError>) -> bool {
    matches!(polled, Err(BackendError::Unreachable { .. }))
}

fn tell(lent: &Lent, known: &Known, news: News, teller: &Teller) {
    let backend = lent.backend().label().to_owned();
    match news {
        News::Nothing => {}
        News::Models => teller.tell(&Event::Models { backend, models: known.models.clone() }),
        News::Failed(reason) => teller.tell(&Event::BackendFailed { backend, reason }),
    }
}

/// What is known of a backend's endpoints. They are asked for when it is first reached, and again
/// when it is back after it was not: it may be another one then, or started otherwise.
#[derive(Debug, Default)]
struct Served {
    endpoints: Option<Endpoints>,
    /// Whether it was asked since it was last lost.
    fresh: bool,
}

impl Served {
    fn lost(&mut self) {
        self.fresh = false;
    }

    async fn learn(&mut self, backend: &Backend) {
        if self.fresh {
            return;
        }
        // One that cannot be reached is asked again with the next poll.
        let Ok(endpoints) = backend.endpoints().await else { return };
        self.fresh = true;
        if self.endpoints != endpoints {
            self.endpoints = endpoints;
            tracing::info!(backend = backend.label(), ?endpoints, "what it serves");
        }
    }
}

/// What is known of a backend's models.
#[derive(Debug, Default)]
struct Known {
    models: Vec<String>,
    /// How often in a row it could not be reached.
    misses: u32,
    /// Whether the last poll failed.
    failing: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Nothing,
    /// The models are others now.
    Models,
    /// It fails since now.
    Failed(String),
}

impl Known {
    fn observe(&mut self, polled: Result<Vec<String>, BackendError>) -> News {
        match polled {
            Ok(names) => {
                (self.misses, self.failing) = (0, false);
                self.take(&names)
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &BackendError) -> News {
        let unreachable = matches!(error, BackendError::Unreachable { .. });
        self.misses = if unreachable { self.misses.saturating_add(1) } else { 0 };
        if !std::mem::replace(&mut self.failing, true) {
            return News::Failed(error.to_string());
        }
        if self.misses >= MISSES { self.take(&[]) } else { News::Nothing }
    }

    /// Takes a list. Sorted, since some backends list what was used last first.
    fn take(&mut self, names: &[String]) -> News {
        let (mut models, warnings) = normalise_models(names);
        warnings.iter().for_each(|warning| tracing::debug!("{warning}"));
        models.sort_unstable();
        if models == self.models {
            return News::Nothing;
        }
        self.models = models;
        News::Models
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Result<Vec<String>, BackendError> {
        Ok(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn unreachable() -> Result<Vec<String>, BackendError> {
        Err(BackendError::Unreachable { backend: "b".into(), reason: "refused".to_owned() })
    }

    fn broken() -> Result<Vec<String>, BackendError> {
        Err(BackendError::NoModels { backend: "b".into(), reason: "500".to_owned() })
    }

    #[test]
    fn only_a_change_is_news_and_order_is_none() {
        let mut known = Known::default();
        assert_eq!(known.observe(list(&["b", "a"])), News::Models);
        assert_eq!(known.observe(list(&["a", "b", "a"])), News::Nothing);
        assert_eq!(known.models, ["a", "b"]);
    }

    #[test]
    fn two_misses_in_a_row_take_the_offer_away_until_it_is_back() {
        let mut known = Known::default();
        known.observe(list(&["a"]));
        assert!(matches!(known.observe(unreachable()), News::Failed(_)));
        assert_eq!(known.observe(list(&["a"])), News::Nothing);
        assert!(matches!(known.observe(unreachable()), News::Failed(_)));
        assert_eq!(known.models, ["a"]);
        assert_eq!(known.observe(unreachable()), News::Models);
        assert!(known.models.is_empty());
        assert_eq!(known.observe(unreachable()), News::Nothing);
        assert_eq!(known.observe(list(&["a"])), News::Models);
    }

    #[test]
    fn a_backend_that_answers_badly_keeps_its_offer() {
        let mut known = Known::default();
        known.observe(list(&["a"]));
        assert!(matches!(known.observe(broken()), News::Failed(_)));
        for _ in 0..5 {
            assert_eq!(known.observe(broken()), News::Nothing);
            assert_eq!(known.observe(unreachable()), News::Nothing);
        }
        assert_eq!(known.models, ["a"]);
    }
}
