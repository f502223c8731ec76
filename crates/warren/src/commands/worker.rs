//! `warren worker`: lends this machine's model servers.

mod api_key;

use anyhow::{Context, bail};
use base::{Endpoint, Endpoints, Secret, redact_url};
use clap::Args;
use daemon::{
    ConfigFile, ServeOptions,
    data::{WORKER_SECRET, read_token},
    options::{BackendOptions, LendAs, ProcessOptions, WorkerOptions},
    settings::{DRAIN, LOG, data_dir},
    signals::{self, Stop},
    telemetry,
};
use worker::{
    BackendConfig, DemoConfig, Lend, MAX_CONTEXT, Protocol, RoamingDialer, ServerTarget,
    WorkerConfig,
};

use super::{
    farewell,
    found::{Demo, Finder},
    join::{JoinedServer, JoinedServers, lent_to},
    model_engines::WorkerEngines,
    servers::Lookup,
    span_export::SpanExport,
    worker_runtime,
};
use crate::exit::{self, usage};

/// Lend this machine's model servers to a server: without --server to those that it joined by `warren join`, if
/// there are any
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren worker\n  \
    warren worker --models ./models\n  \
    WARREN_SECRET=wk_… warren worker --server https://gpu.example\n  \
    warren worker --backend http://127.0.0.1:8080 --model fast=qwen3-8b")]
pub(crate) struct Worker {
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    process: ProcessOptions,
}

impl Worker {
    pub(crate) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        let process = ServeOptions::from(self.process).or(file.serve);
        let options = self.worker.or(file.worker);
        let format = process.log_format.unwrap_or_default();
        let filter = process.log.clone().unwrap_or_else(|| LOG.to_owned());
        let _log = telemetry::log::start(format, &filter).map_err(usage)?;
        let joined = joined(&options)?;
        worker_runtime()?.block_on(lend(options, process, joined))
    }
}

/// The servers that this machine joined, unless the options name one or a credential.
fn joined(options: &WorkerOptions) -> anyhow::Result<Vec<JoinedServer>> {
    if options.server.is_some() || options.secret.is_some() || protocol(options) != Protocol::Relay
    {
        return Ok(Vec::new());
    }
    // Without a home directory nothing was ever joined.
    JoinedServers::new().map_or_else(|_| Ok(Vec::new()), |joined| joined.all())
}

/// Lends to servers that were joined; if there are none, to those that the options name.
pub(super) async fn lend(
    mut options: WorkerOptions,
    process: ServeOptions,
    joined: Vec<JoinedServer>,
) -> anyhow::Result<()> {
    let stop = signals::stop()?;
    let mut config = WorkerConfig::new(name(&options));
    let dialer = if joined.is_empty() {
        config.servers = servers(&options, &process).map_err(usage)?;
        RoamingDialer::new(Vec::new())
    } else {
        let (targets, dialer) = lent_to(joined)?;
        config.servers = targets;
        dialer
    };
    config.protocol = protocol(&options);
    config.drain_timeout = process.drain_timeout_secs.map_or(DRAIN, |seconds| seconds.0);
    let span_export = SpanExport::start(&process, &mut config)?;
    let worker_engines = worker_engines(&mut options, &process).await.map_err(usage)?;
    config.backends = named_backends(&options).map_err(usage)?;
    clouds(&config.backends).iter().for_each(|words| tracing::warn!("{words}"));
    let is_named = worker_engines.as_ref().is_some_and(WorkerEngines::is_named);
    let looks = !is_named && config.backends.iter().all(Lend::is_cloud);
    config.backends.extend(worker_engines.iter().flat_map(WorkerEngines::lent));
    let ended = match looks {
        true => lend_with_found(config, dialer, &options, worker_engines.as_ref(), &stop).await,
        false => {
            let running = run(worker::Worker::new(config, dialer)?, &stop);
            while_following(worker_engines.as_ref(), running).await
        }
    };
    if let Some(worker_engines) = worker_engines {
        worker_engines.stop().await;
    }
    span_export.end().await;
    ended
}

