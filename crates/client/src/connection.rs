//! One request over HTTP or HTTPS, within a deadline.

use std::{error::Error, time::Duration};

use base::{Fingerprint, Secret, redact_url};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use serde::Serialize;
use tokio::time::timeout;
use url::Url;
use wire::{ByProxy, Proxies, advised, dial::asks_for_tls, server_url, tls};

use crate::error::ClientError;

/// How long a whole answer may take. A long question about the ledger takes a few seconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// The path of the workspace's socket, below that of the server.
pub(crate) const SOCKET: &str = "/ws";

/// Connections to one server.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    client: Client<HttpsConnector<ByProxy<HttpConnector>>, Full<Bytes>>,
    base: Url,
    token: Option<HeaderValue>,
    /// Sent with each request.
    headers: HeaderMap,
}

impl Connection {
    /// A server by its URL, and the token for each request. Does not connect yet.
    pub(crate) fn new(url: &str, token: Option<&Secret>) -> Result<Self, ClientError> {
        Self::pinned(url, token, None)
    }

    /// As [`Connection::new`]. If a fingerprint is given, the server's certificate must have it.
    pub(crate) fn pinned(
        url: &str,
        token: Option<&Secret>,
        pin: Option<Fingerprint>,
    ) -> Result<Self, ClientError> {
        let base = base_url(url)?;
        let secure = base.scheme() == "https";
        let tls = tls::http_client_config(secure, pin, None)
            .map_err(|error| ClientError::NoTls(error.to_string()))?;
        let mut tcp = HttpConnector::new();
        // The connector sees `https` URLs, too; the TLS around it handles them.
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(ByProxy::new(tcp, Proxies::of_environment()));
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let token = token.map(bearer).transpose()?;
        Ok(Self { client, base, token, headers: HeaderMap::new() })
    }

