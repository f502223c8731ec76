//! `warren mesh relay`.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use base::NodeId;
use clap::Args;
use daemon::{
    ConfigFile,
    options::{LogFormat, listen_address},
    peering::alone::{RelayOptions, RelayServer},
    settings::{LOG, data_dir},
    signals, telemetry,
};

use crate::{
    commands::{say, server_runtime},
    exit::usage,
};

/// Run a relay, where peers of different networks meet. It sees which nodes are connected and which talk
/// to each other, but cannot read what Warrens say
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh relay --listen 0.0.0.0:9190")]
pub(crate) struct Relay {
    /// Where to listen, such as 0.0.0.0:9190
    #[arg(long, env = "WARREN_LISTEN", value_name = "ADDR:PORT", default_value = "127.0.0.1:9190",
        value_parser = listen_address)]
    listen: SocketAddr,
    /// The only nodes that are admitted, by their ids (repeatable) [default: all]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    members: Vec<NodeId>,
    /// Admit nodes that sign nothing, too
    #[arg(long, env = "WARREN_ACCEPT_UNSIGNED", hide_short_help = true)]
    accept_unsigned: bool,
    /// A host, with its port, by which nodes dial this relay (repeatable); other names are refused, so that
    /// no other relay can pass its nodes off as this one's [default: any]
    #[arg(long, value_name = "HOST", value_delimiter = ',', hide_short_help = true)]
    host: Vec<String>,
    /// Certificate chain, PEM
    #[arg(
        long,
        env = "WARREN_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key",
        hide_short_help = true
    )]
    tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(
        long,
        env = "WARREN_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert",
        hide_short_help = true
    )]
    tls_key: Option<PathBuf>,
    /// The directory of the list of nodes that have answered a challenge [default: $XDG_DATA_HOME/warren;
    /// as root /var/lib/warren]
    #[arg(long, env = "WARREN_DATA_DIR", value_name = "DIR", hide_short_help = true)]
    data_dir: Option<PathBuf>,
    /// How log lines look [default: human]
    #[arg(long, env = "WARREN_LOG_FORMAT", value_name = "FORMAT", hide_short_help = true)]
    log_format: Option<LogFormat>,
    /// What is logged: a level, or a filter such as info,wire=debug [default: info]
    #[arg(long, env = "WARREN_LOG", value_name = "FILTER", hide_short_help = true)]
    log: Option<String>,
}

/// The file of the nodes that have answered a challenge.
const PROOFS: &str = "mesh-relay.proofs";

impl Relay {
    pub(super) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        let format = self.log_format.or(file.serve.log_format).unwrap_or_default();
        let filter = self.log.clone().or(file.serve.log.clone());
        let filter = filter.unwrap_or_else(|| LOG.to_owned());
        let _log = telemetry::log::start(format, &filter).map_err(usage)?;
        let options = self.options(file)?;
        server_runtime()?.block_on(serve(options))
    }

    fn options(self, file: ConfigFile) -> anyhow::Result<RelayOptions> {
        let directory = data_dir(self.data_dir.or(file.serve.data_dir)).map_err(usage)?;
        let made = std::fs::create_dir_all(&directory);
        made.with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(RelayOptions {
            listen: self.listen,
            members: self.members,
            accept_unsigned: self.accept_unsigned,
            hosts: self.host,
            tls: (self.tls_cert, self.tls_key),
            proofs: Some(directory.join(PROOFS)),
        })
    }
}

async fn serve(options: RelayOptions) -> anyhow::Result<()> {
    let stop = signals::shutdown()?;
    let server = RelayServer::start(options).await?;
    say(&format!("listening on {}", server.url()?))?;
    server.run(stop).await;
    Ok(())
}
