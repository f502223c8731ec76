//! Connections for HTTP clients, by a proxy where the environment names one.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::{Proxies, ProxyError};

type Failure = Box<dyn Error + Send + Sync>;
type Stream = TokioIo<TcpStream>;

/// Connects by the proxy of an address if there is one, and by another connector otherwise.
#[derive(Debug, Clone)]
pub struct ByProxy<C> {
    directly: C,
    proxies: &'static Proxies,
}

impl<C> ByProxy<C> {
    /// A connector that uses `proxies`, and `directly` where they do not apply.
    pub fn new(directly: C, proxies: &'static Proxies) -> Self {
        Self { directly, proxies }
    }
}

impl<C> Service<Uri> for ByProxy<C>
where
    C: Service<Uri, Response = Stream>,
    C::Error: Into<Failure>,
    C::Future: Send + 'static,
{
    type Response = Stream;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.directly.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        match self.proxies.towards(secure, &host, port) {
            Ok(None) => {
                let connecting = self.directly.call(uri);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            Ok(Some(proxy)) => {
                let proxy = proxy.clone();
                Box::pin(async move { Ok(TokioIo::new(proxy.connect(&host, port).await?)) })
            }
            Err(bad) => Box::pin(std::future::ready(Err(ProxyError::from(bad).into()))),
        }
    }
}
