//! The models and endpoints of a backend, polled.

use std::{sync::Arc, time::Duration};

use backend::{Backend, BackendError, Phase};
use base::Endpoints;
use protocol::relay::normalise_models;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    event::{Event, EventSink},
    failures::Failures,
    lent::LentBackend,
};

/// After this many failures in a row a backend offers nothing until it is back: one failure may be a
/// restart.
const MISSES: u32 = 2;

/// After this many polls in a row without an answer in time, a backend offers nothing until it answers again. Polls
/// while it has jobs of this worker do not count: some backends answer nothing else then.
const LATE: u32 = 5;

/// Backends are not asked more often than this.
const SHORTEST: Duration = Duration::from_millis(10);

/// Keeps a backend's offer up to date for ever: asks at each interval, and when a link or a change
/// of models demands it.
pub(crate) async fn watch(lent: Arc<LentBackend>, every: Duration, events: EventSink) {
    let mut ticks = interval(every.max(SHORTEST));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut known, mut served) = (ModelWatch::default(), EndpointWatch::default());
    let (mut failures, mut clouds) = (Failures::default(), CloudPace::default());
    let mut changes = lent.backend().engines().map(|engines| engines.changes());
    // A closer look in progress. Dropped, and so ended, with this future.
    let mut look = JoinSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = lent.asked_to_refresh() => {}
            () = changed(&mut changes) => {}
            Some(_) = look.join_next() => {
                lent.publish_facts();
                continue;
            }
        }
        lent.backend().read_key_again().await;
        if !lent.has_fixed_models() && !clouds.is_due(&lent) {
            continue;
        }
        let polled = lent.models().await;
        clouds.note(polled.is_ok());
        if lent.was_lost() || is_unreachable(&polled) {
            served.lost();
        }
        if polled.is_ok() {
            served.learn(lent.backend()).await;
        }
        report_failure(&lent, &polled, &mut failures, &events);
        let reached = polled.is_ok();
        if known.observe(polled, lent.load() > 0) {
            let (backend, models) = (lent.backend().label().to_owned(), lent.names(&known.models));
            events.send(&Event::Models { backend, models });
        }
        lent.publish(&lent.names(&known.models), served.endpoints, reached);
        // The list is published first, since to learn more about each model may take long.
        if reached && look.is_empty() {
            let lent = Arc::clone(&lent);
            look.spawn(async move { lent.backend().look_closer().await });
        }
    }
}

/// Waits for a change; for ever if there is no receiver, or its sender is gone.
pub(crate) async fn changed<T>(changes: &mut Option<watch::Receiver<T>>) {
    let is_over = match changes {
        Some(changes) => changes.changed().await.is_err(),
        None => true,
    };
    if is_over {
        std::future::pending::<()>().await;
    }
}

/// How often a cloud is asked for its list, which is long and changes seldom.
const CLOUD_LIST: Duration = Duration::from_secs(3_600);

/// How soon a cloud is asked again after it gave no list.
const CLOUD_AGAIN: Duration = Duration::from_secs(60);

/// When a cloud is asked for its list again.
#[derive(Debug, Default)]
struct CloudPace(Option<(Instant, Duration)>);

impl CloudPace {
    fn is_due(&self, lent: &LentBackend) -> bool {
        let waits = self.0.is_some_and(|(since, wait)| since.elapsed() < wait);
        !(lent.backend().is_cloud() && waits)
    }

    fn note(&mut self, well: bool) {
        self.0 = Some((Instant::now(), if well { CLOUD_LIST } else { CLOUD_AGAIN }));
    }
}

fn is_unreachable(polled: &Result<Vec<String>, BackendError>) -> bool {
    polled.as_ref().is_err_and(has_no_connection)
}

/// Whether no connection came about: a machine that is off may refuse it, or not say anything.
fn has_no_connection(error: &BackendError) -> bool {
    matches!(
        error,
        BackendError::Unreachable { .. } | BackendError::Timeout { phase: Phase::Connect, .. }
    )
}

/// Reports a failed poll; of many in a row, only some.
fn report_failure(
    lent: &LentBackend,
    polled: &Result<Vec<String>, BackendError>,
    failures: &mut Failures,
    events: &EventSink,
) {
    let Err(error) = polled else { return failures.over() };
    let reason = error.to_string();
    if failures.count_one(&reason).is_some() {
        let backend = lent.backend().label().to_owned();
        events.send(&Event::BackendFailed { backend, reason });
    }
}

/// A backend's endpoints. They are asked for when it is first reached, and again when it comes back: it may
/// be another program then, or started with other options.
#[derive(Debug, Default)]
struct EndpointWatch {
    endpoints: Option<Endpoints>,
    /// Whether they were asked for since the backend was last lost.
    fresh: bool,
}

impl EndpointWatch {
    fn lost(&mut self) {
        self.fresh = false;
    }

