//! A link out of an HTTP upgrade.

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tungstenite::handshake::derive_accept_key;

use crate::{acks::PromptAcks, any_link::Link, io::Io, limits::Limits, link::Role, outbox::Outbox};

/// Why a request cannot become a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// The request does not ask for a WebSocket.
    #[error("this path speaks WebSocket: connect with a WebSocket client")]
    NotWebSocket,
    /// The request asks for a WebSocket version other than 13, or has no key.
    #[error("only WebSocket version 13 over HTTP/1.1 is spoken here")]
    Unsupported,
}

impl UpgradeError {
    /// The HTTP status for it.
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotWebSocket => StatusCode::UPGRADE_REQUIRED,
            Self::Unsupported => StatusCode::BAD_REQUEST,
        }
    }
}

/// A WebSocket that is agreed on but not begun. The caller sends [`Upgrade::response`] first; then
/// [`Upgrade::link`] waits until that response is sent.
#[derive(Debug)]
pub struct Upgrade {
    accept: HeaderValue,
    subprotocol: Option<&'static str>,
    acks: Option<PromptAcks>,
    upgrade: OnUpgrade,
}

impl Upgrade {
    /// Checks a request and takes its connection. Of `subprotocols`, the first that the client
    /// offers is chosen.
    ///
    /// # Errors
    /// [`UpgradeError`] when the request is no WebSocket request of version 13.
    pub fn new<B>(
        request: &mut Request<B>,
        subprotocols: &[&'static str],
    ) -> Result<Self, UpgradeError> {
        let headers = request.headers();
        if !lists(headers, header::UPGRADE, "websocket") {
            return Err(UpgradeError::NotWebSocket);
        }
        let version = headers.get(header::SEC_WEBSOCKET_VERSION);
        let key = headers.get(header::SEC_WEBSOCKET_KEY);
        let proper = request.method() == Method::GET
            && request.version() == Version::HTTP_11
            && lists(headers, header::CONNECTION, "upgrade")
            && version.is_some_and(|version| version == "13");
        let (true, Some(key)) = (proper, key) else { return Err(UpgradeError::Unsupported) };
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()))
            .map_err(|_| UpgradeError::Unsupported)?;
        let offered = |name: &&&'static str| lists(headers, header::SEC_WEBSOCKET_PROTOCOL, name);
        let subprotocol = subprotocols.iter().find(offered).copied();
        let acks = request.extensions().get().cloned();
        Ok(Self { accept, subprotocol, acks, upgrade: hyper::upgrade::on(request) })
    }

    /// The subprotocol that was chosen.
    pub fn subprotocol(&self) -> Option<&'static str> {
        self.subprotocol
    }

    /// Acknowledges without delay what comes over the link, if the connection can: some far ends wait
    /// for this before they write again.
    pub fn acknowledge_at_once(&self) {
        if let Some(acks) = &self.acks {
            acks.ask();
        }
    }

    /// The `101 Switching Protocols` to answer with.
    pub fn response<B: Default>(&self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        if let Some(name) = self.subprotocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
        }
        response
    }

    /// The link, once the response has been sent.
    ///
    /// # Errors
    /// When the client left before that.
    pub async fn link(self) -> Result<(Link, Outbox), hyper::Error> {
        self.link_within(Limits::default()).await
    }

    /// [`Upgrade::link`] with other limits than the default.
    ///
    /// # Errors
    /// When the client left before that.
    pub async fn link_within(self, limits: Limits) -> Result<(Link, Outbox), hyper::Error> {
        Ok(Link::within(self.stream().await?, Role::Server, limits))
    }

    /// The byte stream under the link, once the response has been sent: for a caller that counts its bytes
    /// before it makes a link of it.
    ///
    /// # Errors
    /// When the client left before that.
    pub async fn stream(self) -> Result<Io, hyper::Error> {
        let upgraded = self.upgrade.await?;
        Ok(Box::pin(TokioIo::new(upgraded)))
    }
}

/// Whether a comma-separated list header has an entry, in any case.
fn lists(headers: &HeaderMap, name: header::HeaderName, entry: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::get("/v1/worker/connect").body(()).unwrap();
        for (name, value) in headers {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        request
    }

    const GOOD: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn answers_with_the_key_of_the_rfc_and_the_first_subprotocol_offered() {
        let mut request = request(&GOOD);
        let offer = HeaderValue::from_static("other, warren.relay.2");
        request.headers_mut().insert("sec-websocket-protocol", offer);
        let upgrade = Upgrade::new(&mut request, &["warren.relay.2"]).unwrap();
        let response = upgrade.response::<()>();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()["sec-websocket-protocol"], "warren.relay.2");
    }

    #[test]
    fn two_ends_meet_in_the_newest_version_that_both_know() {
        let cases = [
            ("w.3, w.2", &["w.3", "w.2"][..], "w.3"),
            ("w.3, w.2", &["w.2"], "w.2"),
            ("w.2", &["w.3", "w.2"], "w.2"),
        ];
        for (offer, known, chosen) in cases {
            let mut request = request(&GOOD);
            let offer = HeaderValue::from_static(offer);
            request.headers_mut().insert("sec-websocket-protocol", offer);
            assert_eq!(Upgrade::new(&mut request, known).unwrap().subprotocol(), Some(chosen));
        }
    }

    #[test]
    fn refuses_what_is_no_websocket_request() {
        let plain = Upgrade::new(&mut request(&[]), &[]).unwrap_err();
        assert_eq!(plain, UpgradeError::NotWebSocket);
        let keyless = Upgrade::new(&mut request(&GOOD[..3]), &[]).unwrap_err();
        assert_eq!(keyless, UpgradeError::Unsupported);
    }
}
