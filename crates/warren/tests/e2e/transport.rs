//! TLS and HTTP/2: the same server over other connections.

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use serde_json::json;
use testkit::{ChildProcess, Gate, Reply, within};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::TlsConnector;

use crate::{
    cli::warren,
    common::{CHAT, binary, with_lender},
};

/// A certificate for 127.0.0.1, in files.
pub(crate) struct Certificate {
    directory: tempfile::TempDir,
    der: CertificateDer<'static>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        Self::made(IsCa::NoCa)
    }

    fn made(is_ca: IsCa) -> Self {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let signing_key = KeyPair::generate().unwrap();
        let made = CertifiedKey { cert: params.self_signed(&signing_key).unwrap(), signing_key };
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cert.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(directory.path().join("key.pem"), key).unwrap();
        Self { directory, der: made.cert.der().clone() }
    }

    /// The one that lies in a directory.
    fn within(directory: tempfile::TempDir) -> Self {
        let der = CertificateDer::from_pem_file(directory.path().join("cert.pem")).unwrap();
        Self { directory, der }
    }

    /// A certificate made by the OpenSSL command line, if that is installed.
    fn of_openssl() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=box",
            ])
            .args([
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-keyout",
                "key.pem",
                "-out",
                "cert.pem",
            ])
            .current_dir(directory.path())
            .output();
        made.is_ok_and(|made| made.status.success()).then(|| Self::within(directory))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `warren serve` with this certificate, and where it listens.
    pub(crate) async fn serve(&self, data: &tempfile::TempDir) -> (ChildProcess, SocketAddr) {
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
        let address = process.listening("https").await;
        (process, address)
    }

    /// A TLS connection that asks for `protocol`.
    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
        protocol: &[u8],
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.try_connect(address, protocol).await.unwrap()
    }

    /// The same, if the server shows this certificate.
    pub(crate) async fn try_connect(
        &self,
        address: SocketAddr,
        protocol: &[u8],
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
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
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// One request over HTTP/2.
pub(crate) async fn over_h2<S>(stream: S, request: Request<Full<Bytes>>) -> Response<Incoming>
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
    let (daemon, backend, _worker) = with_lender(1).await;
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

/// `warren`, on a machine that trusts the certificate in this file alone.
pub(crate) fn trusting(trusted: &Path, args: &[&str]) -> ChildProcess {
    let (trust, binary) =
        (format!("SSL_CERT_FILE={}", trusted.display()), binary().display().to_string());
    let args = [&[trust.as_str(), &binary], args].concat();
    ChildProcess::start("warren", "/usr/bin/env".as_ref(), &args)
}

pub(crate) fn worker(trusted: &Path, server: &str) -> ChildProcess {
    trusting(trusted, &["worker", "--demo", "--secret", "s", "--server", server])
}

/// A worker connects over TLS to a server whose certificate its machine trusts, and to no other: made by
/// a library, by OpenSSL, which lets it sign others, or by `warren cert`.
#[tokio::test]
async fn workers_connect_over_tls_to_servers_they_can_trust() {
    let own = tempfile::tempdir().unwrap();
    let directory = own.path().display().to_string();
    let made = warren(&["cert", "127.0.0.1", "--dir", &directory, "--json"]).await.json();
    assert_eq!(made["names"], json!(["127.0.0.1"]));
    let all = [
        Some(Certificate::new()),
        Some(Certificate::made(IsCa::Ca(BasicConstraints::Unconstrained))),
        Some(Certificate::within(own)),
        Certificate::of_openssl(),
    ];
    let stranger = Certificate::made(IsCa::Ca(BasicConstraints::Unconstrained));
    for certificate in all.into_iter().flatten() {
        let data = tempfile::tempdir().unwrap();
        let (server, address) = certificate.serve(&data).await;
        let server_url = format!("https://{address}");
        let distrustful = worker(&stranger.file("cert.pem"), &server_url);
        let refused = distrustful.line_with("no TLS connection").await;
        assert!(refused.contains("SSL_CERT_FILE"), "{refused}");
        let lent = worker(&certificate.file("cert.pem"), &server_url);
        lent.line_with("connected").await;
        server.line_with("worker connected").await;
        let token = std::fs::read_to_string(data.path().join("admin.token")).unwrap();
        let to = ["status", "--server", &server_url, "--admin-token", token.trim()];
        let status = trusting(&certificate.file("cert.pem"), &to);
        status.line_with("1 worker").await;
        let status = trusting(&stranger.file("cert.pem"), &to);
        status.line_with("SSL_CERT_FILE").await;
    }
}

/// Clear HTTP on a port of TLS is answered in words, and the clients repeat them; TLS on a port in
/// clear is recognised at both ends.
#[tokio::test]
async fn the_wrong_scheme_is_told_at_both_ends() {
    let certificate = Certificate::new();
    let data = tempfile::tempdir().unwrap();
    let (_server, address) = certificate.serve(&data).await;
    let in_clear = testkit::Client::new(address).get("/health").await;
    assert_eq!(in_clear.status, 400);
    let words = in_clear.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.contains("this port speaks TLS") && words.contains("https://"), "{words}");
    let trusted = certificate.file("cert.pem");
    let url = format!("http://{address}");
    // A secret of one letter would be hidden in every word.
    let lend = |url| ["worker", "--demo", "--secret", "let-me-in", "--server", url];
    trusting(&trusted, &lend(&url)).line_with("it speaks TLS: write https:// or wss://").await;
    let status = trusting(&trusted, &["status", "--server", &url, "--admin-token", "t"]);
    status.line_with("this port speaks TLS").await;

    let (daemon, _backend, _worker) = with_lender(1).await;
    let url = format!("https://{}", daemon.address());
    let told = trusting(&trusted, &lend(&url)).line_with("no TLS connection").await;
    assert!(told.contains("speaks no TLS") && told.contains("http://"), "{told}");
    let status = trusting(&trusted, &["status", "--server", &url, "--admin-token", "t"]);
    status.line_with("speaks no TLS").await;
    daemon.line_with("a client speaks TLS to this port, which has none").await;
}