/// The model engines of this machine; `None` if there is nothing to lend by them.
async fn worker_engines(
    options: &mut WorkerOptions,
    process: &ServeOptions,
) -> anyhow::Result<Option<WorkerEngines>> {
    let directory = data_dir(process.data_dir.clone())?;
    WorkerEngines::start(options, &directory, ENGINES).await
}

/// Follows the folders of models while something else runs.
async fn while_following<T>(
    worker_engines: Option<&WorkerEngines>,
    running: impl Future<Output = T>,
) -> T {
    let Some(worker_engines) = worker_engines else { return running.await };
    tokio::select! {
        ended = running => ended,
        // Following never ends by itself.
        () = worker_engines.follow() => std::future::pending().await,
    }
}

/// Lends also the model servers that are found, which come and go.
async fn lend_with_found(
    config: WorkerConfig,
    dialer: RoamingDialer,
    options: &WorkerOptions,
    worker_engines: Option<&WorkerEngines>,
    stop: &Stop,
) -> anyhow::Result<()> {
    let finder = Finder::new(options, Demo::Never).await;
    if finder.found().is_empty()
        && worker_engines.is_none_or(|worker_engines| worker_engines.offered().is_empty())
    {
        tracing::warn!(
            "no model server was found on this machine, waiting for one: start one (Ollama, \
             llama.cpp, vLLM, LM Studio), name one with --backend URL or a model file with --gguf FILE, \
             or try --demo"
        );
    }
    let worker = worker::Worker::following(config, finder.lent(), dialer)?;
    tokio::select! {
        () = finder.run() => Ok(()),
        ended = while_following(worker_engines, run(worker, stop)) => ended,
    }
}

/// Lends until a stop is asked for, and then shows what the worker waits for.
async fn run(worker: worker::Worker, stop: &Stop) -> anyhow::Result<()> {
    let activity = worker.activity();
    let lending = worker.run(stop.drain().clone());
    let telling = async {
        stop.drain().cancelled().await;
        farewell::worker_stops(activity.in_flight());
        stop.at_once().cancelled().await;
    };
    tokio::select! {
        biased;
        // Dropping the worker cuts off its jobs.
        () = telling => {}
        _ended = lending => {}
    }
    exit::unless_forced(stop)
}

/// The worker's name: the given one, or the host's.
pub(super) fn name(options: &WorkerOptions) -> String {
    let name = options.name.clone().unwrap_or_else(hardware::host_name);
    Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("worker").to_owned()
}

fn protocol(options: &WorkerOptions) -> Protocol {
    match options.protocol.unwrap_or_default() {
        LendAs::Relay => Protocol::Relay,
        LendAs::Node => Protocol::Node,
    }
}

fn servers(options: &WorkerOptions, process: &ServeOptions) -> anyhow::Result<Vec<ServerTarget>> {
    let named = options.server.as_deref().unwrap_or_default();
    let servers = Lookup { named, data_dir: None, config: process }.servers();
    let provider = provider(options)?;
    let secret = secret(options, process)?;
    let target = |url: &String| {
        let target = ServerTarget::new(url, Some(secret.clone()))?;
        Ok(match provider {
            Some(name) => target.under_provider(name),
            None => target,
        })
    };
    servers.urls().iter().map(target).collect()
}

fn provider(options: &WorkerOptions) -> anyhow::Result<Option<&str>> {
    let name = options.provider.as_deref().map(str::trim);
    if name.is_some() && protocol(options) == Protocol::Node {
        bail!("--provider is for relay servers: the node protocol has none, leave it out");
    }
    if name == Some("") {
        bail!("a provider needs a name: write --provider NAME, or leave it out");
    }
    Ok(name)
}

fn secret(options: &WorkerOptions, process: &ServeOptions) -> anyhow::Result<Secret> {
    if let Some(secret) = daemon::settings::secret(options.secret.clone(), "secret")? {
        return Ok(secret);
    }
    if protocol(options) == Protocol::Node {
        bail!("the server's node token is needed: give it with --secret, or as WARREN_SECRET");
    }
    let directory = data_dir(process.data_dir.clone())?;
    read_token(&directory, WORKER_SECRET)?.with_context(|| {
        let shown = directory.join(WORKER_SECRET);
        format!(
            "the server's worker secret is needed: give it with --secret; on the server's machine \
             it is in {}",
            shown.display()
        )
    })
}

