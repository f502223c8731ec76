//! Requests that other servers pass on because this server is the home of their room.

use std::{convert::Infallible, time::Duration};

use api::{Api, PassedOn, room::homes::arrival};
use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    time::timeout,
};

/// How long another server may take to send the head of a request, which it has already.
const HEAD: Duration = Duration::from_secs(10);

/// The longest description of a client, in bytes.
const LONGEST: u16 = 4096;

/// The longest head of a request, in bytes: somewhat more than a client may send.
const BUFFER: usize = 80 * 1024;

/// Answers the request that comes over a stream. `router` must not carry requests to other servers again.
pub(super) async fn serve<S>(mut stream: S, api: Api, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(Some(passed_on)) = timeout(HEAD, read_words(&mut stream)).await else {
        tracing::debug!("another server says nothing of the request that it passes on");
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, router, passed_on) = (api.clone(), router.clone(), passed_on.clone());
        let request = request.map(Body::new);
        async move { Ok::<_, Infallible>(arrival::answer(&api, router, passed_on, request).await) }
    });
    let served = http().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Err(error) = served {
        tracing::debug!(%error, "a request that was passed on broke off");
    }
}

/// HTTP between servers. Connections are kept alive, although each serves one request: otherwise hyper would send
/// `close` where the protocol is upgraded.
pub(super) fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER);
    http
}

async fn read_words(stream: &mut (impl AsyncRead + Unpin)) -> Option<PassedOn> {
    let length = stream.read_u16().await.ok().filter(|length| *length <= LONGEST)?;
    let mut json = vec![0; length.into()];
    stream.read_exact(&mut json).await.ok()?;
    serde_json::from_slice(&json).ok()
}
