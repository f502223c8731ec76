//! The present places of joined servers: the last ones, or those that mDNS finds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base::Secret;
use client::{ClientError, Warren, invitation::ServerId};
use discovery::{BROWSE_FOR, Service, browse};
use url::Url;
use worker::{RoamingDialer, ServerTarget, Whereabouts, roaming::BoxFuture};

use super::joined::{JoinedServer, JoinedServers};

/// The longest time of an attempt at one address.
pub(super) const ATTEMPT: Duration = Duration::from_secs(8);
/// The most addresses of mDNS that are tried: anybody can claim to be the server.
const MOST_FOUND: usize = 16;

/// The joined servers as targets of a worker, and a dialer that finds them.
pub(crate) fn lent_to(
    joined: Vec<JoinedServer>,
) -> anyhow::Result<(Vec<ServerTarget>, RoamingDialer)> {
    let all = JoinedServers::new()?;
    let mut targets = Vec::new();
    let mut places: Vec<(Url, Arc<dyn Whereabouts>)> = Vec::new();
    for server in joined {
        let urls = server.urls.iter().filter_map(|url| Url::parse(url).ok()).collect::<Vec<_>>();
        let Some(first) = urls.first().cloned() else { continue };
        let secret = Secret::from(server.key.as_str());
        let target = ServerTarget::new(first.as_str(), Some(secret))?.pinned(server.fingerprint);
        targets.push(target);
        let urls = Mutex::new(urls);
        places.push((first, Arc::new(JoinedPlace { server, joined_servers: all.clone(), urls })));
    }
    Ok((targets, RoamingDialer::new(places)))
}

/// Whether an attempt at an address failed because the server is not there: another address may have it.
pub(super) fn is_elsewhere(error: &ClientError) -> bool {
    let is_another = matches!(
        error,
        ClientError::NotTheServer { .. }
            | ClientError::NoWarren { .. }
            | ClientError::NoRooms { .. }
    );
    error.is_unreachable() || is_another
}

/// The URLs under which mDNS finds a server with this id, with TLS or without. Anybody can claim the id.
pub(super) async fn announced(id: ServerId, secure: bool) -> Vec<String> {
    let id = id.to_string();
    let scheme = if secure { "https://" } else { "http://" };
    let found = match browse(&[Service::Warren], BROWSE_FOR).await {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!("the server was not looked for: {error}");
            return Vec::new();
        }
    };
    let is_it = found.into_iter().filter(|found| found.server_id() == Some(&*id));
    let urls = is_it.flat_map(|found| found.urls()).filter(|url| url.starts_with(scheme));
    urls.take(MOST_FOUND).collect()
}

/// The places of one server.
struct JoinedPlace {
    server: JoinedServer,
    joined_servers: JoinedServers,
    /// The URLs, the latest first.
    urls: Mutex<Vec<Url>>,
}

impl Whereabouts for JoinedPlace {
    fn known(&self) -> Vec<Url> {
        self.urls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn search(&self) -> BoxFuture<'_, Vec<Url>> {
        Box::pin(async {
            let found = announced(self.server.id, self.server.fingerprint.is_some()).await;
            found.iter().filter_map(|url| Url::parse(url).ok()).collect()
        })
    }

    fn check<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let server = Warren::pinned(url.as_str(), None, self.server.fingerprint);
            let server = server.map_err(|error| error.to_string())?;
            let key = Secret::from(self.server.key.as_str());
            server.check(&self.server.key_id, &key).await.map_err(|error| error.to_string())
        })
    }

    fn reached<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.known().first() == Some(url) {
                return;
            }
            {
                let mut urls = self.urls.lock().unwrap_or_else(PoisonError::into_inner);
                urls.retain(|known| known != url);
                urls.insert(0, url.clone());
            }
            let shown = url.as_str().trim_end_matches('/');
            tracing::info!("{} is at {shown} now", base::plain::line(&self.server.name));
            if let Err(error) = self.joined_servers.reached(self.server.id, shown).await {
                tracing::warn!("the server's new address is not remembered: {error:#}");
            }
        })
    }
}
