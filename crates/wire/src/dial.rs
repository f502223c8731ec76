//! A link to a server.

use std::{io, sync::Arc, time::Duration};

use base::Fingerprint;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rand::RngExt;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use tungstenite::handshake::derive_accept_key;
use url::Url;

use crate::{
    advice::{Advice, advised},
    any_link::Link,
    io::Io,
    link::Role,
    outbox::Outbox,
    proxy::{Proxies, ProxyError, bare},
    tls,
};

/// The most that is read of a refusal's body.
const MAX_REFUSAL: usize = 4 * 1024;

/// Where and how to dial.
#[derive(Debug, Clone)]
pub struct Dial<'a> {
    /// `ws`, `wss`, `http` or `https`, with path and query.
    pub url: &'a Url,
    /// Headers of the upgrade request beside those of WebSocket.
    pub headers: HeaderMap,
    /// Subprotocols offered, the best first.
    pub subprotocols: &'a [&'a str],
    /// The proxies by which hosts are reached; usually [`Proxies::of_environment`].
    pub proxies: &'a Proxies,
    /// The fingerprint of the server's certificate; `None`: it must be one that this machine trusts.
    pub pin: Option<Fingerprint>,
    /// How long dialling may take, until the link is established.
    pub deadline: Duration,
}

/// A link that is established.
#[derive(Debug)]
pub struct DialedLink {
    /// The link.
    pub link: Link,
    /// The queue into the link.
    pub outbox: Outbox,
    /// The subprotocol that the server chose.
    pub subprotocol: Option<String>,
    /// The headers of the server's answer. Some servers accept a subprotocol that they do not know. A
    /// header that the client did not send shows for certain what the server knows.
    pub headers: HeaderMap,
}

/// Why no link came about.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The URL cannot be dialled.
    #[error("{0} is no address of a server: it must begin with http://, https://, ws:// or wss://")]
    Url(String),
    /// The connection to that address failed.
    #[error("could not connect to {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The proxy of the environment gave no way to that address.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The certificate was not accepted, or TLS failed otherwise.
    #[error("no TLS connection to {host}")]
    Tls {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The connection was made, and broke before the server had answered.
    #[error("the connection to {host} ended before the server answered")]
    Broken {
        /// The host.
        host: String,
        /// Why.
        source: hyper::Error,
    },
    /// The server answered, but not with a WebSocket.
    #[error("{}", refusal_words(*status, body))]
    Refused {
        /// The server's status.
        status: StatusCode,
        /// The beginning of its body; [`PAGE`] for a web page, and the target of a redirection.
        body: String,
    },
    /// The server's answer is not WebSocket.
    #[error("the server's answer is no WebSocket handshake: {0}")]
    Handshake(String),
    /// The server did not prove that it is the intended one, so no secret was sent to it.
    #[error("{0}")]
    NotTheServer(String),
    /// No link within the deadline.
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
}

/// Dials a server and upgrades to WebSocket.
///
/// # Errors
/// [`DialError`], which names the failed step.
pub async fn dial(dial: Dial<'_>) -> Result<DialedLink, DialError> {
    let deadline = dial.deadline;
    timeout(deadline, dial_now(dial)).await.map_err(|_| DialError::Timeout(deadline))?
}

async fn dial_now(dial: Dial<'_>) -> Result<DialedLink, DialError> {
    let secure = match dial.url.scheme() {
        "ws" | "http" => false,
        "wss" | "https" => true,
        _ => return Err(DialError::Url(base::redact_url(dial.url.as_str()))),
    };
    let io = connect(&dial, secure).await?;
    let key = tungstenite::handshake::client::generate_key();
    let request = request(&dial, &key)?;
    let not_http = |error| unanswered(dial.url, error);
    let response = send(io, request).await.map_err(not_http)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response).await);
    }
    let accept = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accept.is_none_or(|accept| accept != derive_accept_key(key.as_bytes()).as_str()) {
        return Err(DialError::Handshake("its key does not match".to_owned()));
    }
    let chosen = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
    let subprotocol = chosen.and_then(|name| name.to_str().ok()).map(str::to_owned);
    let headers = response.headers().clone();
    let upgraded = hyper::upgrade::on(response).await.map_err(not_http)?;
    let (link, outbox) = Link::new(Box::pin(TokioIo::new(upgraded)), Role::Client);
    Ok(DialedLink { link, outbox, subprotocol, headers })
}

async fn connect(dial: &Dial<'_>, secure: bool) -> Result<Io, DialError> {
    let (url, proxies) = (dial.url, dial.proxies);
    let shown = || DialError::Url(base::redact_url(url.as_str()));
    let host = url.host_str().ok_or_else(shown)?;
    let port = url.port().unwrap_or(if secure { 443 } else { 80 });
    let stream = match proxies.towards(secure, host, port).map_err(ProxyError::from)? {
        Some(proxy) => proxy.connect(host, port).await?,
        None => directly(host, port).await?,
    };
    if !secure {
        return Ok(Box::pin(stream));
    }
    let untrusted = |source| DialError::Tls { host: host.to_owned(), source: with_advice(source) };
    let config = match dial.pin {
        Some(pin) => tls::pinned_client_config(pin).map(Arc::new),
        None => tls::client_config(),
    };
    let config = config.map_err(untrusted)?;
    let name = bare(host).to_owned();
    let name = rustls_pki_types::ServerName::try_from(name).map_err(|_| shown())?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(untrusted)?;
    Ok(Box::pin(stream))
}

