//! TCP, TLS and HTTP connections.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Once},
    time::Duration,
};

use access::LocalRules;
use anyhow::Context;
use api::Cors;
use axum::{Router, response::Response};
use base::Live;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{Service, ServiceExt};
use wire::{Acknowledging, Io, PromptAcks};

use crate::{
    clear_text,
    client_stream::ClientStream,
    greeting::{Version, version},
    sockets,
    streams::Streams,
    strict::Strict,
    telemetry::metrics::Metrics,
};

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client may take to show which version of HTTP it speaks.
const GREETING: Duration = Duration::from_secs(10);

/// How long a connection may be idle, or take for a request's head.
const IDLE: Duration = Duration::from_secs(75);

/// The longest head of a request of HTTP/1, in bytes. Also about the most that waits to be written for a client that
/// does not read, beside the last piece.
const BUFFER: usize = 64 * 1024;

/// The pause after a failed accept. Usually file descriptors are missing, and the next accept would fail at once, too.
const REFUSED: Duration = Duration::from_millis(50);

/// TCP keep-alive: after this silence comes the first probe, then one after each pause, and this many at most.
const SILENT: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_secs(10);
const ASK_TIMES: u32 = 3;

/// File descriptors kept for everything but consumers' connections.
const SPARE_FILES: u64 = 128;

/// A port of a server, with its connections.
pub(crate) struct Listener {
    tcp: TcpListener,
    tls: Option<Live<ServerConfig>>,
    router: Cors<Router>,
    metrics: Arc<Metrics>,
    patience: Live<Duration>,
    connections: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds the address. A client that reads nothing for `patience` while data waits is disconnected. A connection
    /// keeps the certificate and the patience with which it began.
    pub(crate) fn bind(
        address: SocketAddr,
        tls: Option<Live<ServerConfig>>,
        router: Cors<Router>,
        metrics: Arc<Metrics>,
        patience: Live<Duration>,
    ) -> anyhow::Result<Self> {
        let tcp = wire::listen(address).with_context(|| {
            format!("{address} cannot be listened on: is another server running there?")
        })?;
        Ok(Self::on(tcp, tls, router, metrics, patience))
    }

