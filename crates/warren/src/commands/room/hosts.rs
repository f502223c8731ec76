//! The servers of rooms: as named, as the file says, or as found on the local network; and on which of
//! them a room is.

use std::time::Duration;

use anyhow::{anyhow, bail};
use base::Secret;
use clap::Args;
use client::{ClientError, RoomClient, Warren, room::RoomSummary};
use daemon::{ConfigFile, options::RoomOptions};
use discovery::{BROWSE_FOR, Discovered, Service, browse};
use tokio::{task::JoinHandle, time::timeout};

use super::{kept::Kept, place::Place};
use crate::{commands::target::DEFAULT_SERVER, exit::usage};

/// How long a server that was found by mDNS may take to show that it is one.
const KNOCK: Duration = Duration::from_secs(2);

/// Where rooms are looked for
#[derive(Args)]
pub(super) struct Hosts {
    #[command(flatten)]
    options: RoomOptions,
}

/// A room, and the server that it is on.
pub(super) struct Found {
    /// The server.
    pub(super) warren: Warren,
    /// The room.
    pub(super) summary: RoomSummary,
}

impl Found {
    /// The room, shown its password.
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
    /// The servers to ask. With `all`, those on which this machine has rooms and those of the local
    /// network, too. Connects to nothing yet, but to what mDNS has found.
    pub(super) async fn servers(
        &self,
        file: &ConfigFile,
        all: bool,
    ) -> anyhow::Result<Vec<Warren>> {
        let said = self.said(file);
        let mut urls = said.server.clone().unwrap_or_default();
        if all {
            urls.extend(Kept::new()?.servers(None)?);
        }
        let looks = all || said.mdns == Some(true);
        if urls.is_empty() && (all || !looks) {
            urls.push(DEFAULT_SERVER.to_owned());
        }
        let mut servers = connect(&urls, said.token.as_ref())?;
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

    /// The one server that something is to be done on.
    pub(super) async fn only(&self, file: &ConfigFile) -> anyhow::Result<Warren> {
        let mut servers = self.servers(file, false).await?;
        if servers.len() > 1 {
            let urls: Vec<String> = servers.iter().map(Warren::url).collect();
            return Err(usage(anyhow!("name one server of {} with --server", urls.join(", "))));
        }
        // There is at least one.
        Ok(servers.remove(0))
    }

    /// The server that has a room, and what it says about it.
    pub(super) async fn find(&self, file: &ConfigFile, place: &Place) -> anyhow::Result<Found> {
        let servers = self.that_may_have(file, place).await?;
        let asked = servers.iter().map(|warren| ask(warren.clone(), place.code.clone()));
        let asked: Vec<JoinHandle<_>> = asked.map(tokio::spawn).collect();
        let mut failed = Vec::new();
        for (warren, answer) in servers.into_iter().zip(asked) {
            match answer.await? {
                Ok(summary) => return Ok(Found { warren, summary }),
                Err(error) => failed.push((warren.url(), error)),
            }
        }
        Err(nowhere(&place.code, failed))
    }

    async fn that_may_have(&self, file: &ConfigFile, place: &Place) -> anyhow::Result<Vec<Warren>> {
        if let Some(url) = &place.server {
            return connect(std::slice::from_ref(url), None);
        }
        let said = self.said(file);
        let unsaid = said.server.is_none() && said.mdns != Some(true);
        let mut servers = self.servers(file, false).await?;
        if unsaid {
            // A room that was made or joined from here is remembered with its server.
            let known = Kept::new().and_then(|kept| kept.servers(Some(&place.code)));
            let mut first = connect(&known.unwrap_or_default(), None)?;
            first.append(&mut servers);
            servers = first;
            once_each(&mut servers);
        }
        Ok(servers)
    }

    /// The key of the server that was given.
    pub(super) fn token(&self, file: &ConfigFile) -> Option<Secret> {
        self.said(file).token
    }

    /// What was said here, and where nothing was, what the file says.
    fn said(&self, file: &ConfigFile) -> RoomOptions {
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
    // A summary is shown to whoever knows the code; other servers need not see the password.
    warren.room(&code, None)?.summary().await
}

/// Why a room was not found.
fn nowhere(code: &str, mut failed: Vec<(String, ClientError)>) -> anyhow::Error {
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

/// The servers that mDNS finds and that answer. Strangers say where they are: they are shown no token.
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

/// The first of a server's addresses at which it keeps rooms.
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

    fn told(failed: &[(&str, ClientError)]) -> (String, bool) {
        let failed = failed.iter().map(|(url, error)| ((*url).to_owned(), error.clone()));
        let error = nowhere("swift-eagle-42", failed.collect());
        let found = error.downcast_ref::<ClientError>().is_some_and(ClientError::is_not_found);
        (format!("{error:#}"), found)
    }

    #[test]
    fn a_room_that_is_nowhere_is_told_with_the_servers_that_were_asked() {
        assert_eq!(told(&[("http://a", not_found())]), ("Room not found.".to_owned(), true));
        let (words, missing) = told(&[("http://a", not_found()), ("http://b", unreachable())]);
        assert!(missing && words.contains("swift-eagle-42 on http://a;"), "{words}");
        assert!(words.contains("http://b could not be asked"), "{words}");
        let (words, missing) = told(&[("http://a", unreachable()), ("http://b", unreachable())]);
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
