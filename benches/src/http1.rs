//! A connection to a server, for one request after another.

use std::{net::SocketAddr, time::Duration};

use crate::payload::Api;
use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

const CONNECT: Duration = Duration::from_secs(10);

/// One kept-alive HTTP/1.1 connection. Dropping it closes the socket at once, whatever is in
/// flight.
#[derive(Debug)]
pub(crate) struct Link {
    host: String,
    sender: http1::SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Link {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self> {
        let socket = timeout(CONNECT, TcpStream::connect(addr)).await;
        let socket = socket.map_err(|_| anyhow!("connect time-out"))?.context("connect")?;
        socket.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let driver = tokio::spawn(async move {
            // Its errors reach the request in flight.
            let _ = connection.await;
        });
        Ok(Self { host: addr.to_string(), sender, driver })
    }

    /// Whether the other end still takes a request; waits for the last answer to be finished.
    pub(crate) async fn ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Posts a chat request and returns the answer once its head has come.
    pub(crate) async fn chat(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        self.post(Api::Chat.path(), None, body).await
    }

    /// Posts a request, with a key if there is one.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        self.send(Method::POST, path, key, body).await
    }

    /// Sends JSON and returns what is answered with a status of success; at most 16 MiB.
    pub(crate) async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Vec<u8>> {
        self.asked(method, path, None, body).await
    }

    /// The same with a key.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        key: &str,
        body: Bytes,
    ) -> Result<Vec<u8>> {
        self.asked(method, path, Some(key), body).await
    }

    async fn asked(
        &mut self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<Vec<u8>> {
        ensure!(self.ready().await, "the connection was closed");
        let response = self.send(method, path, key, body).await?;
        let status = response.status();
        let answer = read(response.into_body()).await?;
        let words = || String::from_utf8_lossy(&answer).into_owned();
        ensure!(status.is_success(), "status {status} of {path}: {}", words());
        Ok(answer)
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }

    async fn get(&mut self, path: &str) -> Result<Response<Incoming>> {
        let request =
            Request::get(path).header(header::HOST, &self.host).body(Full::new(Bytes::new()))?;
        Ok(self.sender.send_request(request).await?)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Fetches `path` within `limit`; at most 16 MiB, and only with status 200.
pub(crate) async fn get(addr: SocketAddr, path: &str, limit: Duration) -> Result<Vec<u8>> {
    let fetch = async {
        let mut link = Link::open(addr).await?;
        let response = link.get(path).await?;
        ensure!(response.status() == 200, "status {} of {path}", response.status());
        read(response.into_body()).await
    };
    timeout(limit, fetch).await.with_context(|| format!("time-out of {path}"))?
}

/// Reads a whole body; at most 16 MiB.
pub(crate) async fn read(mut body: Incoming) -> Result<Vec<u8>> {
    const MOST: usize = 16 << 20;
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            ensure!(all.len() + data.len() <= MOST, "an answer over 16 MiB");
            all.extend_from_slice(&data);
        }
    }
    Ok(all)
}
