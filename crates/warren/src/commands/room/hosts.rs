//! Finds the servers of rooms, by flags, file or mDNS, and the one that has a room.

use std::time::Duration;

use anyhow::{anyhow, bail};
use base::Secret;
use clap::Args;
use client::{ClientError, RoomClient, Warren, room::RoomSummary};
use daemon::{ConfigFile, options::RoomOptions};
use discovery::{BROWSE_FOR, Discovered, Service, browse};
use tokio::{task::JoinHandle, time::timeout};

use super::{room_name::RoomName, tokens::RoomTokens};
use crate::{commands::servers::Lookup, exit::usage};

/// How long a server found by mDNS may take to answer.
const KNOCK: Duration = Duration::from_secs(2);

/// Where rooms are looked for
#[derive(Args)]
pub(crate) struct Hosts {
    #[command(flatten)]
    options: RoomOptions,
}

/// A room on its server.
pub(crate) struct LocatedRoom {
    pub(crate) warren: Warren,
    pub(super) summary: RoomSummary,
}

impl LocatedRoom {
    /// A client of the room, with its password.
    pub(super) fn room(&self, password: Option<&Secret>) -> anyhow::Result<RoomClient> {
        Ok(self.warren.room(&self.summary.room.code, password)?)
    }

    /// The code to say aloud; stock servers have none.
    pub(super) fn code(&self) -> &str {
        let room = &self.summary.room;
        room.spoken_code.as_deref().unwrap_or(&room.code)
    }

    /// All its codes.
    pub(super) fn codes(&self) -> Vec<String> {
        codes(&self.summary)
    }
}

/// All codes of a room.
pub(super) fn codes(summary: &RoomSummary) -> Vec<String> {
    let room = &summary.room;
    let codes = [Some(&room.code), room.spoken_code.as_ref(), room.short_code.as_ref()];
    codes.into_iter().flatten().cloned().collect()
}

impl Hosts {
    /// The servers to search. `all` adds those on which this machine has rooms and those of the local network.
    /// Connects only to servers that mDNS has found.
    pub(super) async fn servers(
        &self,
        file: &ConfigFile,
        all: bool,
    ) -> anyhow::Result<Vec<Warren>> {
        let options = self.given(file);
        let mut urls = options.server.clone().unwrap_or_default();
        if all {
            urls.extend(RoomTokens::new()?.servers(None)?);
        }
        let looks = all || options.mdns == Some(true);
        if urls.is_empty() && (all || !looks) {
            let servers = Lookup { named: &[], data_dir: None, config: &file.serve }.servers();
            if !all {
                servers.check()?;
            }
            urls.extend_from_slice(servers.urls());
        }
        let mut servers = connect(&urls, options.token.as_ref())?;
        if looks {
            servers.extend(on_the_network().await?);
        }
        once_each(&mut servers);
        if servers.is_empty() {
            bail!(ClientError::Unreachable {
                url: "on the local network".to_owned(),
                reason: "mDNS found none".to_owned(),
            });
        }
        Ok(servers)
    }

    /// The only server, or an error if there are several.
    pub(super) async fn only(&self, file: &ConfigFile) -> anyhow::Result<Warren> {
        let mut servers = self.servers(file, false).await?;
        if servers.len() > 1 {
            let urls: Vec<String> = servers.iter().map(Warren::url).collect();
            return Err(usage(anyhow!("name one server of {} with --server", urls.join(", "))));
        }
        // The check above has shown that there is a server.
        Ok(servers.remove(0))
    }

    /// Looks for rooms as these options say.
    pub(crate) const fn on(options: RoomOptions) -> Self {
        Self { options }
    }

    /// Finds the server of a room.
    pub(crate) async fn find(
        &self,
        file: &ConfigFile,
        name: &RoomName,
    ) -> anyhow::Result<LocatedRoom> {
        let servers = self.candidates(file, name).await?;
        let questions = servers.iter().map(|warren| ask(warren.clone(), name.code.clone()));
        let questions: Vec<JoinHandle<_>> = questions.map(tokio::spawn).collect();
        let mut failed = Vec::new();
        for (warren, answer) in servers.into_iter().zip(questions) {
            match answer.await? {
                Ok(summary) => return Ok(LocatedRoom { warren, summary }),
                Err(error) => failed.push((warren.url(), error)),
            }
        }
        Err(not_found_error(&name.code, failed))
    }

