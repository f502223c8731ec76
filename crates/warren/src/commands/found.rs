//! The model servers that are found on this machine while a worker runs. They come and go. If a demo is
//! wanted, it is lent while none of them has a model.

use std::{sync::Arc, time::Duration};

use daemon::options::WorkerOptions;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use worker::{Lend, LocalBackend, ModelEngines, Search};

use super::worker::{demo, found_backend};

/// How often this machine is searched.
const EVERY: Duration = Duration::from_secs(2);

/// The backends that were found. The search goes on.
pub(crate) struct Finder {
    options: WorkerOptions,
    demo: Demo,
    search: Search,
    backends: Vec<LocalBackend>,
    lent: watch::Sender<Vec<Lend>>,
}

/// The conditions under which the demo is lent.
#[derive(Debug, Clone)]
pub(crate) enum Demo {
    Never,
    /// As long as neither a model server that was found nor one of these engines has a model.
    WithoutModels(Vec<Arc<dyn ModelEngines>>),
}

impl Demo {
    fn is_wanted(&self, found: &[LocalBackend]) -> bool {
        match self {
            Self::Never => false,
            Self::WithoutModels(engines) => {
                found.iter().all(|found| found.models.is_empty())
                    && engines.iter().all(|engines| engines.models().is_empty())
            }
        }
    }
}

impl Finder {
    /// Searches once.
    pub(crate) async fn new(options: &WorkerOptions, demo: Demo) -> Self {
        let mut search = Search::usual();
        let found = search.look().await;
        let lent = watch::Sender::new(backends(&found, options, demo.is_wanted(&found)));
        Self { options: options.clone(), demo, search, backends: found, lent }
    }

    /// The model servers of the last search.
    pub(crate) fn found(&self) -> &[LocalBackend] {
        &self.backends
    }

    /// The backends to lend, now and whenever they change.
    pub(crate) fn lent(&self) -> watch::Receiver<Vec<Lend>> {
        self.lent.subscribe()
    }

    /// Searches for ever.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut had_demo = self.demo.is_wanted(&self.backends);
        loop {
            ticks.tick().await;
            let found = self.search.look().await;
            let has_demo = self.demo.is_wanted(&found);
            if found == self.backends && has_demo == had_demo {
                continue;
            }
            had_demo = has_demo;
            for found in found.iter().filter(|found| !self.backends.contains(found)) {
                tracing::info!(backend = found.name, url = found.url, "found");
            }
            self.lent.send_replace(backends(&found, &self.options, has_demo));
            self.backends = found;
        }
    }
}

/// The backends to lend. One that cannot be lent with these options is left out.
fn backends(found: &[LocalBackend], options: &WorkerOptions, with_demo: bool) -> Vec<Lend> {
    let lend = |found: &LocalBackend| {
        found_backend(&found.url, options)
            .inspect_err(|error| tracing::warn!(url = found.url, %error, "it cannot be lent"))
            .ok()
    };
    let mut all: Vec<Lend> = found.iter().filter_map(lend).collect();
    if with_demo {
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

    fn places(found: &[LocalBackend], demo: &Demo) -> Vec<String> {
        let all = backends(found, &WorkerOptions::default(), demo.is_wanted(found));
        all.iter().map(|lend| lend.place().to_owned()).collect()
    }

    #[test]
    fn the_demo_is_there_as_long_as_nobody_has_a_model() {
        let (empty, full) = (found("http://a", &[]), found("http://b", &["m"]));
        let wanted = Demo::WithoutModels(Vec::new());
        assert_eq!(places(&[], &wanted), ["demo"]);
        assert_eq!(places(&[], &Demo::Never), Vec::<String>::new());
        assert_eq!(places(std::slice::from_ref(&empty), &wanted), ["http://a", "demo"]);
        assert_eq!(places(&[empty, full], &wanted), ["http://a", "http://b"]);
    }
}
