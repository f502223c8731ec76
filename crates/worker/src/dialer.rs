//! How a link to a server comes about.

use std::{future::Future, pin::Pin, time::Duration};

use http::{HeaderMap, HeaderValue};
use protocol::relay::SUBPROTOCOL;
use wire::{Dial, DialError, Dialed};

use crate::config::ServerTarget;

/// How long a link may take to stand.
const DEADLINE: Duration = Duration::from_secs(15);

/// A link in the making.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = Result<Dialed, DialError>> + Send + 'a>>;

/// Gives links to servers: over the network, or over a pipe within the process.
pub trait Dialer: Send + Sync + 'static {
    /// A new link to this server. A link whose subprotocol is [`SUBPROTOCOL`] carries binary
    /// frames, any other the JSON form.
    fn dial<'a>(&'a self, server: &'a ServerTarget) -> Dialing<'a>;
}

/// Links over the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetDialer;

impl Dialer for NetDialer {
    fn dial<'a>(&'a self, server: &'a ServerTarget) -> Dialing<'a> {
        Box::pin(async move {
            let url = server.connect_url();
            let headers = credentials(server)?;
            let subprotocols = &[SUBPROTOCOL];
            wire::dial(Dial { url: &url, headers, subprotocols, deadline: DEADLINE }).await
        })
    }
}

fn credentials(server: &ServerTarget) -> Result<HeaderMap, DialError> {
    let mut headers = HeaderMap::new();
    if let Some(secret) = &server.secret {
        let bad = |_| DialError::Handshake("the secret holds what no header may hold".to_owned());
        let mut value = HeaderValue::try_from(secret.expose()).map_err(bad)?;
        value.set_sensitive(true);
        headers.insert("x-worker-secret", value);
    }
    Ok(headers)
}