/// TLS with this certificate in front of a server in clear.
async fn tls_in_front(certificate: &Certificate, server: SocketAddr) -> (SocketAddr, JoinSet<()>) {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificate.file(name));
    let chain = vec![CertificateDer::from_pem_file(cert).unwrap()];
    let key = rustls_pki_types::PrivateKeyDer::from_pem_file(key).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                // A client that does not trust the certificate leaves.
                let Ok(mut near) = acceptor.accept(stream).await else { return };
                let mut far = TcpStream::connect(server).await.unwrap();
                let _broken = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (address, serving)
}

/// A backend with a certificate of its own is trusted by name of its file, and the message that refuses it
/// says so.
#[tokio::test]
async fn a_backends_own_certificate_is_named_in_a_setting() {
    let certificate = Certificate::new();
    let (daemon, backend, _worker) = with_lender(1).await;
    let (address, _serving) = tls_in_front(&certificate, backend.address()).await;
    let url = format!("https://{address}");
    let stranger = Certificate::new();
    let (trusted, server) = (stranger.file("cert.pem"), daemon.url());
    let secret = testkit::daemon::WORKER_SECRET;
    let lend = ["worker", "--server", &server, "--secret", secret, "--backend", &url];
    let refused = trusting(&trusted, &lend).line_with("could not connect to the backend").await;
    assert!(refused.contains("--backend-ca"), "{refused}");
    let ca = certificate.file("cert.pem").display().to_string();
    let lending = trusting(&trusted, &[&lend[..], &["--backend-ca", &ca]].concat());
    lending.line_with("the models changed").await;
    daemon.has_workers(2).await;
    let bad = trusting(&trusted, &[&lend[..], &["--backend-ca", "/nowhere.pem"]].concat());
    bad.line_with("/nowhere.pem cannot be used as a certificate").await;
}

/// A certificate for another host is not accepted, trusted or not, and the message says how to make one
/// that is.
#[tokio::test]
async fn a_certificate_for_another_name_is_refused_with_the_line_that_makes_one() {
    let own = tempfile::tempdir().unwrap();
    let directory = own.path().display().to_string();
    assert_eq!(warren(&["cert", "box.lan", "--dir", &directory]).await.code, Some(0));
    let certificate = Certificate::within(own);
    let data = tempfile::tempdir().unwrap();
    let (_server, address) = certificate.serve(&data).await;
    let distrustful = worker(&certificate.file("cert.pem"), &format!("https://{address}"));
    let refused = distrustful.line_with("no TLS connection").await;
    assert!(refused.contains("box.lan") && refused.contains("warren cert NAME"), "{refused}");
}

/// A new certificate as people see it: what it is, and the commands that use it. An existing one is
/// not replaced unasked.
#[tokio::test]
async fn a_certificate_is_made_on_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().display().to_string();
    let told = warren(&["cert", "--dir", &dir]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for line in ["localhost", "127.0.0.1", "--tls-cert", "--tls-key", "SSL_CERT_FILE=", "sha-256"] {
        assert!(told.out.contains(line), "{line}: {told:?}");
    }
    let mode = |name: &str| std::fs::metadata(directory.path().join(name)).unwrap().permissions();
    assert_eq!(mode("key.pem").mode() & 0o777, 0o600);
    let again = warren(&["cert", "--dir", &dir]).await;
    assert_eq!((again.code, again.err.contains("--force")), (Some(1), true), "{again:?}");
    let forced = warren(&["cert", "--dir", &dir, "--force", "--json"]).await.json();
    let fingerprint = forced["sha256"].as_str().unwrap();
    assert!(!told.out.contains(fingerprint), "{told:?}");
    let bad = warren(&["cert", "http://box", "--dir", &dir, "--force"]).await;
    assert_eq!((bad.code, bad.err.contains("http://box")), (Some(2), true), "{bad:?}");
    let below = warren(&["cert", "--dir", &format!("{dir}/made/below"), "--json"]).await;
    assert_eq!(below.code, Some(0), "a directory that is not there is made: {below:?}");
    let in_a_file = warren(&["cert", "--dir", &format!("{dir}/key.pem/below")]).await;
    assert_eq!((in_a_file.code, in_a_file.err.contains("key.pem/below")), (Some(1), true));
}
