//! `warren tui`.

use std::{
    io::{IsTerminal, stdin, stdout},
    path::PathBuf,
    time::Duration,
};

use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{ConfigFile, ServerFile, options::RoomOptions, signals};
use tokio::time::timeout;
use tui::{Settings, TuiError};

use super::{
    has_colour,
    room::{hosts::Hosts, room_name::RoomName},
    servers::Lookup,
    worker_runtime,
};
use crate::exit::usage;

/// The longest search for the server of a room.
const FOUND_WITHIN: Duration = Duration::from_secs(3);

/// Watch servers, rooms, requests, workspaces, peers and usage live, ask models, and manage keys
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren tui\n  \
    warren tui --room swift-eagle-42")]
pub(crate) struct Tui {
    /// A server; of several, s goes to the next (repeatable) [default: the one that runs here]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',')]
    server: Vec<String>,
    /// The administrator's token, or a key; without it less is shown [default: for a server on this
    /// machine, admin.token in the data directory]
    #[arg(
        long,
        env = "WARREN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        hide_short_help = true
    )]
    token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    data_dir: Option<PathBuf>,
    /// A room to open at once, by its code or URL. Without --server, the servers are asked first on which this
    /// machine has made or joined a room of this code
    #[arg(long, value_name = "CODE")]
    room: Option<String>,
    /// That room's password
    #[arg(long, env = "WARREN_ROOM_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
    /// Draw without colours, as with the environment's NO_COLOR
    #[arg(long, hide_short_help = true)]
    no_color: bool,
}

impl Tui {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(usage(TuiError::NoTerminal.into()));
        }
        let mut servers = self.servers(file)?;
        let colour = !self.no_color && has_colour();
        worker_runtime()?.block_on(async {
            let stop = signals::shutdown()?;
            let room = self.find_room(file, &mut servers).await;
            let settings =
                Settings { room, password: self.password.clone(), colour, ..Settings::default() };
            match tui::run(servers, settings, stop.cancelled()).await {
                Err(error @ TuiError::NoTerminal) => Err(usage(error.into())),
                ended => Ok(ended?),
            }
        })
    }

    /// The code of the room to open. The server that has it comes first. A room that is not found is opened
    /// on the first server, and the interface says that it is not there.
    async fn find_room(&self, file: &ConfigFile, servers: &mut Vec<Warren>) -> Option<String> {
        let name: RoomName = match self.room.as_deref()?.parse() {
            Ok(name) => name,
            Err(_) => return self.room.clone(),
        };
        let server = (!self.server.is_empty()).then(|| self.server.clone());
        let options = RoomOptions { server, token: self.token.clone(), ..RoomOptions::default() };
        let found = timeout(FOUND_WITHIN, Hosts::on(options).find(file, &name)).await;
        let url = match found {
            Ok(Ok(found)) => Some(found.warren.url()),
            _ => name.server,
        };
        if let Some(url) = url {
            self.put_first(&url, file, servers);
        }
        Some(name.code)
    }

    /// Puts a server first. One that nobody has named here gets no token, unless it is on this machine.
    fn put_first(&self, url: &str, file: &ConfigFile, servers: &mut Vec<Warren>) {
        let known = servers.iter().position(|server| server.url() == url);
        let warren = match known {
            Some(at) => servers.remove(at),
            None => match connect(url, None) {
                Ok(bare) if bare.is_on_this_machine() => self.warren(url, file).unwrap_or(bare),
                Ok(bare) => bare,
                Err(_) => return,
            },
        };
        servers.insert(0, warren);
    }

    /// The servers. If there is a room to open, none need run here: another server may be found that has the room.
    fn servers(&self, file: &ConfigFile) -> anyhow::Result<Vec<Warren>> {
        let servers = self.lookup(file).servers();
        if self.room.is_none() {
            servers.check()?;
        }
        servers.urls().iter().map(|url| self.warren(url, file)).collect()
    }

    fn lookup<'a>(&'a self, file: &'a ConfigFile) -> Lookup<'a> {
        let configured = file.room.server.as_deref().unwrap_or_default();
        let named = if self.server.is_empty() { configured } else { &self.server };
        Lookup { named, data_dir: self.data_dir.as_ref(), config: &file.serve }
    }

    /// A server with the token that was given, or else with the administrator's token of this machine. A user
    /// who cannot read that token is no administrator, and sees less.
    fn warren(&self, url: &str, file: &ConfigFile) -> anyhow::Result<Warren> {
        let given = self.token.as_ref().or(file.room.token.as_ref());
        let warren = connect(url, given)?;
        let lookup = self.lookup(file);
        let is_running = |of: &ServerFile| of.urls.iter().any(|own| own == url);
        let is_ours =
            warren.is_on_this_machine() || lookup.running().as_ref().is_some_and(is_running);
        match lookup.admin_token().ok().flatten().filter(|_| given.is_none() && is_ours) {
            Some(token) => connect(url, Some(&token)),
            None => Ok(warren),
        }
    }
}

fn connect(url: &str, token: Option<&Secret>) -> anyhow::Result<Warren> {
    Warren::new(url, token).map_err(|error| usage(error.into()))
}
