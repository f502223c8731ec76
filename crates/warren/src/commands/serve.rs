//! `warren serve`: the server.

use clap::Args;
use daemon::{
    ConfigFile, ServeOptions, Server, Settings, configuration::Origins, signals, telemetry,
};

use super::{farewell, say, server_runtime};
use crate::exit::{self, usage};

/// Run the server
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren serve\n  \
    warren serve --listen 0.0.0.0:9178 --require-key")]
pub(crate) struct Serve {
    #[command(flatten)]
    options: ServeOptions,
}

impl Serve {
    pub(crate) fn run(self, file: ConfigFile, origins: &Origins) -> anyhow::Result<()> {
        let options = self.options.or(file.serve);
        let mut settings = Settings::new(options.clone(), false).map_err(usage)?;
        let told = origins.settings("", &options, &settings.values());
        settings.configuration = origins.configuration(told);
        let _log = telemetry::log::start(settings.log_format, &settings.log).map_err(usage)?;
        server_runtime()?.block_on(serve(settings))
    }
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let stop = signals::stop()?;
    if settings.open && !settings.listen.ip().is_loopback() {
        tracing::warn!("OPEN: everybody who reaches {} may use models", settings.listen);
    }
    let server = Server::start(settings).await?;
    say(&format!("listening on {}", server.urls()?.join(" and ")))?;
    say(&format!("the web page is at {}/ (`warren web` signs you in)", server.own_url()?))?;
    server.run(stop.clone(), farewell::server_stops).await?;
    exit::unless_forced(&stop)
}