    /// Sends one request and returns the body of the answer. A status other than success is an
    /// error.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Bytes, ClientError> {
        let (status, body) = self.exchange(method, path, body).await?;
        if status.is_success() { Ok(body) } else { Err(self.refusal(status, &body)) }
    }

    /// Sends one request and reads the whole answer, with any status.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let request = self.request(method, path, body)?;
        self.within(DEADLINE, self.whole(request)).await
    }

    /// As [`Connection::ask`], but the answer may take as long as `patience`.
    pub(crate) async fn ask_patiently(
        &self,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<Bytes, ClientError> {
        let request = self.request(method, path, None)?;
        let (status, body) = self.within(patience, self.whole(request)).await?;
        if status.is_success() { Ok(body) } else { Err(self.refusal(status, &body)) }
    }

    async fn whole(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let response = self.head(request).await?;
        self.stay(&response)?;
        self.read(response).await
    }

    async fn head(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        self.client.request(request).await.map_err(|error| self.unreachable(&error))
    }

    /// The time in the head of an answer of any status; `None` if the head has none.
    pub(crate) async fn date(&self, path: &str) -> Result<Option<Timestamp>, ClientError> {
        let request = self.request(Method::GET, path, None)?;
        let head = self.within(DEADLINE, self.head(request)).await?;
        let date = head.headers().get(header::DATE).and_then(|date| date.to_str().ok());
        Ok(date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok()))
    }

    /// Sends one request for a stream of events. The head of its answer must come within
    /// `patience`; the body of a success has no deadline.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        patience: Duration,
    ) -> Result<Incoming, ClientError> {
        let mut request = self.request(method, path, body)?;
        let kind = HeaderValue::from_static("text/event-stream");
        request.headers_mut().insert(header::ACCEPT, kind);
        let response = self.within(patience, self.head(request)).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let (status, body) = self.within(DEADLINE, self.read(response)).await?;
        Err(self.refusal(status, &body))
    }

    /// The error for an answer with this status and body. An answer without an error message comes from
    /// another program. If the status is a server error, it may be that of a proxy whose server is away.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> ClientError {
        match has_words(body) || status.is_server_error() {
            true => refusal(status, body),
            false => self.no_warren(&format!("it answers {status}")),
        }
    }

    /// The error for an answer that no Warren gives.
    pub(crate) fn no_warren(&self, reason: &str) -> ClientError {
        ClientError::NoWarren { url: self.shown(), reason: reason.to_owned() }
    }

    /// The same server with another token.
    pub(crate) fn showing(&self, token: Option<&Secret>) -> Result<Self, ClientError> {
        Ok(Self { token: token.map(bearer).transpose()?, ..self.clone() })
    }

    /// The same server with one more header for each request.
    pub(crate) fn with_header(
        &self,
        name: &'static str,
        value: &Secret,
    ) -> Result<Self, ClientError> {
        let mut same = self.clone();
        same.headers.insert(HeaderName::from_static(name), sensitive(value.expose())?);
        Ok(same)
    }

    async fn within<T>(
        &self,
        after: Duration,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let late = |_| ClientError::Late { url: self.shown(), after };
        timeout(after, work).await.map_err(late)?
    }

    /// The token that each request shows.
    pub(crate) fn token(&self) -> Option<Secret> {
        let token = self.token.as_ref()?.to_str().ok()?;
        token.strip_prefix("Bearer ").map(Secret::from)
    }

    /// Its URL.
    pub(crate) const fn url(&self) -> &Url {
        &self.base
    }

    /// Its URL, without secrets.
    pub(crate) fn shown(&self) -> String {
        redact_url(self.base.as_str().trim_end_matches('/'))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let url = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body.unwrap_or_default()));
        let reason = "it has no form that can be sent";
        let mut request =
            request.map_err(|_| ClientError::NotAServer { url: self.shown(), reason })?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    /// Refuses a redirection: the token must not be sent to an address that a machine in between may have named.
    fn stay(&self, response: &Response<Incoming>) -> Result<(), ClientError> {
        let location =
            response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
        let Some(location) = location.and_then(|location| location.to_str().ok()) else {
            return Ok(());
        };
        Err(self.strange(format!("it sends to {}: name that address", redact_url(location))))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<(StatusCode, Bytes), ClientError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        #[expect(clippy::disallowed_methods, reason = "limited to MAX_ANSWER")]
        let body = body.collect().await.map_err(|error| self.strange(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    fn unreachable(&self, error: &(dyn Error + 'static)) -> ClientError {
        // The library's own words only say that connecting or sending failed.
        let reason = advised(error.source().unwrap_or(error));
        ClientError::Unreachable { url: self.shown(), reason }
    }

    /// A value as a body in JSON.
    pub(crate) fn json(&self, body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(body).map_err(|error| self.strange(error.to_string()))
    }

    pub(crate) fn strange(&self, reason: String) -> ClientError {
        ClientError::Strange { url: self.shown(), reason }
    }
}

/// The URL of a server, as people write it. The URL of a WebSocket stands for its server's.
fn base_url(text: &str) -> Result<Url, ClientError> {
    let bad = |reason| ClientError::NotAServer { url: redact_url(text), reason };
    let base = server_url(text).filter(Url::has_host).ok_or_else(|| bad("it is not a URL"))?;
    let scheme = match base.scheme() {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return Err(bad("it must begin with http:// or https://")),
    };
    let mut base = without_socket(base).map_err(bad)?;
    // The library lets these four schemes replace each other.
    let _same_kind = base.set_scheme(scheme);
    Ok(base)
}

/// The URL of a server, from its own or that of its socket.
///
/// # Errors
/// What is wrong, if the URL has more than a host, a port and a path.
pub(crate) fn without_socket(mut url: Url) -> Result<Url, &'static str> {
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must end with its host, port or path");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a token is given on its own, not as part of it");
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(SOCKET).unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

fn bearer(token: &Secret) -> Result<HeaderValue, ClientError> {
    let token = token.clone().usable().map_err(|_| ClientError::BadToken)?;
    sensitive(&format!("Bearer {}", token.expose()))
}

fn sensitive(text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::try_from(text).map_err(|_| ClientError::BadToken)?;
    // The library then leaves the value out of its logs.
    value.set_sensitive(true);
    Ok(value)
}

/// The error for an answer with this status and body.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    let words = words(body, status);
    match status {
        StatusCode::NOT_FOUND => ClientError::NotFound { words },
        _ => ClientError::Refused { status: status.as_u16(), words },
    }
}

/// Whether an answer says in words what is wrong.
fn has_words(body: &[u8]) -> bool {
    let said = serde_json::from_slice::<serde_json::Value>(body).ok();
    let says = said.and_then(|said| error_words(&said)).is_some();
    says || asks_for_tls(&String::from_utf8_lossy(body))
}

/// The text of a Warren's error; without one, a text that names the status.
fn words(body: &[u8], status: StatusCode) -> String {
    let said = serde_json::from_slice::<serde_json::Value>(body).ok();
    if said.is_none() && asks_for_tls(&String::from_utf8_lossy(body)) {
        return "it speaks TLS: write https:// instead of http://".to_owned();
    }
    said.and_then(|said| error_words(&said)).unwrap_or_else(|| {
        let reason = status.canonical_reason().unwrap_or("an error");
        format!("the server answered {reason}; is it a Warren?")
    })
}

/// The text of an error object, with its hint if it has one, or of an error that is only a string.
fn error_words(said: &serde_json::Value) -> Option<String> {
    let error = &said["error"];
    let words = error.as_str().or_else(|| error["message"].as_str())?;
    Some(match error["hint"].as_str() {
        Some(hint) => format!("{words} {hint}"),
        None => words.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_show_no_password() {
        for url in ["", "/v1", "ftp://h", "http://", "http://u:pw@h", "http://h/?a=1"] {
            let error = Connection::new(url, None).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
        let secret = Secret::from("a\nb");
        assert_eq!(Connection::new("http://h", Some(&secret)).unwrap_err(), ClientError::BadToken);
        let empty = Secret::from(" \n");
        assert_eq!(Connection::new("http://h", Some(&empty)).unwrap_err(), ClientError::BadToken);
        assert!(Connection::new("http://h", Some(&Secret::from("a\n"))).is_ok());
    }

    #[test]
    fn an_address_is_understood_as_people_write_it() {
        for (text, shown) in [
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("box", "http://box:9178"),
            ("http://h:1/v1/", "http://h:1"),
            ("ws://h:1/ws", "http://h:1"),
            ("wss://h/warren/ws/", "https://h/warren"),
        ] {
            assert_eq!(Connection::new(text, None).unwrap().shown(), shown);
        }
    }

    #[test]
    fn another_program_is_not_taken_for_a_warren() {
        let connection = Connection::new("http://h:1", None).unwrap();
        for body in ["<html>", "", "404 page not found", r#"{"detail":"Not Found"}"#] {
            let error = connection.refusal(StatusCode::NOT_FOUND, body.as_bytes()).to_string();
            assert!(error.starts_with("what answers at http://h:1 is no Warren"), "{error}");
        }
        let own = connection.refusal(StatusCode::NOT_FOUND, br#"{"error":{"message":"no key"}}"#);
        assert!(own.is_not_found());
    }

    #[test]
    fn a_path_of_the_url_is_kept() {
        let connection = Connection::new("https://h:1/warren/", None).unwrap();
        let request = connection.request(Method::GET, "/admin/keys", None).unwrap();
        assert_eq!(request.uri(), "https://h:1/warren/admin/keys");
    }

    #[test]
    fn errors_speak_the_servers_words() {
        let body = br#"{"error":{"message":"there is no key k-1"}}"#;
        assert_eq!(words(body, StatusCode::NOT_FOUND), "there is no key k-1");
        let body = br#"{"error":{"code":"X","message":"No room.","hint":"Look."},"meta":{}}"#;
        assert_eq!(words(body, StatusCode::NOT_FOUND), "No room. Look.");
        assert_eq!(words(br#"{"error":"queue full"}"#, StatusCode::CONFLICT), "queue full");
        assert!(words(b"<html>", StatusCode::BAD_GATEWAY).contains("Bad Gateway"));
        let nginx = b"<center>The plain HTTP request was sent to HTTPS port</center>";
        assert!(words(nginx, StatusCode::BAD_REQUEST).contains("https://"));
    }

    #[tokio::test]
    async fn the_time_of_an_answer_is_read_whatever_its_status() {
        let server = testkit::RawServer::start().await;
        let connection = Connection::new(&server.url(), None).unwrap();
        for (head, expected) in [
            ("date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", Some("1994-11-06T08:49:37Z")),
            ("date: yesterday\r\n", None),
            ("", None),
        ] {
            let serve = async {
                let (mut connection, _) = server.request().await;
                connection
                    .json("404 Not Found", &format!("{head}connection: close\r\n"), "{}")
                    .await;
            };
            let (date, ()) = tokio::join!(connection.date("/health"), serve);
            let expected: Option<Timestamp> = expected.map(|time| time.parse().unwrap());
            assert_eq!(date.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn a_redirection_is_an_error_and_is_not_followed() {
        let server = testkit::RawServer::start().await;
        let connection = Connection::new(&server.url(), None).unwrap();
        let serve = async {
            let (mut connection, _) = server.request().await;
            let to = "location: https://box.example/?token=hidden\r\n";
            connection.json("301 Moved Permanently", to, "{}").await;
        };
        let (answer, ()) = tokio::join!(connection.ask(Method::GET, "/health", None), serve);
        let words = answer.unwrap_err().to_string();
        assert!(
            words.contains("sends to https://box.example/") && !words.contains("hidden"),
            "{words}"
        );
    }
}
