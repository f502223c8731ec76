//! Announces the server on the local network by mDNS: always or never, if the settings say so; otherwise while
//! machines that joined or were invited may look for the server.

use std::{io, net::SocketAddr, time::Duration};

use access::{Invitations, Moment};
use discovery::{Advertisement, Advertiser, DiscoveryError, Service, rooms};
use protocol::invitation::ServerId;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{VERSION, settings::Settings};

/// How often expired invitations are looked for.
const LOOK: Duration = Duration::from_secs(60);

/// The announcement of a running server. If it fails, the server runs all the same.
pub(crate) struct Announcement {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl Announcement {
    pub(crate) fn start(
        settings: &Settings,
        address: io::Result<SocketAddr>,
        id: ServerId,
        invitations: Invitations,
    ) -> Self {
        let stop = CancellationToken::new();
        let services = |address: SocketAddr| {
            let tls = settings.tls.is_some();
            rooms(address.port(), VERSION, address.ip(), tls, &id.to_string())
        };
        let address = match address {
            Ok(address) => address,
            Err(error) => {
                tracing::warn!("nobody finds this server by mDNS: {error}");
                return Self { task: None, stop };
            }
        };
        let task = match When::of(settings.mdns, address) {
            When::Never => None,
            When::Always => {
                warn_if_local(address);
                Some(tokio::spawn(always(services(address), stop.clone())))
            }
            When::Expected => {
                let mut services = services(address);
                // The other services are for stock clients of rooms, and announced only with `--mdns`.
                services.retain(|one| one.service == Service::Warren);
                Some(tokio::spawn(while_expected(services, invitations, stop.clone())))
            }
        };
        Self { task, stop }
    }

    /// Takes the announcement back, within 2 s.
    pub(crate) async fn withdraw(self) {
        self.stop.cancel();
        if let Some(task) = self.task {
            // If the task panicked, the announcement has ended with it.
            let _ = task.await;
        }
    }
}

/// When a server is announced.
#[derive(Debug, PartialEq, Eq)]
enum When {
    Always,
    Never,
    /// While machines that joined or were invited may look for it.
    Expected,
}

impl When {
    fn of(setting: Option<bool>, address: SocketAddr) -> Self {
        match setting {
            Some(true) => Self::Always,
            Some(false) => Self::Never,
            // No other machine can have joined a server that only this machine reaches.
            None if address.ip().is_loopback() => Self::Never,
            None => Self::Expected,
        }
    }
}

async fn always(services: Vec<Advertisement>, stop: CancellationToken) {
    let announced = announce(&services);
    stop.cancelled().await;
    withdraw(announced).await;
}

async fn while_expected(
    services: Vec<Advertisement>,
    invitations: Invitations,
    stop: CancellationToken,
) {
    let mut announced = None;
    while !stop.is_cancelled() {
        // Asked for before the look, so that no change between the look and the wait is missed.
        let changed = invitations.changed();
        match (invitations.expects_machines(Moment::now()), &announced) {
            (true, None) => announced = announce(&services),
            (false, Some(_)) => withdraw(announced.take()).await,
            _ => {}
        }
        tokio::select! {
            () = changed => {}
            () = sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
    withdraw(announced).await;
}

fn announce(services: &[Advertisement]) -> Option<Advertiser> {
    match Advertiser::start(services) {
        Ok(advertiser) => {
            tokio::spawn(log_result(advertiser.announced()));
            Some(advertiser)
        }
        Err(error) => {
            tracing::warn!("nobody finds this server by mDNS: {error:#}");
            None
        }
    }
}

async fn withdraw(announced: Option<Advertiser>) {
    if let Some(advertiser) = announced {
        advertiser.stop().await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_reach_is_announced_when_it_is_needed_unless_the_setting_says_otherwise()
    {
        let when = |setting, address: &str| When::of(setting, address.parse().unwrap());
        assert_eq!(when(None, "192.0.2.7:1"), When::Expected);
        assert_eq!(when(None, "127.0.0.1:1"), When::Never);
        assert_eq!(when(Some(false), "192.0.2.7:1"), When::Never);
        assert_eq!(when(Some(true), "127.0.0.1:1"), When::Always);
    }
}
