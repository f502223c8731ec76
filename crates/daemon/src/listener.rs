//! TCP, TLS and HTTP connections.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use api::Peer;
use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;
use wire::Io;

use crate::telemetry::metrics::Metrics;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a connection may be idle, or take for a request's head.
const IDLE: Duration = Duration::from_secs(75);

/// A pause after the machine has refused a connection, usually for want of files.
const REFUSED: Duration = Duration::from_millis(50);

/// Files kept for what is not a consumer's connection.
const SPARE_FILES: u64 = 128;

/// The one listener of a server.
pub struct Listener {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    metrics: Arc<Metrics>,
    connections: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// When it is taken, or not this machine's.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        router: Router,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let files = rlimit::getrlimit(rlimit::Resource::NOFILE).map_or(1024, |(soft, _)| soft);
        let most = usize::try_from(files.saturating_sub(SPARE_FILES).max(64)).unwrap_or(usize::MAX);
        Ok(Self {
            tcp: TcpListener::bind(address).await?,
            tls: tls.map(TlsAcceptor::from),
            router,
            metrics,
            connections: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            tasks: TaskTracker::new(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts connections until `stop`; then those that are idle are closed, and the others when
    /// their response is out. The tracker knows which are left.
    pub async fn run(self, stop: CancellationToken) -> TaskTracker {
        let serving = self.accept(&stop);
        tokio::select! {
            () = serving => {}
            () = stop.cancelled() => {}
        }
        self.tasks.close();
        self.tasks
    }

    async fn accept(&self, stop: &CancellationToken) {
        loop {
            // The semaphore is never closed; were it, nothing more would be accepted.
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return };
            match self.tcp.accept().await {
                Ok((stream, peer)) => {
                    let serving = self.connection(stream, peer, stop.clone());
                    let metrics = Arc::clone(&self.metrics);
                    self.tasks.spawn(async move {
                        metrics.http_connections().inc();
                        serving.await;
                        metrics.http_connections().dec();
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(REFUSED).await;
                }
            }
        }
    }

    fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let (tls, router) = (self.tls.clone(), self.router.clone());
        async move {
            // Without it a small write may wait for the acknowledgement of the one before.
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve(stream, router, peer, stop).await,
                Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let stream: Io = Box::pin(stream);
                        serve(stream, router, peer, stop).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS handshake"),
                    Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
                },
            }
        }
    }
}

async fn serve<S>(stream: S, router: Router, peer: SocketAddr, stop: CancellationToken)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = router.map_request(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        request.map(axum::body::Body::new)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(IDLE);
    let connection = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "a connection broke");
    }
}
