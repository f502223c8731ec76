//! The HTTP client: connections that are kept for a while, and a second try where one of them was
//! already gone.

use std::time::Duration;

use http::{Extensions, Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as Legacy, Error},
    rt::{TokioExecutor, TokioTimer},
};

use crate::{connect::Connector, connection::Progress, exchange::Pieces};

/// How long an unused connection is kept. The common model servers close theirs after 5 s, counted
/// from when they wrote the answer, not from when it was read here: a second for the difference.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// The most unused connections that are kept.
const MAX_IDLE: usize = 1024;

/// The most bytes of an answer that are read ahead, and the longest head of an answer. A buffer that
/// has grown stays as large for as long as a stream lasts.
const READ_AHEAD: usize = 64 * 1024;

/// Sends requests, over kept connections where there are any.
#[derive(Debug)]
pub(crate) struct Client {
    kept: Legacy<Connector, Pieces>,
    fresh: Legacy<Connector, Pieces>,
}

impl Client {
    pub(crate) fn new(connector: Connector) -> Self {
        let kept = Legacy::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(READ_AHEAD)
            // Of those that met a closed connection before any of them was written.
            .retry_canceled_requests(true)
            .build(connector.clone());
        // Without a pool, each request has a connection of its own.
        let fresh = Legacy::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(READ_AHEAD)
            .build(connector);
        Self { kept, fresh }
    }

    /// Sends a request and waits for the head of its answer. Dropping the wait closes the connection.
    ///
    /// A server that closes an idle connection may do so while a request is on its way to it. A
    /// request that this seems to have happened to is sent once more, over a connection of its own:
    /// the first had answered before, and ended before a byte of this answer. From outside, a server
    /// that dies of the request looks the same; the second try then fails as well, and that is told.
    pub(crate) async fn send(&self, request: Request<Pieces>) -> Result<Response<Incoming>, Error> {
        let again = request.clone();
        match self.kept.request(request).await {
            Ok(response) => {
                progress(response.extensions()).inspect(|progress| progress.answered());
                Ok(response)
            }
            Err(error) if met_an_idle_end(&error) => {
                tracing::debug!(%error, "sent again: an idle connection was closed");
                self.fresh.request(again).await
            }
            Err(error) => Err(error),
        }
    }
}

fn met_an_idle_end(error: &Error) -> bool {
    let Some(connected) = error.connect_info() else { return false };
    let mut extras = Extensions::new();
    connected.get_extras(&mut extras);
    progress(&extras).is_some_and(Progress::was_idle)
}

fn progress(extras: &Extensions) -> Option<&Progress> {
    extras.get()
}
