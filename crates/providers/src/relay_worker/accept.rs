//! From an HTTP request to a link (relay protocol, walkthrough 1).

use std::borrow::Cow;

use access::{Denied, Lender, Moment};
use http::{HeaderMap, Request, Response, StatusCode, header};
use protocol::{openai, relay::SUBPROTOCOL};
use wire::{Link, Outbox, Upgrade};

use super::{RelayWorkers, link, sender::Form};

impl RelayWorkers {
    /// Answers a request to `/v1/worker/connect`: `101` and a link of its own task, or a refusal
    /// before any upgrade.
    ///
    /// The secret is taken from `x-worker-secret`, `Authorization: Bearer`, or `worker_secret` (or
    /// `secret`) in the query. `provider` in the query is accepted, and means nothing here.
    pub fn connect<B>(&self, request: &mut Request<B>) -> Response<String> {
        let upgrade = match Upgrade::new(request, &[SUBPROTOCOL]) {
            Ok(upgrade) => upgrade,
            Err(error) => return refuse(error.status(), &error.to_string()),
        };
        let lender = match self.admit(request) {
            Ok(lender) => lender,
            Err(denied) => return turn_away(denied),
        };
        let response = upgrade.response();
        let form = upgrade.subprotocol().map_or(Form::Plain, |_| Form::Binary);
        let workers = self.clone();
        tokio::spawn(async move {
            match upgrade.link().await {
                Ok((link, outbox)) => workers.serve_as(lender, link, outbox, form).await,
                Err(error) => tracing::debug!(%error, "a worker left before its link stood"),
            }
        });
        response
    }

    /// Serves a link of this process until it ends. `binary`: both ends speak `warren.relay.2`.
    pub async fn serve(&self, link: Link, outbox: Outbox, binary: bool) {
        let form = if binary { Form::Binary } else { Form::Plain };
        self.serve_as(Lender::own(), link, outbox, form).await;
    }

    /// Serves a link until it ends, or its lender may no longer lend.
    async fn serve_as(&self, lender: Lender, link: Link, outbox: Outbox, form: Form) {
        link::run(&self.settings, &self.scheduler, lender, link, outbox, form).await;
    }

    /// Whoever one of the request's credentials belongs to.
    fn admit<B>(&self, request: &Request<B>) -> Result<Lender, Denied> {
        let mut denied = Denied::KeyMissing;
        let in_headers = in_headers(request.headers()).map(Cow::Borrowed);
        for given in in_headers.chain(in_query(request.uri().query()).map(Cow::Owned)) {
            match self.settings.lenders.admit(&given, Moment::now()) {
                Ok(lender) => return Ok(lender),
                // The first that is known to be no good tells more than one that is not known.
                Err(Denied::KeyUnknown) if denied != Denied::KeyMissing => {}
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }
}

fn turn_away(denied: Denied) -> Response<String> {
    tracing::warn!(%denied, "a worker was refused");
    let words = match denied {
        Denied::KeyMissing | Denied::KeyUnknown => "the secret is missing or wrong".to_owned(),
        known => known.to_string(),
    };
    let status = match denied {
        Denied::Scope(_) => StatusCode::FORBIDDEN,
        _ => StatusCode::UNAUTHORIZED,
    };
    refuse(status, &format!("worker authentication failed: {words}"))
}

fn in_headers(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let own = headers.get("x-worker-secret").and_then(|value| value.to_str().ok());
    own.into_iter().chain(access::presented(headers))
}

fn in_query(query: Option<&str>) -> impl Iterator<Item = String> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .filter(|(name, _)| name == "worker_secret" || name == "secret")
        .map(|(_, value)| value.into_owned())
}

fn refuse(status: StatusCode, words: &str) -> Response<String> {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        _ => "invalid_request_error",
    };
    let mut response = Response::new(openai::error_body(words, kind, None, None));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_headers_and_query() {
        let headers = |name: &'static str, value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            [(http::HeaderName::from_static(name), value)].into_iter().collect::<HeaderMap>()
        };
        assert_eq!(in_headers(&headers("x-worker-secret", "s")).collect::<Vec<_>>(), ["s"]);
        assert_eq!(in_headers(&headers("authorization", "Bearer s")).collect::<Vec<_>>(), ["s"]);
        let query = in_query(Some("provider=local&worker_secret=a%20b&secret=c"));
        assert_eq!(query.collect::<Vec<_>>(), ["a b", "c"]);
    }
}
