//! One request to the collector.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use protocol::otlp::PROTOBUF;
use tokio::time::timeout;
use wire::{ByProxy, Proxies, tls};

use crate::target::Target;

/// How long a collector may take for one request.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why spans were not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    /// The collector may take them later.
    #[error("{0}")]
    Yet(String),
    /// It will not.
    #[error("{0}")]
    Ever(String),
}

/// The way to a collector.
pub(crate) struct Collector {
    client: Client<HttpsConnector<ByProxy<HttpConnector>>, Full<Bytes>>,
    target: Target,
}

impl Collector {
    /// Connects to nothing yet. Reads this machine's certificates, if TLS is spoken: blocks.
    pub(crate) fn new(target: Target) -> std::io::Result<Self> {
        let secure = target.url.scheme() == "https";
        let tls = tls::http_client_config(secure, None, None)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(ByProxy::new(tcp, Proxies::of_environment()));
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), target })
    }

    /// Posts a message. What the collector answers beside its status is not read.
    pub(crate) async fn post(&self, message: Bytes) -> Result<(), NotTaken> {
        let mut request = Request::post(self.target.url.as_str())
            .body(Full::new(message))
            .map_err(|error| NotTaken::Ever(error.to_string()))?;
        request.headers_mut().extend(self.target.headers.clone());
        let kind = HeaderValue::from_static(PROTOBUF);
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        match timeout(DEADLINE, self.client.request(request)).await {
            Err(_) => Err(NotTaken::Yet("it did not answer in time".to_owned())),
            Ok(Err(error)) => Err(NotTaken::Yet(base::error::chain(&error))),
            Ok(Ok(answer)) => judge(answer.status()),
        }
    }
}

/// As the specification has it: these four may be tried again.
fn judge(status: StatusCode) -> Result<(), NotTaken> {
    let words = || format!("it answered {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        429 | 502 | 503 | 504 => Err(NotTaken::Yet(words())),
        _ => Err(NotTaken::Ever(words())),
    }
}