    async fn learn(&mut self, backend: &Backend) {
        // Model engines know their endpoints only once the first model is loaded, and cost nothing to ask.
        if self.fresh && backend.engines().is_none() {
            if let Some((known, listed)) = self.endpoints.zip(backend.listed_endpoints()) {
                let text = Endpoints::UNTRANSLATED.iter().fold(known, Endpoints::without);
                self.tell(backend, Some(text.union(listed)));
            }
            return;
        }
        // If it cannot be reached, it is asked again with the next poll.
        let Ok(endpoints) = backend.endpoints().await else { return };
        self.fresh = true;
        self.tell(backend, endpoints);
    }

    fn tell(&mut self, backend: &Backend, endpoints: Option<Endpoints>) {
        if self.endpoints != endpoints {
            self.endpoints = endpoints;
            let backend = backend.label();
            match endpoints {
                Some(endpoints) => tracing::info!(backend, %endpoints, "what it serves"),
                None => tracing::info!(backend, "it does not tell what it serves"),
            }
        }
    }
}

/// A backend's models, as last seen.
#[derive(Debug, Default)]
struct ModelWatch {
    models: Vec<String>,
    /// How often in a row it could not be reached.
    misses: u32,
    /// How often in a row it gave no answer in time while it was idle.
    late: u32,
}

impl ModelWatch {
    /// Takes the result of a poll. `busy`: whether the backend has jobs. Returns whether the models have
    /// changed.
    fn observe(&mut self, polled: Result<Vec<String>, BackendError>, busy: bool) -> bool {
        match polled {
            Ok(names) => {
                (self.misses, self.late) = (0, 0);
                self.take(&names)
            }
            Err(error) => self.failed(&error, busy),
        }
    }

    fn failed(&mut self, error: &BackendError, busy: bool) -> bool {
        self.misses = if has_no_connection(error) { self.misses.saturating_add(1) } else { 0 };
        self.late = match error {
            BackendError::Timeout { .. } => self.late.saturating_add(u32::from(!busy)),
            _ => 0,
        };
        (self.misses >= MISSES || self.late >= LATE) && self.take(&[])
    }

    /// Takes a list. It is sorted, since some backends list the model that was used last first.
    fn take(&mut self, names: &[String]) -> bool {
        let (mut models, warnings) = normalise_models(names);
        warnings.iter().for_each(|warning| tracing::debug!("{warning}"));
        models.sort_unstable();
        let is_changed = models != self.models;
        self.models = models;
        is_changed
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

    fn late(phase: Phase) -> Result<Vec<String>, BackendError> {
        Err(BackendError::Timeout { backend: "b".into(), phase, after: Duration::from_secs(5) })
    }

    fn broken() -> Result<Vec<String>, BackendError> {
        Err(BackendError::NoModels { backend: "b".into(), reason: "500".to_owned() })
    }

    #[test]
    fn only_a_changed_set_is_a_change() {
        let mut known = ModelWatch::default();
        assert!(known.observe(list(&["b", "a"]), false));
        assert!(!known.observe(list(&["a", "b", "a"]), false));
        assert_eq!(known.models, ["a", "b"]);
    }

    #[test]
    fn two_misses_in_a_row_withdraw_the_offer_until_the_backend_is_back() {
        let mut known = ModelWatch::default();
        known.observe(list(&["a"]), false);
        assert!(!known.observe(unreachable(), false));
        assert!(!known.observe(list(&["a"]), false));
        assert!(!known.observe(unreachable(), false));
        assert_eq!(known.models, ["a"]);
        assert!(known.observe(unreachable(), false));
        assert!(known.models.is_empty());
        assert!(!known.observe(unreachable(), false));
        assert!(known.observe(list(&["a"]), false));
    }

    #[test]
    fn a_machine_that_is_off_is_unreachable_even_if_nothing_refuses_the_connection() {
        let mut known = ModelWatch::default();
        known.observe(list(&["a"]), false);
        assert!(!known.observe(late(Phase::Connect), true));
        assert!(known.observe(unreachable(), true));
        assert!(known.models.is_empty());
        assert!(is_unreachable(&late(Phase::Connect)) && !is_unreachable(&late(Phase::Models)));
    }

    #[test]
    fn a_backend_that_never_answers_in_time_keeps_its_offer_only_while_it_has_jobs() {
        let mut known = ModelWatch::default();
        known.observe(list(&["a"]), false);
        for _ in 0..2 * LATE {
            assert!(!known.observe(late(Phase::Models), true));
        }
        for _ in 1..LATE {
            assert!(!known.observe(late(Phase::Models), false));
        }
        assert!(known.observe(late(Phase::Models), false));
        assert!(known.models.is_empty());
        assert!(known.observe(list(&["a"]), false));
        assert!(!known.observe(late(Phase::Models), false));
    }

    #[test]
    fn a_backend_that_answers_badly_keeps_its_offer() {
        let mut known = ModelWatch::default();
        known.observe(list(&["a"]), false);
        assert!(!known.observe(broken(), false));
        for _ in 0..5 {
            assert!(!known.observe(broken(), false));
            assert!(!known.observe(unreachable(), false));
        }
        assert_eq!(known.models, ["a"]);
    }
}
