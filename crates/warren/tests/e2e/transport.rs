//! TLS and HTTP/2: the same server over other connections.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde_json::json;
use testkit::{ChildProcess, Gate, MockBackend, Reply, within};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::common::{CHAT, binary, lend, serve};

/// A certificate for 127.0.0.1, in files.
struct Certificate {
    directory: tempfile::TempDir,
    der: rustls_pki_types::CertificateDer<'static>,
}

impl Certificate {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cert.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(directory.path().join("key.pem"), key).unwrap();
        Self { directory, der: made.cert.der().clone() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `warren serve` with this certificate, and where it listens.
    async fn serve(&self, data: &tempfile::TempDir) -> (ChildProcess, SocketAddr) {
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| self.file(name));
        let args = [
            "serve".as_ref(),
            "--listen".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--worker-secret".as_ref(),
            "s".as_ref(),
            "--data-dir".as_ref(),
            data.path().as_os_str(),
            "--tls-cert".as_ref(),
            cert.as_os_str(),
            "--tls-key".as_ref(),
            key.as_os_str(),
        ];
        let process = ChildProcess::start("server", binary(), &args);
        let line = process.line_with("listening on https://").await;
        let address = line.rsplit('/').next().unwrap().parse().unwrap();
        (process, address)
    }

    /// A TLS connection that asks for `protocol`.
    async fn connect(
        &self,
        address: SocketAddr,
        protocol: &[u8],
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(address).await.unwrap();
        let name = rustls_pki_types::ServerName::from(address.ip());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

/// One request over HTTP/2.
async fn over_h2<S>(stream: S, request: Request<Full<Bytes>>) -> Response<Incoming>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    within("an answer over HTTP/2", sender.send_request(request)).await.unwrap()
}

fn get(address: SocketAddr, scheme: &str, path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("{scheme}://{address}{path}")).body(Full::default()).unwrap()
}

/// A request over HTTP/2 names its host in the target, and is local all the same.
#[tokio::test]
async fn http2_is_spoken_in_clear_text_to_those_who_know() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1).await;
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let body = json!({"model": "m", "stream": true, "messages": []}).to_string();
    let request = Request::post(format!("http://{}{CHAT}", daemon.address()))
        .header("content-type", "application/json")
        .body(Full::from(body))
        .unwrap();
    gate.open(8);
    let stream = TcpStream::connect(daemon.address()).await.unwrap();
    let answer = over_h2(stream, request).await;
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let text = Limited::new(answer.into_body(), 1_024).collect().await.unwrap().to_bytes();
    assert_eq!(text, "data: 1\n\ndata: 2\n\n");
}

#[tokio::test]
async fn tls_offers_both_versions_of_http() {
    let certificate = Certificate::new();
    let data = tempfile::tempdir().unwrap();
    let (_server, address) = certificate.serve(&data).await;
    let stream = certificate.connect(address, b"h2").await;
    let answer = over_h2(stream, get(address, "https", "/health")).await;
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    let stream = certificate.connect(address, b"http/1.1").await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = get(address, "https", "/health");
    request.headers_mut().insert("host", address.to_string().parse().unwrap());
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
}

/// A worker connects over TLS to a server whose certificate its machine trusts, and to no other.
#[tokio::test]
async fn workers_connect_over_tls_to_servers_they_can_trust() {
    let certificate = Certificate::new();
    let data = tempfile::tempdir().unwrap();
    let (server, address) = certificate.serve(&data).await;
    let server_url = format!("https://{address}");
    let worker = |trusted: &str| {
        let trust = format!("SSL_CERT_FILE={trusted}");
        let binary = binary().display().to_string();
        let lend = ["worker", "--demo", "--secret", "s", "--server", &server_url];
        let args = [&[trust.as_str(), &binary], &lend[..]].concat();
        ChildProcess::start("worker", "/usr/bin/env".as_ref(), &args)
    };
    let stranger = Certificate::new();
    let distrustful = worker(&stranger.file("cert.pem").display().to_string());
    distrustful.line_with("no TLS connection").await;
    let trusting = worker(&certificate.file("cert.pem").display().to_string());
    trusting.line_with("connected").await;
    server.line_with("worker connected").await;
}
