//! Connections to backends: TCP without delay, or TLS over it, each within a deadline, and each
//! noting its progress.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, time::timeout};
use tower::Service;
use wire::tls::http_client_config;

use crate::{
    address::{BaseUrl, NotABackend},
    connection::Noted,
};

type Failure = Box<dyn Error + Send + Sync>;
type Plain = MaybeHttpsStream<TokioIo<TcpStream>>;
type Stream = TokioIo<Noted<TokioIo<Plain>>>;

/// The time for a connection was over.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
pub(crate) struct TooLate;

/// Connects within a deadline.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    deadline: Duration,
}

impl Connector {
    pub(crate) fn new(base: &BaseUrl, deadline: Duration) -> Result<Self, NotABackend> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let no_tls = |error: io::Error| {
            let (url, reason) = (base.to_string(), error.to_string());
            NotABackend::Tls { url, reason }
        };
        let tls = http_client_config(base.is_secure()).map_err(no_tls)?;
        let inner = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self { inner, deadline })
    }
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
            Ok(TokioIo::new(Noted::new(TokioIo::new(stream))))
        })
    }
}
