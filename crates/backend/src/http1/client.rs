//! Requests over kept connections.

use std::{future::poll_fn, sync::Arc};

use http::Response;
use tokio::net::TcpStream;

use super::{
    Body, Request,
    exchange::{Broken, Exchange},
    pool::Pool,
};
use crate::{client::SendError, connect::PlainConnector};

/// Sends requests to one backend, over kept connections where there are any.
#[derive(Debug)]
pub(crate) struct Client {
    connector: PlainConnector,
    pool: Arc<Pool>,
}

impl Client {
    pub(crate) fn new(connector: PlainConnector) -> Self {
        Self { connector, pool: Arc::default() }
    }

    /// Sends a request and waits for the head of its answer. Dropping the wait closes the connection.
    ///
    /// A server may close an idle connection while a request is on its way to it. If a kept connection
    /// ends before any byte came back, this has probably happened, and the request is sent once more
    /// over a new connection. A server that dies of the request looks the same from outside. Then the
    /// second try fails as well, and its error is reported.
    pub(crate) async fn send(&self, request: Request) -> Result<Response<Body>, SendError> {
        let request = match self.pool.take() {
            Some(kept) => match self.exchange(kept, request).await {
                Err((broken, Some(unheard))) => {
                    tracing::debug!(%broken, "sent again: an idle connection was closed");
                    unheard.again()
                }
                answered => return answered.map_err(|(broken, _)| broken.into()),
            },
            None => request,
        };
        let fresh = Box::pin(self.connector.connect()).await?;
        self.exchange(fresh, request).await.map_err(|(broken, _)| broken.into())
    }

    /// Sends a request on this connection. On failure, returns the error, and the request if
    /// nothing came back.
    async fn exchange(
        &self,
        stream: TcpStream,
        request: Request,
    ) -> Result<Response<Body>, (Broken, Option<Request>)> {
        let mut exchange = Exchange::new(stream, request);
        match poll_fn(|cx| exchange.poll_head(cx)).await {
            Ok((head, first)) => {
                let body = Body::new(first, exchange, Arc::clone(&self.pool));
                let mut response = Response::new(body);
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers;
                Ok(response)
            }
            Err(broken) => Err((broken, exchange.unheard())),
        }
    }
}
