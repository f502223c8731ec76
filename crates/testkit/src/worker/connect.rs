//! How a worker comes in.

use std::net::SocketAddr;

use tokio_tungstenite::tungstenite::{
    client::IntoClientRequest,
    http::{HeaderMap, HeaderName, HeaderValue},
};

use super::{FakeWorker, Form};
use crate::{
    daemon::{Daemon, WORKER_SECRET},
    sockets::upgrade,
};

/// A server that answered with something other than a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    /// The part of its body that came with the head.
    pub body: String,
}

/// An upgrade request to `/v1/worker/connect`, as the test wants it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Connect {
    address: SocketAddr,
    query: String,
    headers: HeaderMap,
}

impl Connect {
    /// One without credentials.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, query: String::new(), headers: HeaderMap::new() }
    }

    /// One that a daemon of this kit lets in.
    pub fn to(daemon: &Daemon) -> Self {
        Self::new(daemon.address()).header("x-worker-secret", WORKER_SECRET)
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header value");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    pub fn query(mut self, query: &str) -> Self {
        self.query = format!("?{query}");
        self
    }

    /// Offers the binary form, if that is the one.
    pub fn form(self, form: Form) -> Self {
        match form {
            Form::Stock => self,
            Form::Binary => {
                self.header("sec-websocket-protocol", protocol::relay::Version::NEWEST.name())
            }
        }
    }

    pub async fn open(self) -> Result<FakeWorker, Refused> {
        let url = format!("ws://{}/v1/worker/connect{}", self.address, self.query);
        let mut request = url.into_client_request().expect("a URL");
        request.headers_mut().extend(self.headers);
        // Stock workers leave Nagle's algorithm on.
        let is_stock = !request.headers().contains_key("sec-websocket-protocol");
        let (socket, response) = upgrade(self.address, request, !is_stock).await?;
        let agreed = response.headers().contains_key("sec-websocket-protocol");
        Ok(FakeWorker::on(socket, if agreed { Form::Binary } else { Form::Stock }))
    }

    pub async fn join(self, name: &str, models: &[&str], max_concurrent: u32) -> FakeWorker {
        let mut worker = self.open().await.expect("the worker is let in");
        worker.register(name, models, max_concurrent).await;
        worker
    }
}
