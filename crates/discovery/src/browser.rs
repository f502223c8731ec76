//! The announcements of others.

use std::time::Duration;

use futures_util::{
    StreamExt,
    stream::{BoxStream, SelectAll, select_all},
};
use mdns_sd::ServiceEvent;
use tokio::time::{Instant, timeout_at};

use crate::{
    Discovered, DiscoveryError, Reach, Service,
    found::{Findings, instance},
    running::Running,
};

/// How long stock clients browse, and so how long everybody expects to wait.
pub const BROWSE_FOR: Duration = Duration::from_millis(1_500);

/// The longest browsing: whatever strangers say is kept as long as it lasts.
const LONGEST: Duration = Duration::from_secs(60);

/// A change that a [`Browser`] has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// A service is there, or there is news of one.
    Found(Discovered),
    /// A service was withdrawn.
    Gone {
        /// Its kind.
        service: Service,
        /// Its name.
        instance: String,
    },
}

/// The announcements of others, as they come. Dropping it ends the browsing.
pub struct Browser {
    events: SelectAll<BoxStream<'static, (Service, ServiceEvent)>>,
    until: Instant,
    /// Ends when this is dropped.
    _running: Running,
}

impl Browser {
    /// Asks for `services` and listens for as long as `for_how_long`, at most a minute.
    ///
    /// # Errors
    /// When mDNS cannot be started.
    pub fn start(
        services: &[Service],
        reach: Reach,
        for_how_long: Duration,
    ) -> Result<Self, DiscoveryError> {
        let running = Running::start(reach.interfaces())?;
        let ask = |service: &Service| {
            let service = *service;
            let events = running.browse(service.name())?.into_stream();
            Ok(events.map(move |event| (service, event)).boxed())
        };
        let browsers: Result<Vec<_>, _> = services.iter().map(ask).collect();
        let events = select_all(browsers.map_err(|error| DiscoveryError::start(&error))?);
        let until = Instant::now() + for_how_long.min(LONGEST);
        Ok(Self { events, until, _running: running })
    }

    /// The next sighting; `None` when the time is over, or when mDNS gave up because of too many answers.
    pub async fn next(&mut self) -> Option<Sighting> {
        loop {
            let (service, event) = timeout_at(self.until, self.events.next()).await.ok()??;
            if let Some(sighting) = sighting(service, &event) {
                return Some(sighting);
            }
        }
    }
}

fn sighting(service: Service, event: &ServiceEvent) -> Option<Sighting> {
    match event {
        ServiceEvent::ServiceResolved(said) => Discovered::new(service, said).map(Sighting::Found),
        ServiceEvent::ServiceRemoved(_, full) => {
            instance(service, full).map(|instance| Sighting::Gone { service, instance })
        }
        _ => None,
    }
}

/// All that is there within `for_how_long`, at most 256, in the order of `services`; what is
/// announced as several of them is listed once, as the first. Nobody there is no error.
///
/// # Errors
/// When mDNS cannot be started.
pub async fn browse(
    services: &[Service],
    for_how_long: Duration,
) -> Result<Vec<Discovered>, DiscoveryError> {
    browse_on(Reach::Network, services, for_how_long).await
}

/// [`browse`], as far as `reach`.
///
/// # Errors
/// When mDNS cannot be started.
pub async fn browse_on(
    reach: Reach,
    services: &[Service],
    for_how_long: Duration,
) -> Result<Vec<Discovered>, DiscoveryError> {
    let mut browser = Browser::start(services, reach, for_how_long)?;
    let mut findings = Findings::default();
    while let Some(sighting) = browser.next().await {
        match sighting {
            Sighting::Found(found) => findings.add(found),
            Sighting::Gone { service, instance } => findings.remove(service, &instance),
        }
    }
    Ok(findings.list(services))
}
