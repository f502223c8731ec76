//! Connections to backends, made within a deadline: TCP without Nagle's algorithm, or TLS over it.
//! Connections by TLS track their progress.

use std::{
    error::Error,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use base::Fingerprint;
use http::{Uri, uri::PathAndQuery};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{
        HttpConnector,
        dns::{GaiResolver, Name},
    },
    rt::TokioIo,
};
use tokio::{net::TcpStream, time::timeout};
use tower::Service;
use wire::{ByProxy, Proxies, advised, tls::http_client_config};

use crate::{
    address::{BaseUrl, NotABackend},
    client::{Client, SecureClient, SendError},
    connection::TrackedStream,
    http1,
};

type Failure = Box<dyn Error + Send + Sync>;
type Tcp = ByProxy<HttpConnector<Addresses>>;
type Plain = MaybeHttpsStream<TokioIo<TcpStream>>;
type Stream = TokioIo<TrackedStream<TokioIo<Plain>>>;

/// The deadline for a connection has passed.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
pub(crate) struct TooLate;

/// Connects without TLS, within a deadline.
#[derive(Debug)]
pub(crate) struct PlainConnector {
    inner: Tcp,
    to: Uri,
    deadline: Duration,
}

impl PlainConnector {
    /// Makes a new connection.
    pub(crate) async fn connect(&self) -> Result<TcpStream, SendError> {
        let mut inner = self.inner.clone();
        let connecting = async {
            poll_fn(|cx| inner.poll_ready(cx)).await?;
            inner.call(self.to.clone()).await
        };
        match timeout(self.deadline, connecting).await {
            Ok(Ok(stream)) => Ok(stream.into_inner()),
            Ok(Err(failure)) => Err(SendError::Connect(advised(&*failure))),
            Err(_) => Err(SendError::TooLate),
        }
    }
}

/// Connects by TLS, within a deadline.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<Tcp>,
    deadline: Duration,
}

/// A client for a backend. It connects to the address `only`, if there is one, whatever the host
/// resolves to.
pub(crate) fn client(
    base: &BaseUrl,
    only: Option<IpAddr>,
    pin: Option<Fingerprint>,
    ca: Option<&Path>,
    deadline: Duration,
) -> Result<Client, NotABackend> {
    // A host that is written as an IP address is never looked up, so it must be `only` itself.
    let other = base.ip().zip(only).filter(|(written, only)| written != only);
    if other.is_some() {
        let reason = "it is another address than the one that may be connected to";
        return Err(NotABackend::Url { url: base.to_string(), reason });
    }
    if !base.is_secure() {
        let to = base.at(PathAndQuery::from_static("/"));
        let connector = PlainConnector { inner: tcp(only), to, deadline };
        return Ok(Client::Plain(http1::Client::new(connector)));
    }
    let no_tls = |error: io::Error| {
        let (url, reason) = (base.to_string(), error.to_string());
        NotABackend::Tls { url, reason }
    };
    let tls = http_client_config(true, pin, ca).map_err(no_tls)?;
    let inner = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp(only));
    let client = SecureClient::new(Connector { inner, deadline });
    Ok(Client::Secure(Box::new(client)))
}

fn tcp(only: Option<IpAddr>) -> Tcp {
    // With `only`, no proxy: it would look the host up itself, and might connect to an address that
    // is not allowed.
    let proxies = if only.is_some() { Proxies::none() } else { Proxies::of_environment() };
    let addresses = only.map_or_else(|| Addresses::Any(GaiResolver::new()), Addresses::Only);
    let mut tcp = HttpConnector::new_with_resolver(addresses);
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    ByProxy::new(tcp, proxies)
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let deadline = self.deadline;
        Box::pin(async move {
            let stream = timeout(deadline, connecting).await.map_err(|_| TooLate)??;
            Ok(TokioIo::new(TrackedStream::new(TokioIo::new(stream))))
        })
    }
}

/// How a host's addresses are found.
#[derive(Debug, Clone)]
enum Addresses {
    /// By the system's resolver.
    Any(GaiResolver),
    /// Always this address.
    Only(IpAddr),
}

type LocalBackend = std::vec::IntoIter<SocketAddr>;

impl Service<Name> for Addresses {
    type Response = LocalBackend;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<LocalBackend, io::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        match self {
            Self::Any(system) => system.poll_ready(cx),
            Self::Only(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, name: Name) -> Self::Future {
        match self {
            Self::Any(system) => {
                let found = system.call(name);
                Box::pin(async move { Ok(found.await?.collect::<Vec<_>>().into_iter()) })
            }
            // Port 0: the connector puts the URL's port in its place.
            Self::Only(ip) => {
                let found = vec![SocketAddr::new(*ip, 0)].into_iter();
                Box::pin(std::future::ready(Ok(found)))
            }
        }
    }
}
