//! Announces the server on the local network by mDNS, if the settings say so.

use std::{io, net::SocketAddr};

use discovery::{Advertiser, DiscoveryError, rooms};

use crate::{VERSION, settings::Settings};

/// The announcement while the server runs. If it fails, the server serves all the same.
pub(crate) struct Announcement(Option<Advertiser>);

impl Announcement {
    pub(crate) fn start(settings: &Settings, address: io::Result<SocketAddr>) -> Self {
        if !settings.mdns {
            return Self(None);
        }
        let started = address.map_err(anyhow::Error::from).and_then(|address| {
            warn_if_local(address);
            let services = rooms(address.port(), VERSION, address.ip(), settings.tls.is_some());
            Ok(Advertiser::start(&services)?)
        });
        match started {
            Ok(advertiser) => {
                tokio::spawn(log_result(advertiser.announced()));
                Self(Some(advertiser))
            }
            Err(error) => {
                tracing::warn!("nobody finds this server by mDNS: {error:#}");
                Self(None)
            }
        }
    }

    /// Takes the announcement back, within 2 s.
    pub(crate) async fn withdraw(self) {
        if let Some(advertiser) = self.0 {
            advertiser.stop().await;
        }
    }
}

fn warn_if_local(address: SocketAddr) {
    if address.ip().is_loopback() {
        tracing::warn!(
            "--mdns: other machines cannot reach {address}, so they are not told of it; listen \
             elsewhere with --listen"
        );
    }
}

/// Logs the result of the announcement.
async fn log_result(announced: impl Future<Output = Result<(), DiscoveryError>>) {
    match announced.await {
        Ok(()) => tracing::info!("announced by mDNS"),
        Err(DiscoveryError::Stopped) => {}
        Err(error) => tracing::warn!(%error, "nobody may find this server by mDNS"),
    }
}