    /// A listener on a socket that is bound already.
    pub(crate) fn on(
        tcp: TcpListener,
        tls: Option<Live<ServerConfig>>,
        router: Cors<Router>,
        metrics: Arc<Metrics>,
        patience: Live<Duration>,
    ) -> Self {
        let files = base::system::file_limits().current.unwrap_or(u64::MAX);
        let most = usize::try_from(files.saturating_sub(SPARE_FILES).max(64)).unwrap_or(usize::MAX);
        Self {
            tcp,
            tls,
            router,
            metrics,
            patience,
            connections: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts connections until `stop`. Then idle connections are closed, and the others after their response. The
    /// returned tracker has the connections that are left.
    pub(crate) async fn run(self, stop: CancellationToken) -> TaskTracker {
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
            // The semaphore is never closed, so this always succeeds.
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return };
            match self.tcp.accept().await {
                Ok((stream, peer)) => {
                    let tls = self.tls.as_ref().map(|tls| TlsAcceptor::from(tls.get()));
                    let router = self.router.clone();
                    let (stop, patience) = (stop.clone(), self.patience.copied());
                    let acks = PromptAcks::default();
                    let client = Client { router, peer, acks, stop, patience };
                    let metrics = Arc::clone(&self.metrics);
                    self.tasks.spawn(async move {
                        metrics.http_connections().inc();
                        // This future is made here: if it were made outside and moved in, its memory would be taken
                        // twice.
                        client.connected(stream, tls).await;
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
}

/// A client's connection to a port of TLS; `None` if the client sends nothing, or speaks HTTP in clear.
async fn speaking_tls(stream: TcpStream, peer: SocketAddr) -> Option<TcpStream> {
    match timeout(HANDSHAKE, clear_text::is_clear(&stream)).await {
        Ok(Ok(false)) => return Some(stream),
        Ok(Ok(true)) => {
            let refused = clear_text::refuse(stream).await;
            tracing::debug!(%peer, ?refused, "a client spoke HTTP in clear to a port of TLS");
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection broke"),
        Err(_) => tracing::debug!(%peer, "a client said nothing"),
    }
    None
}

/// Lets the kernel notice within about a minute that the other end of a connection has vanished, even if it is idle.
fn keep_alive(stream: &TcpStream) {
    let alive = TcpKeepalive::new().with_time(SILENT).with_interval(ASK_AGAIN);
    let set = SockRef::from(stream).set_tcp_keepalive(&alive.with_retries(ASK_TIMES));
    if let Err(error) = set {
        tracing::debug!(%error, "a connection is not kept alive");
    }
}

/// Warns once that the clients of a proxy cannot be distinguished. A stranger on the internet can invent the headers
/// of a proxy, so only an address of this machine or of its network is taken for that of a proxy.
fn warn_of_proxy(peer: IpAddr, rules: &LocalRules) {
    static WARNED: Once = Once::new();
    let is_near = match peer.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    };
    if is_near && !rules.trusted_proxies.has(peer) {
        WARNED.call_once(|| {
            tracing::warn!(
                "requests come through a proxy at {peer}: all its clients count as one, so wrong \
                 tokens and codes of one keep out the others; if the proxy is yours, start the \
                 server with --trusted-proxies {peer}"
            );
        });
    }
}

/// A client's connection.
struct Client {
    router: Cors<Router>,
    peer: SocketAddr,
    acks: PromptAcks,
    stop: CancellationToken,
    patience: Duration,
}

impl Client {
    async fn connected(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // With Nagle's algorithm, a token would wait until the client has acknowledged the one before it.
        let _ = stream.set_nodelay(true);
        keep_alive(&stream);
        let acks = self.acks.clone();
        match tls {
            None => self.spoken_to(Acknowledging::new(stream, acks)).await,
            // Boxed, so that connections without TLS need no memory for it.
            Some(tls) => Box::pin(self.secure(stream, tls)).await,
        }
    }

    async fn secure(self, stream: TcpStream, tls: TlsAcceptor) {
        let peer = self.peer;
        let Some(stream) = speaking_tls(stream, peer).await else { return };
        let stream = Acknowledging::new(stream, self.acks.clone());
        match timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let stream: Io = Box::pin(stream);
                self.spoken_to(stream).await;
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS handshake"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
        }
    }

    async fn spoken_to<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // The two futures run one after the other and are not nested, so they share their memory.
        if let Some((version, stream)) = self.greeted(stream).await {
            self.serve(version, stream).await;
        }
    }

    async fn greeted<S>(&self, mut stream: S) -> Option<(Version, ClientStream<S>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let peer = self.peer;
        let greeted = tokio::select! {
            greeted = timeout(GREETING, version(&mut stream)) => greeted,
            () = self.stop.cancelled() => return None,
        };
        match greeted {
            Ok(Ok((version, first))) => {
                clear_text::warn_of_tls(&first);
                return Some((version, ClientStream::new(first, stream, self.patience)));
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection broke"),
            Err(_) => tracing::debug!(%peer, "a client said nothing"),
        }
        None
    }

    async fn serve<S>(self, version: Version, stream: ClientStream<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { router, peer, acks, stop, patience } = self;
        let io = TokioIo::new(stream);
        let rules = router.rules().clone();
        let from = move |mut request: http::Request<Incoming>| {
            let rules = rules.get();
            let client = rules.client(peer.ip(), request.uri(), request.headers());
            if client.is_by_proxy() {
                warn_of_proxy(peer.ip(), &rules);
            }
            let client = api::Client { address: client, peer: peer.ip() };
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(acks.clone());
            sockets::redirect_node(&mut request);
            request.map(axum::body::Body::new)
        };
        let service = Strict(router.map_request(from)).map_response(api::head::with_request_id);
        let served = match version {
            // In line: a function of its own would take the memory of its arguments twice.
            Version::Http1 => {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(BUFFER);
                let service = TowerToHyperService::new(service);
                let mut connection =
                    std::pin::pin!(http.serve_connection(io, service).with_upgrades());
                tokio::select! {
                    served = connection.as_mut() => served,
                    () = stop.cancelled() => {
                        // Requests in flight are finished, however long that takes.
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
            // Boxed: the future is large, and most connections speak HTTP/1.
            Version::Http2 => Box::pin(serve_http2(io, service, stop, patience)).await,
        };
        if let Err(error) = served {
            tracing::debug!(%peer, %error, "a connection broke");
        }
    }
}

/// Serves a connection of HTTP/2 until it ends. It is also ended when its client has had no stream for a while. After
/// `stop` it takes no more requests.
async fn serve_http2<S, T>(
    io: TokioIo<ClientStream<S>>,
    service: T,
    stop: CancellationToken,
    patience: Duration,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: Service<http::Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new()).keep_alive_interval(IDLE);
    http.max_send_buf_size(BUFFER);
    let streams = Streams::new();
    let counting = streams.clone();
    let service = service.map_future(move |answering| counting.answered(answering));
    let service = TowerToHyperService::new(service);
    let mut connection = std::pin::pin!(http.serve_connection(io, service));
    tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = streams.end(IDLE, patience) => {
            connection.as_mut().graceful_shutdown();
            // The end of an answer may still be on its way.
            timeout(patience, connection).await.unwrap_or(Ok(()))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn room_of<A, B, C, F: Future>(_: impl FnOnce(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// A server holds one of these for each connection, for as long as its answer lasts.
    #[test]
    fn a_connection_takes_little_memory_beside_its_buffers() {
        let room = room_of(Client::connected);
        assert!(room <= 2048, "{room} bytes");
    }

    /// A listener whose only page is larger than the socket buffers.
    async fn start(stop: &CancellationToken) -> (SocketAddr, tokio::task::JoinHandle<TaskTracker>) {
        let router = Router::new().route("/", get(async || vec![b'x'; 64 << 20]));
        let router = Cors::new(router, Live::<LocalRules>::default());
        let (address, metrics) = (([127, 0, 0, 1], 0).into(), Arc::new(Metrics::new()));
        let listener = Listener::bind(address, None, router, metrics, Live::new(PATIENCE)).unwrap();
        (listener.address().unwrap(), tokio::spawn(listener.run(stop.clone())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_closed() {
        let (address, _listening) = start(&CancellationToken::new()).await;
        for said in ["", "PRI * HT"] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert!(answer.is_empty(), "{answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_closed_and_its_answer_has_a_request_id() {
        let stop = CancellationToken::new();
        let (address, listening) = start(&stop).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut head = [0; 256];
        client.read_exact(&mut head).await.unwrap();
        assert!(String::from_utf8_lossy(&head).contains("x-request-id: r-"));
        let began = Instant::now();
        stop.cancel();
        listening.await.unwrap().wait().await;
        assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    }

    /// A frame of HTTP/2 about the whole connection (RFC 9113 section 4.1).
    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let [_, high, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[high, middle, low, kind, flags, 0, 0, 0, 0], payload].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn an_http2_client_without_requests_is_closed_whatever_frames_it_sends() {
        const SETTINGS: u8 = 4;
        const PING: u8 = 6;
        let (address, _listening) = start(&CancellationToken::new()).await;
        let ping = [frame(PING, 0, b"are you?"), frame(PING, 1, b"are you?")].concat();
        for alive in [ping, frame(SETTINGS, 0, &[]), Vec::new()] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
            client.write_all(&frame(SETTINGS, 0, &[])).await.unwrap();
            let began = Instant::now();
            while is_served(&mut client, &alive).await {
                assert!(began.elapsed() < IDLE + PATIENCE + IDLE, "it is still served");
            }
        }
    }

    /// Whether the connection is still open 10 s after these frames.
    async fn is_served(client: &mut TcpStream, frames: &[u8]) -> bool {
        let written = client.write_all(frames).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut read = [0; 16 * 1024];
        let is_open = match client.try_read(&mut read) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        written.is_ok() && is_open
    }
}
