//! Turns an HTTP request into a link (relay protocol, walkthrough 1).

use std::{borrow::Cow, sync::Arc};

use access::{Denied, Lender, Moment};
use base::ClientAddress;
use http::{HeaderMap, Request, Response, StatusCode, header};
use protocol::relay::Version;
use rooms::{EntryError, Room};
use wire::{Link, Outbox, Upgrade};

use super::{RelayWorkers, scope::Admission, sender::Form};
use crate::refusal::refuse_link;

impl RelayWorkers {
    /// Answers a request to `/v1/worker/connect`, sent from the address `from`: `101` and a link
    /// with its own task, or a refusal before any upgrade.
    ///
    /// The secret is taken from `x-worker-secret`, `Authorization: Bearer`, or `worker_secret` (or
    /// `secret`) in the query. `provider` in the query is ignored. With `room` in the query the
    /// worker serves only the room of this code; then the secret is the room's password, and may be
    /// called `password` in the query.
    pub async fn connect<B>(
        &self,
        request: &mut Request<B>,
        from: ClientAddress,
    ) -> Response<String> {
        let upgrade = match Upgrade::new(request, &Version::NAMES) {
            Ok(upgrade) => upgrade,
            Err(error) => return refuse(error.status(), &error.to_string()),
        };
        let admission = match in_query(request.uri().query(), &["room"]).next() {
            Some(code) => {
                let password = password(request);
                match self.rooms.enter(&code, password.as_deref(), from).await {
                    Ok(room) => Admission::Room(room, from),
                    Err(refused) => return turn_away_from_room(&refused),
                }
            }
            None => match self.admit(request) {
                Ok(lender) => Admission::Lender(lender),
                Err(denied) => return turn_away(&denied),
            },
        };
        self.accept(upgrade, admission)
    }

    fn accept(&self, upgrade: Upgrade, admission: Admission) -> Response<String> {
        let response = upgrade.response();
        let form = Form::of(upgrade.subprotocol().and_then(Version::of));
        if form == Form::Plain {
            // Stock workers leave Nagle's algorithm on: a delayed acknowledgement would hold up
            // their next token.
            upgrade.acknowledge_at_once();
        }
        let workers = self.clone();
        self.links.spawn(async move {
            match upgrade.link().await {
                Ok((link, outbox)) => workers.serve_as(admission, link, outbox, form).await,
                Err(error) => tracing::debug!(%error, "a worker left before its link stood"),
            }
        });
        response
    }

    /// Serves a link within this process until it ends. `version`: the version of the binary form
    /// that both ends use; `None`: the stock form.
    pub async fn serve(&self, link: Link, outbox: Outbox, version: Option<Version>) {
        self.serve_as(Admission::Lender(Lender::own()), link, outbox, Form::of(version)).await;
    }

    /// Serves a worker that was admitted to a room. `from`: the worker's address.
    pub async fn serve_in_room(
        &self,
        room: Arc<Room>,
        from: ClientAddress,
        link: Link,
        outbox: Outbox,
        version: Option<Version>,
    ) {
        self.serve_as(Admission::Room(room, from), link, outbox, Form::of(version)).await;
    }

    /// The lender of one of the request's credentials.
    fn admit<B>(&self, request: &Request<B>) -> Result<Lender, Denied> {
        let mut denied = Denied::KeyMissing;
        let in_headers = in_headers(request.headers()).map(Cow::Borrowed);
        let in_query = in_query(request.uri().query(), &["worker_secret", "secret"]);
        for given in in_headers.chain(in_query.map(Cow::Owned)) {
            match self.settings.lenders.admit(&given, Moment::now()) {
                Ok(lender) => return Ok(lender),
                // A known key that may not be used explains more than an unknown one.
                Err(Denied::KeyUnknown) if denied != Denied::KeyMissing => {}
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }
}

fn turn_away(denied: &Denied) -> Response<String> {
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

fn in_query(query: Option<&str>, names: &'static [&str]) -> impl Iterator<Item = String> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .filter(|(name, value)| names.contains(&&**name) && !value.is_empty())
        .map(|(_, value)| value.into_owned())
}

/// The first credential of a request, as a room's password.
fn password<B>(request: &Request<B>) -> Option<String> {
    let query = in_query(request.uri().query(), &["password", "worker_secret", "secret"]);
    in_headers(request.headers()).map(str::to_owned).chain(query).next()
}

fn turn_away_from_room(refused: &EntryError) -> Response<String> {
    tracing::warn!(%refused, "a worker was refused at a room");
    let status = match refused {
        EntryError::Unknown => StatusCode::NOT_FOUND,
        EntryError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        EntryError::PasswordMissing | EntryError::PasswordWrong => StatusCode::UNAUTHORIZED,
    };
    let mut response = refuse(status, &refused.to_string());
    if let EntryError::TooMany { retry_after } = refused {
        let seconds = retry_after.as_secs().max(1);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn refuse(status: StatusCode, words: &str) -> Response<String> {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        _ => "invalid_request_error",
    };
    refuse_link(status, words, kind)
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
        let names = &["worker_secret", "secret"];
        let query = in_query(Some("provider=local&worker_secret=a%20b&secret=c&secret="), names);
        assert_eq!(query.collect::<Vec<_>>(), ["a b", "c"]);
    }
}
