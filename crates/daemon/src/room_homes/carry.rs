//! A request on its way to its room's home, over a stream between the servers: first a description of the client, then
//! HTTP/1.1.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use api::PassedOn;
use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use hyper::{
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    client::conn::http1,
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use protocol::headers::{is_hop_by_hop, named_by_connection};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use wire::PromptAcks;

/// The description of a client, as the first bytes of a stream: its length in two bytes, then JSON.
pub(super) fn words(passed_on: &PassedOn) -> Vec<u8> {
    // It has only numbers, texts and addresses, which always become JSON, and is short.
    let json = serde_json::to_vec(passed_on).unwrap_or_default();
    let length = u16::try_from(json.len()).unwrap_or(0);
    [&length.to_be_bytes(), json.as_slice()].concat()
}

/// Sends a request over a stream on which the client was described already, and returns the answer. If the protocol is
/// upgraded, a task of `links` joins the client and the home.
///
/// # Errors
/// Why no answer came, in words.
pub(super) async fn over<S>(
    stream: S,
    mut request: Request,
    links: &TaskTracker,
) -> Result<Response, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let client = is_upgrade(&request).then(|| taken_over(&mut request));
    adapt(&mut request, client.is_some());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let connection = async move {
        // If the connection breaks, the request or its answer fails.
        let _broken = connection.with_upgrades().await;
    };
    let connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let mut response = sender.send_request(request).await.map_err(|error| lost(&error))?;
    match client {
        Some(client) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            let home = hyper::upgrade::on(&mut response);
            drop(connection.detach());
            links.spawn(join(client, home));
            Ok(response.map(|_| Body::empty()))
        }
        _ => Ok(response.map(|body| Body::new(CarriedAnswer { body, _connection: connection }))),
    }
}

fn lost(error: &hyper::Error) -> String {
    match error.is_canceled() || error.is_incomplete_message() {
        true => "it was lost".to_owned(),
        false => base::error::chain(error),
    }
}

/// The client's connection, for the time after the upgrade.
fn taken_over(request: &mut Request) -> OnUpgrade {
    if let Some(acks) = request.extensions().get::<PromptAcks>() {
        // A stock worker may wait for prompt acknowledgements, and the home does not have its connection.
        acks.ask();
    }
    hyper::upgrade::on(request)
}

fn is_upgrade(request: &Request) -> bool {
    let connection = request.headers().get_all(header::CONNECTION);
    let mut named =
        connection.iter().filter_map(|value| value.to_str().ok()).flat_map(named_by_connection);
    *request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && request.headers().contains_key(header::UPGRADE)
        && named.any(|name| name == "upgrade")
}

/// Changes a request of any version of HTTP into one of HTTP/1.1 for the connection between the servers.
fn adapt(request: &mut Request, upgrades: bool) {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    // It was a part of a URI, so it parses.
    *request.uri_mut() = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    let upgrade = headers.get(header::UPGRADE).cloned();
    connection_headers(headers).iter().for_each(|name| drop(headers.remove(name)));
    // This server has answered it to the client already.
    headers.remove(header::EXPECT);
    if let Some(upgrade) = upgrade.filter(|_| upgrades) {
        headers.insert(header::UPGRADE, upgrade);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

fn connection_headers(headers: &HeaderMap) -> Vec<HeaderName> {
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok()).flat_map(named_by_connection);
    let named = named.filter_map(|name| HeaderName::try_from(name).ok());
    let known = headers.keys().filter(|name| is_hop_by_hop(name.as_str())).cloned();
    named.chain(known).collect()
}

/// Passes on the bytes between the client and the home, until both have ended.
async fn join(client: OnUpgrade, home: OnUpgrade) {
    let (Ok(client), Ok(home)) = tokio::join!(client, home) else { return };
    let ended = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(home)).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a room at another server broke");
    }
}

/// An answer on its way. If it is dropped, its connection ends, and so the home hears that the client has left.
struct CarriedAnswer {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

impl HttpBody for CarriedAnswer {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        frame.map_err(|_| "the server that the room is at was lost".to_owned())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::{super::serve, *};

    fn request(version: Version, headers: &[(&'static str, &'static str)]) -> Request {
        let mut request = Request::get("http://host/rooms/A?x=1").version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn what_concerns_the_clients_connection_goes_no_further() {
        let headers = [
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("authorization", "Bearer pw"),
            ("cookie", "a=b"),
        ];
        let mut request = request(Version::HTTP_2, &headers);
        assert!(!is_upgrade(&request));
        adapt(&mut request, false);
        let left: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["authorization", "cookie"]);
        assert_eq!(
            (request.uri().to_string(), request.version()),
            ("/rooms/A?x=1".to_owned(), Version::HTTP_11)
        );
    }

    /// The answer of a home that takes each request over and says what it hears.
    async fn taken_over_by(home: tokio::io::DuplexStream) {
        let service = hyper::service::service_fn(async |mut request: Request<Incoming>| {
            let client = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut client = TokioIo::new(client.await.unwrap());
                let mut heard = [0; 2];
                client.read_exact(&mut heard).await.unwrap();
                client.write_all(&heard).await.unwrap();
            });
            let response = Response::builder().status(101);
            let response = response.header("connection", "upgrade").header("upgrade", "websocket");
            Ok::<_, std::convert::Infallible>(response.body(Body::empty()).unwrap())
        });
        let serving = serve::http().serve_connection(TokioIo::new(home), service);
        serving.with_upgrades().await.unwrap();
    }

    #[tokio::test]
    async fn client_and_home_are_joined_when_the_protocol_changes() {
        let (near, far) = tokio::io::duplex(1024);
        let (client, client_end) = tokio::io::duplex(1024);
        tokio::spawn(taken_over_by(far));
        let links = TaskTracker::new();
        let stream = std::sync::Mutex::new(Some(near));
        // The server that the client reached is a real one: only that can hand its connection over.
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let (stream, links) = (stream.lock().unwrap().take().unwrap(), links.clone());
            async move { over(stream, request.map(Body::new), &links).await }
        });
        let http = hyper::server::conn::http1::Builder::new();
        tokio::spawn(http.serve_connection(TokioIo::new(client_end), service).with_upgrades());
        let mut client = client;
        let bytes =
            b"GET /tunnel HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
        client.write_all(bytes).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(client.read_u8().await.unwrap()));
        }
        assert!(
            head.starts_with("HTTP/1.1 101") && head.contains("\r\nconnection: upgrade\r\n"),
            "{head}"
        );
        client.write_all(b"hi").await.unwrap();
        let mut heard = [0; 2];
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hi");
    }

    #[test]
    fn a_change_of_the_protocol_is_asked_for_again() {
        let headers = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        let mut upgrade = request(Version::HTTP_11, &headers);
        assert!(is_upgrade(&upgrade) && !is_upgrade(&request(Version::HTTP_2, &headers)));
        adapt(&mut upgrade, true);
        assert_eq!(upgrade.headers()["connection"], "upgrade");
        assert_eq!(upgrade.headers()["upgrade"], "websocket");
    }
}
