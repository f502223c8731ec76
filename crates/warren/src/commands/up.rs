//! `warren up`: a server, and a worker over every model server found on this machine.

use std::{sync::Arc, time::Duration};

use clap::Args;
use daemon::{
    ConfigFile, ServeOptions, Server, Settings, options::WorkerOptions, signals, telemetry,
};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use worker::{DEMO_MODEL, Event, Lend, PipeDialer, ServerTarget, WorkerConfig};

use super::{farewell, say, server_runtime, worker as lending};
use crate::exit::{self, usage};

/// Start here
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren up\n  \
    warren up --demo\n  \
    warren up --listen 0.0.0.0:9178 --require-key")]
pub(crate) struct Up {
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    serve: ServeOptions,
}

impl Up {
    pub(crate) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        let serve = self.serve.or(file.serve);
        // A newcomer should see the example, not log lines; `warren logs` shows all.
        let shown = if serve.log.is_none() { Level::WARN } else { Level::TRACE };
        let settings = Settings::new(serve, true).map_err(usage)?;
        let log = telemetry::log::start_showing(settings.log_format, &settings.log, shown);
        let _log = log.map_err(usage)?;
        server_runtime()?.block_on(up(settings, self.worker.or(file.worker)))
    }
}

async fn up(settings: Settings, options: WorkerOptions) -> anyhow::Result<()> {
    let stop = signals::stop()?;
    let drain = settings.drain;
    let server = Server::start(settings).await?;
    let urls = server.urls()?;
    let url = urls.first().cloned().unwrap_or_default();
    let config = config(&url, &options, drain).await?;
    let greeting = greeting(&url, &server, &config.backends);
    let clouds = lending::clouds(&config.backends);
    let worker = worker(config, &server)?;
    // The worker must outlive the drain: it serves the requests in flight.
    let lending = CancellationToken::new();
    let worker = tokio::spawn(worker.run(lending.clone()));
    say(&format!("listening on {}", urls.join(" and ")))?;
    say(&greeting)?;
    for words in clouds {
        say(&format!("Note: {words}."))?;
    }
    let served = server.run(stop.clone(), farewell::server_stops).await;
    lending.cancel();
    worker.await?;
    served?;
    exit::unless_forced(&stop)
}

async fn config(
    url: &str,
    options: &WorkerOptions,
    drain: Duration,
) -> anyhow::Result<WorkerConfig> {
    let mut config = WorkerConfig::new(lending::name(options));
    config.servers = vec![ServerTarget::new(url, None)?];
    config.backends = lending::backends(options).await.map_err(usage)?;
    if config.backends.is_empty() {
        config.backends.push(lending::demo(options));
    }
    config.drain_timeout = drain;
    Ok(config)
}

/// A worker whose links are pipes to the server of this process.
fn worker(config: WorkerConfig, server: &Server) -> anyhow::Result<worker::Worker> {
    let links = server.workers();
    let dialer = PipeDialer::new(move |link, outbox| {
        let links = links.clone();
        tokio::spawn(async move { links.serve(link, outbox, true).await });
    });
    let tell = Arc::new(|event: &Event| {
        if let Event::Models { backend, models } = event {
            // A closed standard output is no reason to stop serving.
            let _ = say(&format!("{backend} offers {}", models.join(", ")));
        }
    });
    Ok(worker::Worker::new(config, dialer)?.observed_by(tell))
}

fn greeting(url: &str, server: &Server, backends: &[Lend]) -> String {
    let key = server.client_token().map_or("", |key| key.expose());
    let secret = server.worker_secret().expose();
    let demo = backends.iter().any(|backend| matches!(backend, Lend::Demo(_)));
    let model = if demo { DEMO_MODEL } else { "MODEL" };
    let note = if demo {
        "No model server was found on this machine, so the built-in demo answers. It is no model:\n\
         it tells about Warren. Start Ollama, llama.cpp, vLLM or LM Studio, then Warren again.\n"
    } else {
        "Put one of the models listed below in place of MODEL.\n"
    };
    let invitation = invitation(server);
    format!(
        "\nWarren is up. {note}\n\
         Ask it something:\n\n  \
           curl -N {url}/v1/chat/completions -H 'content-type: application/json' \\\n    \
             -d '{{\"model\":\"{model}\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"What is Warren?\"}}]}}'\n\n\
         Any OpenAI client works: base URL {url}/v1, any key on this machine.\n\
         For other machines, start with --listen 0.0.0.0:9178 and give them\n  \
           the key       {key}\n  \
           or, to lend their models, the worker secret\n                \
             {secret}\n  \
           or make a room to share models in: warren room create\n\
         {invitation}\n"
    )
}

/// How another machine joins in one line.
fn invitation(server: &Server) -> String {
    match server.invite() {
        Ok(Some(code)) => format!("On another machine: warren join {}", code.expose()),
        Ok(None) => {
            "To let a machine join in one line: --listen 0.0.0.0:9178, then `warren invite`."
                .to_owned()
        }
        Err(error) => format!("No machine was invited: {error}"),
    }
}
