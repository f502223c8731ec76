//! One request, with its redirects. The token goes to the hub alone.

use std::{error::Error, time::Duration};

use base::Secret;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, IF_RANGE, LOCATION, RANGE, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use url::Url;
use wire::{ByProxy, Proxies, advised, tls::http_client_config};

use crate::{HubError, Patience};

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// The longest pause that a server may ask for.
const MAX_AFTER: Duration = Duration::from_secs(300);

/// How long an unused connection is kept.
const KEEP_IDLE: Duration = Duration::from_secs(30);

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Requests {
    client: Client<HttpsConnector<ByProxy<HttpConnector>>, Empty<Bytes>>,
    token: Option<HeaderValue>,
    agent: HeaderValue,
    patience: Patience,
}

/// From where on a file is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct From {
    pub(crate) offset: u64,
    /// By which the server knows that it is still the same file.
    pub(crate) etag: Option<HeaderValue>,
    /// Up to here only; not included.
    pub(crate) until: Option<u64>,
}

/// An answer, and who gave it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Incoming>,
    pub(crate) host: String,
    /// Headers of the hub's own answer, where that was a redirect.
    pub(crate) first: HeaderMap,
    /// Whether the hub itself answered.
    pub(crate) is_hub: bool,
}

impl Requests {
    pub(crate) fn new(
        hub: &Url,
        token: Option<&Secret>,
        agent: &str,
        patience: Patience,
    ) -> Result<Self, HubError> {
        let bearer = |token: &Secret| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        let token = token.map(bearer).transpose();
        let token = token.map_err(|_: http::header::InvalidHeaderValue| HubError::Token)?;
        let agent = HeaderValue::try_from(agent).unwrap_or(HeaderValue::from_static("warren"));
        Ok(Self { client: client(hub, patience)?, token, agent, patience })
    }

    /// Asks for an address, and goes wherever the answer sends.
    pub(crate) async fn get(&self, url: &Url, from: &From) -> Result<Answer, HubError> {
        let (mut at, mut first) = (url.clone(), None);
        for _ in 0..=MAX_REDIRECTS {
            let is_hub = at.origin() == url.origin();
            let response = self.send(&at, is_hub, from).await?;
            let Some(next) = redirect(&response, &at)? else {
                let first = first.unwrap_or_default();
                return Ok(Answer { response, host: host(&at), first, is_hub });
            };
            first.get_or_insert(response.into_parts().0.headers);
            at = next;
        }
        Err(HubError::Redirect { host: host(url), reason: "there are too many in a row" })
    }

    /// A whole answer of at most `most` bytes.
    pub(crate) async fn read(&self, answer: Answer, most: usize) -> Result<Bytes, HubError> {
        let Answer { response, host, .. } = answer;
        #[expect(clippy::disallowed_methods, reason = "at most `most` bytes")]
        let body = Limited::new(response.into_body(), most).collect();
        match timeout(self.patience.head, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(HubError::Unreachable { host, reason: advised(&*error) }),
            Err(_) => {
                Err(HubError::Unreachable { host, reason: "its answer does not end".to_owned() })
            }
        }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    async fn send(
        &self,
        url: &Url,
        is_hub: bool,
        from: &From,
    ) -> Result<Response<Incoming>, HubError> {
        let unreachable = |reason: String| HubError::Unreachable { host: host(url), reason };
        let uri = Uri::try_from(url.as_str()).map_err(|error| unreachable(error.to_string()))?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, self.agent.clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = self.token.as_ref().filter(|_| is_hub) {
            headers.insert(AUTHORIZATION, token.clone());
        }
        add_range(headers, from);
        match timeout(self.patience.head, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(unreachable(advised(&error as &(dyn Error + 'static)))),
            Err(_) => Err(unreachable("no answer in time".to_owned())),
        }
    }
}

/// When to ask again, as a refusal says it.
pub(crate) fn after(headers: &HeaderMap) -> Option<Duration> {
    let secs = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(secs).min(MAX_AFTER))
}

/// Whom an address names, with the port where it is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn client(
    hub: &Url,
    patience: Patience,
) -> Result<Client<HttpsConnector<ByProxy<HttpConnector>>, Empty<Bytes>>, HubError> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(patience.connect));
    let is_secure = hub.scheme() == "https";
    // A hub without TLS may still send to a place that has it.
    let tls = http_client_config(true, None, None).or_else(|error| match is_secure {
        true => Err(error),
        false => http_client_config(false, None, None),
    });
    let tls = tls.map_err(|error| HubError::Address {
        url: hub.to_string(),
        reason: format!("TLS cannot be used: {error}"),
    })?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(ByProxy::new(tcp, Proxies::of_environment()));
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEEP_IDLE)
        .build(connector))
}

fn add_range(headers: &mut HeaderMap, from: &From) {
    let range = match from.until {
        Some(until) => format!("bytes={}-{}", from.offset, until.saturating_sub(1)),
        None if from.offset > 0 => format!("bytes={}-", from.offset),
        None => return,
    };
    // Digits only.
    if let Ok(range) = HeaderValue::try_from(range) {
        headers.insert(RANGE, range);
        headers.extend(from.etag.clone().map(|etag| (IF_RANGE, etag)));
    }
}

/// Where an answer sends; `None` when it is one.
fn redirect(response: &Response<Incoming>, at: &Url) -> Result<Option<Url>, HubError> {
    use StatusCode as Is;
    let status = response.status();
    let is_redirect = [
        Is::MOVED_PERMANENTLY,
        Is::FOUND,
        Is::SEE_OTHER,
        Is::TEMPORARY_REDIRECT,
        Is::PERMANENT_REDIRECT,
    ];
    if !is_redirect.contains(&status) {
        return Ok(None);
    }
    let refused = |reason| HubError::Redirect { host: host(at), reason };
    let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    let next = location.and_then(|to| at.join(to).ok());
    let next = next.ok_or_else(|| refused("it does not say where"))?;
    match (at.scheme(), next.scheme()) {
        ("https", "http") => Err(refused("it has no TLS")),
        (_, "http" | "https") => Ok(Some(next)),
        _ => Err(refused("it is no web address")),
    }
}
