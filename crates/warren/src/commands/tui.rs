//! `warren tui`.

use std::{path::PathBuf, time::Duration};

use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{
    ConfigFile,
    data::{ADMIN_TOKEN, read_token},
    options::RoomOptions,
    settings::data_dir,
    signals,
};
use tokio::time::timeout;
use tui::{Settings, TuiError};

use super::{
    room::{hosts::Hosts, room_name::RoomName},
    target::DEFAULT_SERVER,
    worker_runtime,
};
use crate::exit::usage;

/// How long the server of a room is looked for.
const FOUND_WITHIN: Duration = Duration::from_secs(3);

/// Watch servers, rooms, requests and workspaces live, and ask models
#[derive(Args)]
pub(crate) struct Tui {
    /// A server; of several, s goes to the next (repeatable) [default: http://127.0.0.1:9178]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',')]
    server: Vec<String>,
    ///     /// The administrator's token, or a key; without it less is shown [default: for a server on this
    /// machine, admin.token in the data directory]
    #[arg(long, env = "WARREN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A room to open at once, by its code or URL. Without --server, the servers are asked first on which this
    /// machine has made or joined a room of this code
    #[arg(long, value_name = "CODE")]
    room: Option<String>,
    /// That room's password
    #[arg(long, env = "WARREN_ROOM_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
    /// Draw without colours, as with the environment's NO_COLOR
    #[arg(long)]
    no_color: bool,
}

impl Tui {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut servers = self.servers(file)?;
        let colour = !self.no_color && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
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

    /// The code of the room to open. The server that has it comes first. A room that is not found is looked
    /// for on the first server, as the interface will say.
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

    fn servers(&self, file: &ConfigFile) -> anyhow::Result<Vec<Warren>> {
        let urls = match (self.server.as_slice(), file.room.server.as_deref()) {
            ([], None | Some([])) => std::slice::from_ref(&*DEFAULT_SERVER),
            ([], Some(urls)) | (urls, _) => urls,
        };
        urls.iter().map(|url| self.warren(url, file)).collect()
    }

    fn warren(&self, url: &str, file: &ConfigFile) -> anyhow::Result<Warren> {
        let given = self.token.as_ref().or(file.room.token.as_ref());
        let warren = connect(url, given)?;
        match self.admin_token(file).filter(|_| given.is_none() && warren.is_on_this_machine()) {
            Some(token) => connect(url, Some(&token)),
            None => Ok(warren),
        }
    }

    ///     /// The administrator's token in this machine's data directory. A user who cannot read it is no
    /// administrator, and sees the rest.
    fn admin_token(&self, file: &ConfigFile) -> Option<Secret> {
        if let Some(token) = &file.serve.admin_token {
            return Some(token.clone());
        }
        let given = self.data_dir.clone();
        let given = given.or_else(|| std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from));
        let directory = data_dir(given.or_else(|| file.serve.data_dir.clone())).ok()?;
        read_token(&directory, ADMIN_TOKEN).ok().flatten()
    }
}

fn connect(url: &str, token: Option<&Secret>) -> anyhow::Result<Warren> {
    Warren::new(url, token).map_err(|error| usage(error.into()))
}
