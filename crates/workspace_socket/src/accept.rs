//! The way from an HTTP request to a connection.

use std::{sync::Arc, time::Duration};

use access::{Foreign, LocalRules, has_session_form};
use base::{ClientAddress, Secret};
use http::{Request, Response, StatusCode};
use protocol::workspace::{Role, limits::MAX_BEFORE_AUTH};
use tokio::time::timeout;
use tracing::Instrument as _;
use wire::{Io, Limits, Link, Upgrade, UpgradeError, link};

use crate::{
    admission::Admission,
    client::Client,
    gate,
    greeting::{self, Rejection},
    strangers::Stranger,
};

/// The deadline of an upgrade, which begins when its response is handed over.
const UPGRADE: Duration = Duration::from_secs(10);
/// The time that a stopping server gives its clients to close.
const FAREWELL: Duration = Duration::from_secs(5);

/// Small buffers, since there may be thousands of idle links and most messages are short.
const LIMITS: Limits = Limits {
    max_message: MAX_BEFORE_AUTH,
    read_buffer: 16 * 1024,
    write_buffer: 128 * 1024,
    fragment: 15 * 1024 * 1024,
};

/// Closes all connections and accepts no new ones. Waits for [`FAREWELL`] at most.
pub(crate) async fn close(admission: &Admission) {
    admission.closing.cancel();
    // The tracker can be waited for only once it is closed.
    admission.links.close();
    if timeout(FAREWELL, admission.links.wait()).await.is_err() {
        tracing::debug!("some clients are not done yet");
    }
}

/// Answers a request for an upgrade. If it is accepted, a task serves the connection.
pub(crate) fn connect<B>(
    admission: &Arc<Admission>,
    request: &mut Request<B>,
    from: ClientAddress,
) -> Response<String> {
    let local = admission.local.get();
    if !local.takes_socket(from.ip(), request.uri(), request.headers()) {
        return refuse(StatusCode::FORBIDDEN, page_refused(&local, request));
    }
    if admission.closing.is_cancelled() {
        let words = "the server is stopping".to_owned();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    }
    let Some(stranger) = admission.strangers.admit(from) else {
        let words = "too many connections have not said who they are: try again".to_owned();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    };
    let session = session(request);
    let upgrade = match Upgrade::new(request, &[]) {
        Ok(upgrade) => upgrade,
        Err(error) => return no_upgrade(error),
    };
    let response = upgrade.response();
    let serving = Arc::clone(admission);
    admission.links.spawn(async move {
        match timeout(UPGRADE, upgrade.stream()).await {
            Ok(Ok(io)) => serve(&serving, io, from, stranger, session).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client left before its link stood"),
            Err(_) => tracing::debug!("a client did not take the response to its upgrade"),
        }
    });
    response
}

/// Why a page gets no socket, and what to do.
fn page_refused<B>(local: &LocalRules, request: &Request<B>) -> String {
    let words = "the workspace takes no pages of other origins, nor such that were led here by a name that \
                 is not the server's";
    match Foreign::of(local, request.uri(), request.headers()) {
        Some(foreign) => format!("{words}: start the server with `{}`", foreign.flags()),
        None => format!("{words}: see --allow-origin and --allow-host"),
    }
}

/// The page session that a request was sent with. It is in a cookie that the page itself cannot read.
fn session<B>(request: &Request<B>) -> Option<Secret> {
    let presented = access::presented(request.headers());
    presented.filter(|text| has_session_form(text)).map(Secret::from)
}

/// Serves a link, from its first byte to its end. `session`: the page session of the web page that opened it.
pub(crate) async fn serve(
    admission: &Arc<Admission>,
    io: Io,
    from: ClientAddress,
    stranger: Stranger,
    session: Option<Secret>,
) {
    let (io, gate) = gate::gated(io);
    let (mut link, outbox) = Link::within(io, link::Role::Server, LIMITS);
    let greeted = tokio::select! {
        greeted = greeting::greet(admission, &mut link, &outbox, from, session) => greeted,
        () = admission.closing.cancelled() => Err(Rejection::Goodbye(1001, "the server is stopping")),
    };
    match greeted {
        Ok(admitted) => {
            let is_administrator = admitted.me.role == Role::Admin;
            gate.admit(admission.large.claim(&admitted.me.who, is_administrator));
            // The client has a permit of its own now, so its place among the strangers becomes free.
            drop(stranger);
            let client = Client::new(admission, admitted, link, outbox, gate);
            let span = client.span();
            client.run().instrument(span).await;
        }
        Err(Rejection::Goodbye(code, reason)) => link.close(code, reason).await,
        Err(Rejection::Left) => {}
    }
}

fn no_upgrade(error: UpgradeError) -> Response<String> {
    refuse(error.status(), error.to_string())
}

fn refuse(status: StatusCode, words: String) -> Response<String> {
    let mut response = Response::new(words);
    *response.status_mut() = status;
    response
}