/// The backends that the options name: the demo, or model servers; empty if they have to be found.
pub(super) fn named_backends(options: &WorkerOptions) -> anyhow::Result<Vec<Lend>> {
    if options.demo.unwrap_or(false) {
        return Ok(vec![demo(options)]);
    }
    let urls = options.backend.as_deref().unwrap_or_default();
    let flags = urls.iter().map(|url| backend(flag(url, options)));
    let mut flags = flags.collect::<anyhow::Result<Vec<_>>>()?;
    if flags.len() > 1 {
        flags = flags.into_iter().map(only_listed).collect();
    }
    let file = options.backends.iter().flatten().cloned().map(backend);
    file.collect::<anyhow::Result<Vec<_>>>().map(|file| [flags, file].concat())
}

/// A model server that was found.
pub(super) fn found_backend(url: &str, options: &WorkerOptions) -> anyhow::Result<Lend> {
    Ok(only_listed(backend(flag(url, options))?))
}

/// Limits a list of models for several backends to those that each lists itself.
fn only_listed(lend: Lend) -> Lend {
    match lend {
        Lend::Http(config) => Lend::Http(BackendConfig { only_listed: true, ..config }),
        other @ (Lend::Demo(_) | Lend::Engines(_)) => other,
    }
}

/// The built-in demo.
pub(super) fn demo(options: &WorkerOptions) -> Lend {
    let usual = DemoConfig::default();
    Lend::Demo(DemoConfig {
        tokens_per_second: options.demo_pace.unwrap_or(usual.tokens_per_second),
        max_concurrent: options.max_concurrent.unwrap_or(usual.max_concurrent),
    })
}

/// The directory of a worker's model engines in the data directory. A server beside it has its own.
const ENGINES: &str = "worker-engines";

/// The most jobs of a cloud at once, unless the settings say otherwise: it has more than one machine.
const CLOUD_CONCURRENT: u32 = 64;

/// A warning for each cloud: prompts may leave the house.
pub(super) fn clouds(backends: &[Lend]) -> Vec<String> {
    let warning = |lend: &Lend| {
        let Lend::Http(config) = lend else { return None };
        let models = config.models.as_ref().map_or_else(
            || "all models that it has".to_owned(),
            |models| models.iter().map(|it| it.offered.as_str()).collect::<Vec<_>>().join(", "),
        );
        let url = redact_url(&config.url);
        let words = format!(
            "requests for {models} may go to {url} when no machine of your own can answer: their \
             prompts leave the house, and it may cost money"
        );
        config.cloud.then_some(words)
    };
    backends.iter().filter_map(warning).collect()
}

fn flag(url: &str, options: &WorkerOptions) -> BackendOptions {
    BackendOptions {
        url: url.to_owned(),
        api_key: options.api_key.clone(),
        ca: options.backend_ca.clone(),
        models: options.models.clone(),
        max_concurrent: options.max_concurrent,
        context: options.context,
        endpoints: options.endpoints.clone(),
        ..BackendOptions::default()
    }
}

/// A model server as a backend to lend.
pub(super) fn backend(options: BackendOptions) -> anyhow::Result<Lend> {
    let mut config = BackendConfig::new(options.url.clone());
    config.api_key = api_key::of(&options)?;
    config.key_file = options.api_key_file;
    config.cloud = options.cloud.unwrap_or(false);
    if config.cloud && options.models.as_ref().is_none_or(Vec::is_empty) {
        bail!(
            "{} is a cloud, and a cloud has hundreds of models: name those to offer with models = \
             [\"NAME\"], or write models = [\"*\"] for all of them",
            redact_url(&options.url)
        );
    }
    config.ca = options.ca;
    let usual = if config.cloud { CLOUD_CONCURRENT } else { config.max_concurrent };
    config.max_concurrent = options.max_concurrent.unwrap_or(usual).max(1);
    let named = options.models.filter(|models| !models.iter().any(|model| model == "*"));
    let parse = |models: Vec<String>| models.iter().map(|model| model.parse()).collect();
    config.models = named.map(parse).transpose()?;
    config.context = options.context.map(|tokens| context(tokens, &options.url)).transpose()?;
    config.endpoints = options.endpoints.as_deref().map(endpoints).transpose()?;
    config.continues = options.continues;
    Ok(Lend::Http(config))
}

