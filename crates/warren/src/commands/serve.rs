//! `warren serve`: the server.

use clap::Args;
use daemon::{
    ConfigFile, ServeOptions, Server, Settings, configuration::Origins, reload::Source, signals,
    telemetry,
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
        let settings = settings_of(&self.options, &file, origins).map_err(usage)?;
        let _log = telemetry::log::start(settings.log_format, &settings.log).map_err(usage)?;
        let origins = origins.clone();
        let source = move || {
            let file = file.read_again()?;
            settings_of(&self.options, &file, &origins.with_file(&file))
        };
        server_runtime()?.block_on(serve(settings, Box::new(source)))
    }
}

fn settings_of(
    flags: &ServeOptions,
    file: &ConfigFile,
    origins: &Origins,
) -> anyhow::Result<Settings> {
    let options = flags.clone().or(file.serve.clone());
    let read = Settings::new(options.clone(), false);
    let mut settings = read.map_err(|error| file.locate(error))?;
    let given = origins.settings("", &options, &settings.values());
    settings.configuration = origins.configuration(given);
    Ok(settings)
}

async fn serve(settings: Settings, source: Source) -> anyhow::Result<()> {
    let stop = signals::stop()?;
    if settings.open && !settings.listen.ip().is_loopback() {
        tracing::warn!("OPEN: everybody who reaches {} may use models", settings.listen);
    }
    let server = Server::start(settings).await?.reloaded_from(source)?;
    say(&format!("listening on {}", server.urls()?.join(" and ")))?;
    say(&format!("the web page is at {}/ (`warren web` signs you in)", server.own_url()?))?;
    server.run(stop.clone(), farewell::server_stops).await?;
    exit::unless_forced(&stop)
}