async fn directly(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let unreachable = |source| {
        let address = format!("{host}:{port}");
        DialError::Connect { address, source: with_advice(source) }
    };
    let stream = TcpStream::connect((bare(host), port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(stream)
}

/// Adds advice to the error, if there is any.
fn with_advice(error: io::Error) -> io::Error {
    match Advice::on(&error) {
        Some(_) => io::Error::new(error.kind(), advised(&error)),
        None => error,
    }
}

fn request(dial: &Dial<'_>, key: &str) -> Result<Request<Empty<bytes::Bytes>>, DialError> {
    let bad = |error: http::Error| DialError::Handshake(error.to_string());
    let target = &dial.url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &dial.url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request = Request::get(target)
        .header(header::HOST, host)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, key)
        .body(Empty::new())
        .map_err(bad)?;
    request.headers_mut().extend(dial.headers.clone());
    if !dial.subprotocols.is_empty() {
        let offer = HeaderValue::try_from(dial.subprotocols.join(", "));
        let offer = offer.map_err(|error| bad(error.into()))?;
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, offer);
    }
    Ok(request)
}

async fn send(
    io: Io,
    request: Request<Empty<bytes::Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io)).await?;
    // The task ends with the connection. The connection ends with the response, or with the link.
    tokio::spawn(connection.with_upgrades());
    sender.send_request(request).await
}

/// The error for a server that gave no answer, or one that is not HTTP.
fn unanswered(url: &Url, source: hyper::Error) -> DialError {
    if source.is_parse() || source.is_user() {
        return DialError::Handshake(advised(&source));
    }
    DialError::Broken { host: url.host_str().unwrap_or_default().to_owned(), source }
}

async fn refusal(response: Response<Incoming>) -> DialError {
    let status = response.status();
    let location = response.headers().get(header::LOCATION).filter(|_| status.is_redirection());
    if let Some(location) = location.and_then(|location| location.to_str().ok()) {
        return DialError::Refused { status, body: base::redact_url(location) };
    }
    let body = beginning(response.into_body()).await;
    let body = String::from_utf8_lossy(&body).trim().to_owned();
    // Servers that speak TLS may answer clear HTTP with a web page. Its words say what is wrong, so
    // they are kept.
    let is_page = body.starts_with('<') && !asks_for_tls(&body);
    DialError::Refused { status, body: if is_page { PAGE.to_owned() } else { body } }
}

/// The first bytes of a body: those that come before it breaks off, and at most [`MAX_REFUSAL`].
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_REFUSAL
        && let Some(Ok(frame)) = body.frame().await
    {
        let data = frame.into_data().unwrap_or_default();
        bytes.extend_from_slice(&data[..data.len().min(MAX_REFUSAL - bytes.len())]);
    }
    bytes
}

/// Stands for the body of a refusal that is a web page, which is of no use at a terminal.
pub const PAGE: &str = "(a web page)";

/// The advice about a proxy in front of a server: it must let links through.
const PASS_ON: &str = "a proxy in front of the server has to pass the WebSocket upgrade on: its headers \
                       `Upgrade` and `Connection`";

/// The meaning of a status other than 101 in a server's answer to a WebSocket handshake.
fn refusal_words(status: StatusCode, body: &str) -> String {
    let told = if body.is_empty() { status.to_string() } else { format!("{status} {body}") };
    let nothing = body.is_empty() || body == PAGE;
    match status.as_u16() {
        _ if asks_for_tls(body) => {
            format!("the server refused: {status}: it speaks TLS: write https:// or wss://")
        }
        300..=399 if !nothing => {
            format!("the server refused: {status}: it sends to {body}: name that address")
        }
        426 => format!("the WebSocket upgrade did not reach the server ({status}): {PASS_ON}"),
        200..=299 => format!("the server answered {status} instead of a WebSocket: {PASS_ON}"),
        404 => format!(
            "the server refused: {told}; is the address right, its path too? If so, {PASS_ON}"
        ),
        502..=504 if nothing => {
            format!(
                "a proxy in front of the server does not reach it ({told}): does the server run?"
            )
        }
        400 if body.contains("WebSocket") => format!("the server refused: {told}; {PASS_ON}"),
        _ if body == PAGE => {
            format!("the server refused: {told}: is it a Warren? If so, {PASS_ON}")
        }
        _ => format!("the server refused: {told}"),
    }
}

/// Whether these are the words with which servers that speak TLS answer clear HTTP.
pub fn asks_for_tls(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    ["plain http request was sent to https", "http request to an https server", PORT_OF_TLS]
        .iter()
        .any(|words| body.contains(words))
}

/// The words with which a Warren server answers clear HTTP on a TLS port.
const PORT_OF_TLS: &str = "this port speaks tls";

/// A random number for a [`base::Backoff`].
pub fn jitter() -> u32 {
    rand::rng().random()
}

#[cfg(test)]
mod tests;
