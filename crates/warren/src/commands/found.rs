//! The model servers that are found on this machine while a worker runs: they come and go, and where a demo is
//! wanted it is there as long as none of them has a model.

use std::time::Duration;

use daemon::options::WorkerOptions;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use worker::{Lend, LocalBackend, Search};

use super::worker::{demo, found_backend};

/// How often this machine is searched.
const EVERY: Duration = Duration::from_secs(2);

/// What was found, and goes on being looked for.
pub(crate) struct Finder {
    options: WorkerOptions,
    /// Whether the demo stands in while there is no model.
    demo: bool,
    search: Search,
    found: Vec<LocalBackend>,
    lent: watch::Sender<Vec<Lend>>,
}

impl Finder {
    /// Looks once.
    pub(crate) async fn new(options: &WorkerOptions, demo: bool) -> Self {
        let mut search = Search::usual();
        let found = search.look().await;
        let lent = watch::Sender::new(backends(&found, options, demo));
        Self { options: options.clone(), demo, search, found, lent }
    }

    /// The model servers that were found when it was last looked.
    pub(crate) fn found(&self) -> &[LocalBackend] {
        &self.found
    }

    /// What is to be lent, now and whenever that changes.
    pub(crate) fn lent(&self) -> watch::Receiver<Vec<Lend>> {
        self.lent.subscribe()
    }

    /// Looks for ever.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let found = self.search.look().await;
            if found == self.found {
                continue;
            }
            for found in found.iter().filter(|found| !self.found.contains(found)) {
                tracing::info!(backend = found.name, url = found.url, "found");
            }
            self.lent.send_replace(backends(&found, &self.options, self.demo));
            self.found = found;
        }
    }
}

/// What there is to lend. One that cannot be lent with these options is passed over.
fn backends(found: &[LocalBackend], options: &WorkerOptions, with_demo: bool) -> Vec<Lend> {
    let lend = |found: &LocalBackend| {
        found_backend(&found.url, options)
            .inspect_err(|error| tracing::warn!(url = found.url, %error, "it cannot be lent"))
            .ok()
    };
    let mut all: Vec<Lend> = found.iter().filter_map(lend).collect();
    if with_demo && found.iter().all(|found| found.models.is_empty()) {
        all.push(demo(options));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, models: &[&str]) -> LocalBackend {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        LocalBackend { name: "Ollama".to_owned(), url: url.to_owned(), models }
    }

    fn places(found: &[LocalBackend], with_demo: bool) -> Vec<String> {
        let all = backends(found, &WorkerOptions::default(), with_demo);
        all.iter().map(|lend| lend.place().to_owned()).collect()
    }

    #[test]
    fn the_demo_is_there_as_long_as_nobody_has_a_model() {
        let (empty, full) = (found("http://a", &[]), found("http://b", &["m"]));
        assert_eq!(places(&[], true), ["demo"]);
        assert_eq!(places(&[], false), Vec::<String>::new());
        assert_eq!(places(std::slice::from_ref(&empty), true), ["http://a", "demo"]);
        assert_eq!(places(&[empty, full], true), ["http://a", "http://b"]);
    }
}
