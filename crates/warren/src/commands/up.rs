//! `warren up`: a server, and a worker over every model server found on this machine.

use std::{
    collections::BTreeMap,
    future::pending,
    io::{IsTerminal, stdout},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use daemon::{
    ConfigFile, ServeOptions, Server, Settings,
    configuration::Origins,
    options::WorkerOptions,
    reload::Source,
    signals::{self, EndSignal, Stop},
    telemetry,
};
use protocol::relay::Version;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use worker::{Event, InProcessDialer, Lend, ServerTarget, WorkerConfig};

use super::{
    banner::Banner,
    config::worker_defaults,
    farewell,
    found::{Demo, Finder},
    model_engines::WorkerEngines,
    say, server_runtime, worker as lending,
};
use crate::exit::{self, usage};

/// The longest wait for the first models before the banner is printed without them.
const FIRST_WITHIN: Duration = Duration::from_secs(3);

/// The directory of model engines in the data directory.
const ENGINES: &str = "engines";

/// The interval of checks for the first models.
const LOOK: Duration = Duration::from_millis(20);

/// Start here
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren up\n  \
    warren up --gguf qwen3-8b.gguf\n  \
    warren up --demo\n  \
    warren up --listen 0.0.0.0:9178 --require-key")]
pub(crate) struct Up {
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    serve: ServeOptions,
}

impl Up {
    pub(crate) fn run(self, file: ConfigFile, origins: &Origins) -> anyhow::Result<()> {
        // A newcomer should see the example, not log lines; `warren logs` shows all.
        let has_filter = self.serve.log.is_some() || file.serve.log.is_some();
        let shown = if has_filter { Level::TRACE } else { Level::WARN };
        let worker = self.worker.clone().or(file.worker.clone());
        let settings = self.settings(&file, origins).map_err(usage)?;
        let log = telemetry::log::start_showing(settings.log_format, &settings.log, shown);
        let _log = log.map_err(usage)?;
        let origins = origins.clone();
        let source = move || {
            let file = file.read_again()?;
            self.settings(&file, &origins.with_file(&file))
        };
        server_runtime()?.block_on(up(settings, worker, Box::new(source)))
    }

    fn settings(&self, file: &ConfigFile, origins: &Origins) -> anyhow::Result<Settings> {
        let mut serve = self.serve.clone().or(file.serve.clone());
        let given = serve.clone();
        let worker = self.worker.clone().or(file.worker.clone());
        // The machine has one name, unless the settings name another for peers.
        serve.mesh.name = serve.mesh.name.or_else(|| worker.name.clone());
        let mut settings = Settings::new(serve, true).map_err(|error| file.locate(error))?;
        let mut all = origins.settings("", &given, &settings.values());
        all.extend(origins.settings("worker", &worker, &worker_defaults()));
        settings.configuration = origins.configuration(all);
        Ok(settings)
    }
}

async fn up(settings: Settings, mut options: WorkerOptions, source: Source) -> anyhow::Result<()> {
    let (drain, needs_key) = (settings.drain, settings.require_key);
    let worker_engines =
        WorkerEngines::start(&mut options, &settings.data_dir, ENGINES).await.map_err(usage)?;
    let server = Server::start(settings).await?.reloaded_from(source)?;
    let sessions = server.sessions();
    let stop = signals::stop_after(move |signal| async move {
        if signal == EndSignal::Interrupt {
            farewell::ask_about_sessions(&sessions).await;
        }
    })?;
    let mut config = config(&server.urls()?, &options, drain)?;
    config.backends = lending::named_backends(&options).map_err(usage)?;
    let clouds = lending::clouds(&config.backends);
    let finder = finder(&config.backends, worker_engines.as_ref(), &options).await;
    config.backends.extend(worker_engines.iter().flat_map(WorkerEngines::lent));
    config.traces = server.traces();
    let offers = Arc::<Offers>::default();
    let worker = worker(config, finder.as_ref(), &server, &offers)?;
    let banner = banner(&server, finder.as_ref(), worker_engines.as_ref(), needs_key)?;
    // The worker must outlive the drain: it serves the requests in flight.
    let lending = CancellationToken::new();
    let worker = tokio::spawn(worker.run(lending.clone()));
    let finding = finder.map(|finder| tokio::spawn(finder.run()));
    say(&format!("listening on {}", banner.urls.join(" and ")))?;
    let greeting = greet(banner, server.served(), &offers, &clouds);
    let ended = serve(server, &stop, greeting, worker_engines.as_ref()).await;
    if let Some(finding) = finding {
        finding.abort();
    }
    lending.cancel();
    worker.await?;
    if let Some(worker_engines) = worker_engines {
        worker_engines.stop().await;
    }
    ended?;
    exit::unless_forced(&stop)
}

/// Runs the server until it ends. Until its drain begins, also prints the greeting, and follows the folders
/// of model files.
async fn serve(
    server: Server,
    stop: &Stop,
    greeting: impl Future<Output = ()>,
    worker_engines: Option<&WorkerEngines>,
) -> anyhow::Result<()> {
    let following = async {
        match worker_engines {
            Some(worker_engines) => worker_engines.follow().await,
            None => pending().await,
        }
    };
    let (running, drain) = (server.run(stop.clone(), farewell::server_stops), stop.drain());
    let (ended, ..) = tokio::join!(
        running,
        drain.run_until_cancelled(greeting),
        drain.run_until_cancelled(following)
    );
    ended
}

/// The banner without the models, which come later.
fn banner(
    server: &Server,
    finder: Option<&Finder>,
    worker_engines: Option<&WorkerEngines>,
    needs_key: bool,
) -> anyhow::Result<Banner> {
    let (address, secrets) = (server.address()?, server.secrets().clone());
    Ok(Banner {
        urls: server.urls()?,
        only_here: address.ip().is_loopback(),
        port: address.port(),
        found: finder.map(|finder| finder.found().to_vec()),
        engines: worker_engines.map(WorkerEngines::offered).unwrap_or_default(),
        offers: Vec::new(),
        models: Vec::new(),
        needs_key,
        client_key: secrets.client,
        worker_secret: secrets.worker,
        invitation: server.invite()?,
        // Only for a terminal: elsewhere the code would be in a journal that others can read.
        login_code: stdout().is_terminal().then(|| server.login_code()).flatten(),
    })
}

/// Prints the banner once there are models, and what clouds cost.
async fn greet(
    mut banner: Banner,
    served: impl Fn() -> Vec<String>,
    offers: &Offers,
    clouds: &[String],
) {
    banner.models = first_models(&served).await;
    banner.offers = offers.said();
    // A closed standard output is no reason to stop serving.
    let _ = say(&banner.text());
    for words in clouds {
        let _ = say(&format!("Note: {words}."));
    }
}

/// Looks for model servers, unless people named backends or engines.
async fn finder(
    backends: &[Lend],
    worker_engines: Option<&WorkerEngines>,
    options: &WorkerOptions,
) -> Option<Finder> {
    let is_named =
        worker_engines.is_some_and(WorkerEngines::is_named) || !backends.iter().all(Lend::is_cloud);
    if is_named {
        return None;
    }
    let demo = match backends {
        [] => Demo::WithoutModels(worker_engines.map(WorkerEngines::programs).unwrap_or_default()),
        _ => Demo::Never,
    };
    Some(Finder::new(options, demo).await)
}

fn config(
    urls: &[String],
    options: &WorkerOptions,
    drain: Duration,
) -> anyhow::Result<WorkerConfig> {
    let mut config = WorkerConfig::new(lending::name(options));
    let url = urls.first().map_or("", String::as_str);
    config.servers = vec![ServerTarget::new(url, None)?];
    config.drain_timeout = drain;
    Ok(config)
}

/// A worker whose links to the server of this process need no socket.
fn worker(
    config: WorkerConfig,
    finder: Option<&Finder>,
    server: &Server,
    offers: &Arc<Offers>,
) -> anyhow::Result<worker::Worker> {
    let links = server.workers();
    let dialer = InProcessDialer::new(move |link, outbox| {
        let links = links.clone();
        tokio::spawn(async move { links.serve(link, outbox, Some(Version::NEWEST)).await });
    });
    let worker = match finder {
        Some(finder) => worker::Worker::following(config, finder.lent(), dialer)?,
        None => worker::Worker::new(config, dialer)?,
    };
    let offers = Arc::clone(offers);
    Ok(worker.observed_by(Arc::new(move |event: &Event| offers.take(event))))
}

/// The models that are served first, once there are some. A backend that takes long, or has none, is not
/// waited for.
async fn first_models(served: &impl Fn() -> Vec<String>) -> Vec<String> {
    let any = async {
        loop {
            let models = served();
            if !models.is_empty() {
                return models;
            }
            sleep(LOOK).await;
        }
    };
    timeout(FIRST_WITHIN, any).await.unwrap_or_default()
}

/// The models that the backends offer: gathered for the banner, and said line by line after it.
#[derive(Default)]
struct Offers(Mutex<OfferedModels>);

#[derive(Default)]
struct OfferedModels {
    by_backend: BTreeMap<String, Vec<String>>,
    is_said: bool,
}

impl Offers {
    fn take(&self, event: &Event) {
        let (backend, models) = match event {
            Event::Models { backend, models } => (backend, models.as_slice()),
            Event::Withdrawn { backend } => (backend, &[][..]),
            _ => return,
        };
        let mut offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.is_said {
            // A closed standard output is no reason to stop serving.
            let _ = say(&changed(backend, models));
        } else {
            offered.by_backend.insert(backend.clone(), models.to_vec());
        }
    }

    /// All offers so far. From now on each change is printed.
    fn said(&self) -> Vec<(String, Vec<String>)> {
        let mut offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        offered.is_said = true;
        std::mem::take(&mut offered.by_backend).into_iter().collect()
    }
}

fn changed(backend: &str, models: &[String]) -> String {
    match models {
        [] => format!("{backend} offers nothing any more"),
        models => format!("{backend} offers {}", models.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_gathered_for_the_banner() {
        let offers = Offers::default();
        let models = |models: &[&str]| Event::Models {
            backend: "b".to_owned(),
            models: models.iter().map(|&model| model.to_owned()).collect(),
        };
        offers.take(&models(&["m"]));
        offers.take(&models(&["m", "n"]));
        assert_eq!(offers.said(), [("b".to_owned(), vec!["m".to_owned(), "n".to_owned()])]);
        offers.take(&models(&["o"]));
        assert!(offers.said().is_empty(), "it was said at once");
        assert_eq!(changed("demo", &[]), "demo offers nothing any more");
    }
}
