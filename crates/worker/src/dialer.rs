//! Opens links to servers.

use std::{future::Future, pin::Pin, time::Duration};

use http::{HeaderMap, HeaderValue};
use protocol::relay::Version;
use wire::{Dial, DialError, DialedLink, Link, Outbox, Proxies};

use crate::config::ServerTarget;

/// How long dialling a link may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// The future of a link that is being dialled.
pub type DialFuture<'a> = Pin<Box<dyn Future<Output = Result<DialedLink, DialError>> + Send + 'a>>;

/// Gives links to servers: over the network, or within the process.
pub trait Dialer: Send + Sync + 'static {
    /// A new link to this server. A link whose subprotocol is the name of a [`Version`] carries binary
    /// frames, any other the JSON form.
    fn dial<'a>(&'a self, server: &'a ServerTarget) -> DialFuture<'a>;
}

/// Links over the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetDialer;

impl Dialer for NetDialer {
    fn dial<'a>(&'a self, server: &'a ServerTarget) -> DialFuture<'a> {
        Box::pin(async move {
            let url = server.connect_url();
            let headers = credentials(server)?;
            let subprotocols: &[&str] = if server.is_for_worker() { &Version::NAMES } else { &[] };
            let (deadline, proxies) = (DEADLINE, Proxies::of_environment());
            let pin = server.pin;
            wire::dial(Dial { url: &url, headers, subprotocols, proxies, pin, deadline }).await
        })
    }
}

fn credentials(server: &ServerTarget) -> Result<HeaderMap, DialError> {
    let mut headers = HeaderMap::new();
    if let Some(secret) = server.secret.as_ref().filter(|_| server.is_for_worker()) {
        let bad = |_| DialError::Handshake("the secret holds what no header may hold".to_owned());
        let mut value = HeaderValue::try_from(secret.expose()).map_err(bad)?;
        value.set_sensitive(true);
        headers.insert("x-worker-secret", value);
    }
    Ok(headers)
}

/// Links to a server in the same process, without a socket.
pub struct InProcessDialer<F>(F);

impl<F> InProcessDialer<F>
where
    F: Fn(Link, Outbox) + Send + Sync + 'static,
{
    /// Links whose server's end is given to `accept`. Both ends speak binary frames.
    pub fn new(accept: F) -> Self {
        Self(accept)
    }
}

impl<F> Dialer for InProcessDialer<F>
where
    F: Fn(Link, Outbox) + Send + Sync + 'static,
{
    fn dial<'a>(&'a self, _: &'a ServerTarget) -> DialFuture<'a> {
        Box::pin(async move {
            let [(server, server_outbox), (link, outbox)] = Link::in_process();
            (self.0)(server, server_outbox);
            let (subprotocol, headers) =
                (Some(Version::NEWEST.name().to_owned()), HeaderMap::new());
            Ok(DialedLink { link, outbox, subprotocol, headers })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_goes_into_its_header_and_shows_nowhere() {
        let target = |secret: &str| ServerTarget::new("http://host", Some(secret.into())).unwrap();
        let headers = credentials(&target("hunter2")).unwrap();
        assert_eq!(headers["x-worker-secret"], "hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
        let node = target("hunter2").for_node("m", "n");
        assert!(credentials(&node).unwrap().is_empty(), "a node tells it in its URL");
        assert_eq!(credentials(&target("hunter2\n")).unwrap()["x-worker-secret"], "hunter2");
        let error = credentials(&target("hun\u{1}ter2")).unwrap_err().to_string();
        assert!(!error.contains("ter2"), "{error}");
    }
}