    async fn candidates(&self, file: &ConfigFile, name: &RoomName) -> anyhow::Result<Vec<Warren>> {
        if let Some(url) = &name.server {
            let warren = Warren::pinned(url, None, name.pin);
            return Ok(vec![warren.map_err(|error| usage(error.into()))?]);
        }
        let options = self.given(file);
        let is_open = options.server.is_none() && options.mdns != Some(true);
        let others = self.servers(file, false).await;
        if !is_open {
            return others;
        }
        // The servers on which this machine made or joined rooms come first. If there are any, no server need
        // run on this machine.
        let known = RoomTokens::new().and_then(|tokens| tokens.servers(Some(&name.code)));
        let mut servers = connect(&known.unwrap_or_default(), None)?;
        match others {
            Ok(mut others) => servers.append(&mut others),
            Err(error) if servers.is_empty() => return Err(error),
            Err(_) => {}
        }
        once_each(&mut servers);
        Ok(servers)
    }

    /// The server's key, if one is given.
    pub(super) fn token(&self, file: &ConfigFile) -> Option<Secret> {
        self.given(file).token
    }

    /// The options, filled in from the file.
    fn given(&self, file: &ConfigFile) -> RoomOptions {
        self.options.clone().or(file.room.clone())
    }
}

fn connect(urls: &[String], token: Option<&Secret>) -> anyhow::Result<Vec<Warren>> {
    let connect = |url: &String| Warren::new(url, token).map_err(|error| usage(error.into()));
    urls.iter().map(connect).collect()
}

fn once_each(servers: &mut Vec<Warren>) {
    let mut known = std::collections::HashSet::new();
    servers.retain(|server| known.insert(server.url()));
}

async fn ask(warren: Warren, code: String) -> Result<RoomSummary, ClientError> {
    // The summary needs no password, and a wrong server must not see it.
    warren.room(&code, None)?.summary().await
}

/// The error for a room that no server has.
fn not_found_error(code: &str, mut failed: Vec<(String, ClientError)>) -> anyhow::Error {
    if failed.len() == 1 {
        return failed.remove(0).1.into();
    }
    let (missing, other): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(_, error)| error.is_not_found());
    if missing.is_empty() {
        let all: Vec<String> = other.iter().map(|(_, error)| error.to_string()).collect();
        let first = other.into_iter().next().map(|(_, error)| anyhow::Error::from(error));
        return first.unwrap_or_else(|| anyhow!("no server was asked")).context(all.join("; "));
    }
    let urls: Vec<&str> = missing.iter().map(|(url, _)| url.as_str()).collect();
    let mut words = format!("there is no room {code} on {}", urls.join(", "));
    for (url, error) in other {
        words.push_str(&format!("; {url} could not be asked: {error}"));
    }
    ClientError::NotFound { words }.into()
}

/// The servers that mDNS finds and that answer. They get no token: anybody on the network can announce a server.
async fn on_the_network() -> anyhow::Result<Vec<Warren>> {
    let found = browse(&[Service::Warren, Service::Gambi], BROWSE_FOR).await?;
    let servers = found.into_iter().filter(|found| !found.is_mesh());
    let knocks = servers.map(|found| tokio::spawn(knock(found)));
    let knocks: Vec<JoinHandle<_>> = knocks.collect();
    let mut servers = Vec::new();
    for knock in knocks {
        servers.extend(knock.await?);
    }
    Ok(servers)
}

/// The server at the first of its addresses that answers.
async fn knock(found: Discovered) -> Option<Warren> {
    for url in found.urls() {
        let warren = Warren::new(&url, None).ok()?;
        if let Ok(Ok(_)) = timeout(KNOCK, warren.rooms_health()).await {
            return Some(warren);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_found() -> ClientError {
        ClientError::NotFound { words: "Room not found.".to_owned() }
    }

    fn unreachable() -> ClientError {
        ClientError::Unreachable { url: "http://b".to_owned(), reason: "refused".to_owned() }
    }

    fn report(failed: &[(&str, ClientError)]) -> (String, bool) {
        let failed = failed.iter().map(|(url, error)| ((*url).to_owned(), error.clone()));
        let error = not_found_error("swift-eagle-42", failed.collect());
        let found = error.downcast_ref::<ClientError>().is_some_and(ClientError::is_not_found);
        (format!("{error:#}"), found)
    }

    #[test]
    fn a_missing_room_is_reported_with_the_servers() {
        assert_eq!(report(&[("http://a", not_found())]), ("Room not found.".to_owned(), true));
        let (words, missing) = report(&[("http://a", not_found()), ("http://b", unreachable())]);
        assert!(missing && words.contains("swift-eagle-42 on http://a;"), "{words}");
        assert!(words.contains("http://b could not be asked"), "{words}");
        let (words, missing) = report(&[("http://a", unreachable()), ("http://b", unreachable())]);
        assert!(!missing && words.contains("could not reach"), "{words}");
    }

    #[test]
    fn a_server_is_asked_once() {
        let urls = ["http://a", "http://b/", "http://a/"].map(str::to_owned);
        let mut servers = connect(&urls, None).unwrap();
        once_each(&mut servers);
        let urls: Vec<String> = servers.iter().map(Warren::url).collect();
        assert_eq!(urls, ["http://a", "http://b"]);
    }
}
