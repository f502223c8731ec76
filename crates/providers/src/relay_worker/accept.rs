//! From an HTTP request to a link (relay protocol, walkthrough 1).

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
        if !self.knows_secret(request) {
            tracing::warn!("a worker was refused: its secret is not this server's");
            let words = "worker authentication failed: the secret is missing or wrong";
            return refuse(StatusCode::UNAUTHORIZED, words);
        }
        let response = upgrade.response();
        let form = upgrade.subprotocol().map_or(Form::Plain, |_| Form::Binary);
        let workers = self.clone();
        tokio::spawn(async move {
            match upgrade.link().await {
                Ok((link, outbox)) => workers.serve(link, outbox, form == Form::Binary).await,
                Err(error) => tracing::debug!(%error, "a worker left before its link stood"),
            }
        });
        response
    }

    /// Serves a link until it ends. `binary`: both ends speak `warren.relay.2`.
    pub async fn serve(&self, link: Link, outbox: Outbox, binary: bool) {
        let form = if binary { Form::Binary } else { Form::Plain };
        link::run(&self.settings, &self.scheduler, link, outbox, form).await;
    }

    fn knows_secret<B>(&self, request: &Request<B>) -> bool {
        let secret = &self.settings.secret;
        let in_headers = in_headers(request.headers()).any(|given| secret.matches(given));
        in_headers || in_query(request.uri().query()).any(|given| secret.matches(&given))
    }
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
    let kind = if status == StatusCode::UNAUTHORIZED {
        "authentication_error"
    } else {
        "invalid_request_error"
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