fn context(tokens: u64, url: &str) -> anyhow::Result<u64> {
    if tokens == 0 || tokens > MAX_CONTEXT {
        let url = redact_url(url);
        bail!(
            "context = {tokens} of the backend {url} is no length: write 1 to {MAX_CONTEXT} tokens"
        );
    }
    Ok(tokens)
}

fn endpoints(paths: &[String]) -> anyhow::Result<Endpoints> {
    let any_of = || Endpoints::NATIVE.iter().map(Endpoint::path).collect::<Vec<_>>().join(", ");
    if paths.is_empty() {
        bail!("a backend without endpoints serves nobody: write any of {}, or no list", any_of());
    }
    let endpoint = |path: &String| {
        let known = Endpoint::of_path(path).filter(|known| Endpoints::NATIVE.contains(*known));
        known.with_context(|| {
            format!("{path:?} is no endpoint of a backend: write any of {}", any_of())
        })
    };
    paths.iter().map(endpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_some_tokens() {
        assert_eq!(context(32_768, "http://u:pw@h").unwrap(), 32_768);
        for bad in [0, MAX_CONTEXT + 1] {
            let error = context(bad, "http://u:pw@h").unwrap_err().to_string();
            assert!(error.contains("16777216 tokens") && !error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn endpoints_are_named_by_their_paths() {
        let paths = ["/v1/messages", "/v1/embeddings", "/v1/audio/speech"].map(str::to_owned);
        let list = endpoints(&paths).unwrap();
        let expected = Endpoints::only(Endpoint::Messages).with(Endpoint::Embeddings);
        let expected = expected.with(Endpoint::Speech);
        assert_eq!(list, expected);
        for bad in ["chat", "/api/chat", ""] {
            let error = endpoints(&[bad.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("/v1/chat/completions"), "{error}");
        }
        assert!(endpoints(&[]).unwrap_err().to_string().contains("serves nobody"));
    }

    #[test]
    fn a_provider_needs_a_name_and_the_relay_protocol() {
        let options = WorkerOptions {
            secret: Some("k".into()),
            provider: Some(" gpu ".to_owned()),
            ..WorkerOptions::default()
        };
        let list = servers(&options, &ServeOptions::default()).unwrap();
        assert_eq!(list[0].connect_url().query(), Some("provider=gpu"));
        let empty = WorkerOptions { provider: Some(" ".to_owned()), ..options.clone() };
        let node = WorkerOptions { protocol: Some(LendAs::Node), ..options };
        for (bad, words) in [(empty, "needs a name"), (node, "is for relay servers")] {
            let error = servers(&bad, &ServeOptions::default()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn models_for_several_backends_are_offered_where_they_are_listed() {
        let options = |backend: &[&str]| WorkerOptions {
            backend: Some(backend.iter().map(|&url| url.to_owned()).collect()),
            models: Some(vec!["m".to_owned()]),
            ..WorkerOptions::default()
        };
        let only_listed = |backend: &[&str]| {
            let all = named_backends(&options(backend)).unwrap();
            let listed = all.iter().map(|lend| matches!(lend, Lend::Http(it) if it.only_listed));
            listed.collect::<Vec<_>>()
        };
        assert_eq!(only_listed(&["http://a"]), [false]);
        assert_eq!(only_listed(&["http://a", "http://b"]), [true, true]);
        assert!(named_backends(&WorkerOptions::default()).unwrap().is_empty());
        let found = found_backend("http://a", &options(&[])).unwrap();
        assert!(matches!(found, Lend::Http(it) if it.only_listed));
    }

    #[test]
    fn a_node_needs_its_token() {
        let options = WorkerOptions { protocol: Some(LendAs::Node), ..WorkerOptions::default() };
        let error = servers(&options, &ServeOptions::default()).unwrap_err().to_string();
        assert!(error.contains("node token"), "{error}");
    }
}
