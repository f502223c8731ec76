//! The HTTP clients. They keep connections for a while, and try again if a kept one was closed.
//! Connections without TLS are our own ([`http1`]); those with TLS are hyper's.

use std::{
    error::Error,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use base::error::chain;
use bytes::{Bytes, BytesMut};
use http::{Extensions, HeaderMap, Method, Request, Response, uri::PathAndQuery};
use hyper::body::{Body as _, Frame, Incoming};
use hyper_util::{
    client::legacy::{Client as Legacy, Error as LegacyError},
    rt::{TokioExecutor, TokioTimer},
};
use wire::advised;

use crate::{
    connect::{Connector, TooLate},
    connection::Progress,
    exchange::Pieces,
    http1::{self, Broken},
};

/// How long an unused connection is kept. Common model servers close theirs after 5 s. They count
/// from when they wrote the answer, this client from when it read the end: hence a second less.
pub(crate) const KEEP_IDLE: Duration = Duration::from_secs(4);

/// The most unused connections that are kept.
pub(crate) const MAX_IDLE: usize = 1024;

/// The most bytes of an answer that are read ahead, and the longest head of an answer. Small,
/// because a buffer that has grown does not shrink while a stream lasts.
const READ_AHEAD: usize = 64 * 1024;

/// A request as it goes out.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// Below the backend's host.
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<Bytes>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum SendError {
    /// No connection was made in time.
    TooLate,
    /// No connection was made, and why.
    Connect(String),
    /// The connection broke, or what came was not an answer, and why.
    Broke(String),
}

/// Sends requests to one backend, over kept connections where there are any.
#[derive(Debug)]
pub(crate) enum Client {
    Plain(http1::Client),
    Secure(Box<SecureClient>),
}

/// The body of an answer. Dropping it before its end closes the connection.
#[derive(Debug)]
pub(crate) enum Body {
    Plain(http1::Body),
    Secure(Incoming),
}

impl Body {
    /// The next bytes, never empty, or why there are none; `None` at the end.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        let body = match self {
            Self::Plain(body) => {
                return body.poll_next(cx).map_err(|broken| broken.told());
            }
            Self::Secure(body) => body,
        };
        loop {
            let frame = ready!(Pin::new(&mut *body).poll_frame(cx))
                .map(|frame| frame.map(Frame::into_data));
            match frame {
                None => return Poll::Ready(None),
                Some(Ok(Ok(data))) if !data.is_empty() => return Poll::Ready(Some(Ok(data))),
                // Trailers, or an empty piece.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(chain(&error)))),
            }
        }
    }

    /// The whole body, or why there is none; an error if it has more than `limit` bytes.
    pub(crate) async fn whole(mut self, limit: usize) -> Result<Bytes, String> {
        let mut whole = BytesMut::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await {
            whole.extend_from_slice(&piece?);
            if whole.len() > limit {
                return Err(format!("it is longer than {limit} bytes"));
            }
        }
        Ok(whole.freeze())
    }
}

/// Sends requests over TLS.
#[derive(Debug)]
pub(crate) struct SecureClient {
    pooled: Legacy<Connector, Pieces>,
    fresh: Legacy<Connector, Pieces>,
}

impl SecureClient {
    pub(crate) fn new(connector: Connector) -> Self {
        let pooled = Legacy::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(READ_AHEAD)
            // hyper repeats only requests of which nothing was written when the connection was
            // found closed.
            .retry_canceled_requests(true)
            .build(connector.clone());
        // Without a pool, each request has a connection of its own.
        let fresh = Legacy::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(READ_AHEAD)
            .build(connector);
        Self { pooled, fresh }
    }

    /// As [`http1::Client::send`]. The second try uses a new connection.
    pub(crate) async fn send(
        &self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, LegacyError> {
        let again = request.clone();
        match self.pooled.request(request).await {
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

fn met_an_idle_end(error: &LegacyError) -> bool {
    let Some(connected) = error.connect_info() else { return false };
    let mut extras = Extensions::new();
    connected.get_extras(&mut extras);
    progress(&extras).is_some_and(Progress::was_idle)
}

fn progress(extras: &Extensions) -> Option<&Progress> {
    extras.get()
}

impl From<LegacyError> for SendError {
    fn from(error: LegacyError) -> Self {
        if causes(&error).any(|cause| cause.is::<TooLate>()) {
            return Self::TooLate;
        }
        let reason = advised(error.source().unwrap_or(&error));
        if error.is_connect() { Self::Connect(reason) } else { Self::Broke(reason) }
    }
}

impl From<Broken> for SendError {
    fn from(broken: Broken) -> Self {
        Self::Broke(broken.told())
    }
}

fn causes<'a>(error: &'a LegacyError) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next: Option<&'a (dyn Error + 'static)> = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}
