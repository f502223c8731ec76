//! Links to servers whose addresses change. The last known address is dialled first; if the server does not answer
//! there, it is searched for. A server gets the secret only after it has proved that it is the right one.

use std::{pin::Pin, sync::Arc, time::Duration};

use http::StatusCode;
use tokio::time::timeout;
use url::Url;
use wire::{DialError, DialedLink};

use crate::{
    config::ServerTarget,
    dialer::{DialFuture, Dialer, NetDialer},
};

/// How long an attempt at one address may take before the next is tried.
const ATTEMPT: Duration = Duration::from_secs(8);

/// A future of a [`Whereabouts`].
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where one server may be, and how to distinguish it from others.
pub trait Whereabouts: Send + Sync + 'static {
    /// The addresses at which it was reached, the latest first.
    fn known(&self) -> Vec<Url>;

    /// The addresses that a search finds now.
    fn search(&self) -> BoxFuture<'_, Vec<Url>>;

    /// Checks, without sending the secret, that this server is at this address; or says why not.
    fn check<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>>;

    /// Remembers that the server was reached at this address.
    fn reached<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, ()>;
}

/// Links over the network to servers whose addresses may change.
pub struct RoamingDialer(Vec<(Url, Arc<dyn Whereabouts>)>);

impl RoamingDialer {
    /// Finds these servers, each identified by the URL of its [`ServerTarget`]. Other servers are dialled
    /// at their URL.
    pub fn new(servers: Vec<(Url, Arc<dyn Whereabouts>)>) -> Self {
        Self(servers)
    }
}

impl Dialer for RoamingDialer {
    fn dial<'a>(&'a self, server: &'a ServerTarget) -> DialFuture<'a> {
        match self.0.iter().find(|(url, _)| *url == server.url) {
            Some((_, whereabouts)) => Box::pin(find(&**whereabouts, server)),
            None => NetDialer.dial(server),
        }
    }
}

async fn find(
    whereabouts: &dyn Whereabouts,
    server: &ServerTarget,
) -> Result<DialedLink, DialError> {
    let known = whereabouts.known();
    let failed = match first_of(&known, whereabouts, server).await {
        Ok(link) => return Ok(link),
        Err(error) if is_answer(&error) => return Err(error),
        Err(error) => error,
    };
    let mut found = whereabouts.search().await;
    // The known addresses were tried just before.
    found.retain(|url| !known.contains(url));
    match first_of(&found, whereabouts, server).await {
        Ok(link) => Ok(link),
        Err(error) if is_answer(&error) => Err(error),
        // The failure at the known address is the one that people can act on. The other addresses come from
        // a search.
        Err(_) => Err(failed),
    }
}

async fn first_of(
    urls: &[Url],
    whereabouts: &dyn Whereabouts,
    server: &ServerTarget,
) -> Result<DialedLink, DialError> {
    let mut failed = None;
    for url in urls {
        let attempt = timeout(ATTEMPT, attempt(url, whereabouts, server));
        match attempt.await.unwrap_or(Err(DialError::Timeout(ATTEMPT))) {
            Ok(link) => {
                whereabouts.reached(url).await;
                return Ok(link);
            }
            Err(error) if is_answer(&error) => return Err(error),
            // That another server answered says more than that no server did.
            Err(error) if failed.is_none() || matches!(error, DialError::NotTheServer(_)) => {
                failed = Some(error);
            }
            Err(_) => {}
        }
    }
    let nowhere = || DialError::NotTheServer("nobody says where the server is".to_owned());
    Err(failed.unwrap_or_else(nowhere))
}

async fn attempt(
    url: &Url,
    whereabouts: &dyn Whereabouts,
    server: &ServerTarget,
) -> Result<DialedLink, DialError> {
    whereabouts.check(url).await.map_err(DialError::NotTheServer)?;
    NetDialer.dial(&server.at(url.clone())).await
}

/// Whether the server itself has refused. Then it is not searched for.
fn is_answer(error: &DialError) -> bool {
    let refused =
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE];
    matches!(error, DialError::Refused { status, .. } if refused.contains(status))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use testkit::RefusingPort;

    use super::*;

    /// A server that is where `found` says, and impostors everywhere else.
    struct Elsewhere {
        known: Vec<Url>,
        found: Vec<Url>,
        checked: Mutex<Vec<Url>>,
    }

    impl Whereabouts for Elsewhere {
        fn known(&self) -> Vec<Url> {
            self.known.clone()
        }

        fn search(&self) -> BoxFuture<'_, Vec<Url>> {
            Box::pin(async { self.found.clone() })
        }

        fn check<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
            self.checked.lock().unwrap().push(url.clone());
            Box::pin(async { Err("an impostor".to_owned()) })
        }

        fn reached<'a>(&'a self, _: &'a Url) -> BoxFuture<'a, ()> {
            Box::pin(async { panic!("nobody is there") })
        }
    }

    #[tokio::test]
    async fn a_server_is_checked_where_it_was_then_where_it_is_found_and_dialled_at_neither_unproven()
     {
        // A dial to these would be refused, and be another error.
        let ports = [RefusingPort::take(), RefusingPort::take()];
        let [was, is] = ports.each_ref().map(|port| Url::parse(&port.url()).unwrap());
        let known = vec![was.clone()];
        let found = vec![was.clone(), is.clone()];
        let whereabouts = Arc::new(Elsewhere { known, found, checked: Mutex::default() });
        let place: Arc<dyn Whereabouts> = Arc::<Elsewhere>::clone(&whereabouts);
        let dialer = RoamingDialer::new(vec![(was.clone(), place)]);
        let target = ServerTarget::new(was.as_str(), Some("k".into())).unwrap();
        let error = dialer.dial(&target).await.unwrap_err();
        assert!(matches!(&error, DialError::NotTheServer(why) if why == "an impostor"), "{error}");
        assert_eq!(*whereabouts.checked.lock().unwrap(), [was, is]);
    }

    #[tokio::test]
    async fn other_servers_are_dialled_where_they_are() {
        let refusing = RefusingPort::take();
        let dialer = RoamingDialer::new(Vec::new());
        let target = ServerTarget::new(&refusing.url(), None).unwrap();
        let error = dialer.dial(&target).await.unwrap_err();
        assert!(matches!(error, DialError::Connect { .. }), "{error}");
    }
}
