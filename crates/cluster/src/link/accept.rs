//! Links that other members open.

use std::sync::{Arc, atomic::Ordering};

use base::{ClientAddress, NodeId};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use replica::Kind;
use wire::{Limits, Upgrade};

use super::{
    carrier::Carrier,
    handshake::{self, Choice, HandshakeError, MAX_MESSAGE},
    hello::Hello,
};
use crate::{
    invite::{
        book::{InviteId, NotTaken},
        host,
    },
    member::Member,
    parting::{TAKEN_OUT, is_taken_out},
    plain::{self, greeting},
    shared::Shared,
    tokens,
};

/// The subprotocol of links between two Warrens.
pub(crate) const SUBPROTOCOL: &str = "warren.peer.1";
/// The header in which each end names its public key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("warren-peer-key");
/// The header in which a joining machine names its invitation.
pub(crate) const INVITE: HeaderName = HeaderName::from_static("warren-peer-invite");

/// The refusal of a link that a machine opened to itself.
pub(super) const ITSELF: &str = "it is this machine itself";

/// Answers a request for an upgrade at `/peer`, and runs the link in a task of its own.
pub(crate) fn accept<B>(
    shared: &Arc<Shared>,
    request: &mut Request<B>,
    from: ClientAddress,
) -> Response<String> {
    if request.headers().contains_key(http::header::ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "web pages cannot be members of a cluster");
    }
    let key = request.headers().get(KEY).and_then(|key| key.to_str().ok()?.parse().ok());
    let invite = request.headers().get(INVITE).map(|id| id.to_str().ok().and_then(InviteId::read));
    let upgrade = match Upgrade::new(request, &[SUBPROTOCOL]) {
        Ok(upgrade) => upgrade,
        Err(error) => return refusal(error.status(), &error.to_string()),
    };
    let key = key.filter(|_| upgrade.subprotocol().is_some());
    if key.is_none() && !greeting::is_allowed(shared, from) {
        return refusal(
            StatusCode::FORBIDDEN,
            "this peer speaks no sealed link, and plain peers are not allowed from here",
        );
    }
    if shared.is_closed.load(Ordering::Relaxed) {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "this machine is stopping");
    }
    if !shared.strangers.admit(from) {
        return refusal(StatusCode::TOO_MANY_REQUESTS, "too many attempts from this address");
    }
    let mut response = upgrade.response();
    let Some(key) = key else {
        let Ok(place) = Arc::clone(&shared.plain_strangers).try_acquire_owned() else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many peers are greeting");
        };
        plain::link::accept(shared, upgrade, place, from);
        return response;
    };
    if let Ok(own) = HeaderValue::try_from(shared.this.identity.node_id().to_string()) {
        response.headers_mut().insert(KEY, own);
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let running = match invite {
            Some(invite) => run_invited(&shared, upgrade, key, invite).await,
            None => run(&shared, upgrade, key).await,
        };
        if let Err(error) = running {
            shared.strangers.failed(from);
            let error = base::error::chain(&error);
            // While a machine joins, members may dial it a moment before it has the token. That is
            // no warning.
            if shared.this.token().is_none() {
                tracing::info!(%from, error, "a member's link was refused with these words");
            } else {
                tracing::warn!(%from, error, "a member's link was refused with these words");
            }
        }
    });
    response
}

async fn run(shared: &Arc<Shared>, upgrade: Upgrade, key: NodeId) -> Result<(), HandshakeError> {
    answer(shared, carrier(upgrade).await?, key).await
}

/// Answers a member that shows this key, over any carrier, and runs the link until it ends.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    carrier: Carrier,
    key: NodeId,
) -> Result<(), HandshakeError> {
    let Some(token) = shared.this.token() else {
        return Err(refuse(carrier, "this machine is in no cluster").await);
    };
    let choose = async |hello: &Hello| choose(shared, hello, &key).await;
    let own = &shared.this.identity;
    let proven = handshake::respond(carrier, own, key, &token.secret, choose).await?;
    let node = proven.hello.node_id.clone();
    if is_taken_out(shared, &node).await {
        return Err(refuse(proven.carrier, TAKEN_OUT).await);
    }
    let met_by = proven.token;
    let greet = |outbox: &_| tokens::hand_over(shared, &key, met_by, outbox);
    let end = shared.links.run(proven, None, greet).await;
    shared.link_ended(&node, &end);
    Ok(())
}

/// Which token a member proves, and the answer to its hello. A former token is enough for a member
/// whose key is known.
async fn choose(shared: &Shared, hello: &Hello, key: &NodeId) -> Choice {
    let (other, is_enough) = match tokens::meant(shared, hello, key).await {
        Ok(meant) => meant,
        Err(error) => return Err(base::error::chain(&error)).into(),
    };
    let answer = admit(shared, hello, key).and(is_enough);
    let own = other.as_ref().or(shared.this.token().as_ref()).map(|key| key.tag);
    Choice {
        other_secret: other.map(|key| key.secret),
        answer: answer.map(|()| shared.this.hello(own.unwrap_or_default())),
    }
}

/// Answers a machine that joins by an invitation.
async fn run_invited(
    shared: &Arc<Shared>,
    upgrade: Upgrade,
    key: NodeId,
    invite: Option<InviteId>,
) -> Result<(), HandshakeError> {
    let carrier = carrier(upgrade).await?;
    let secret = match invite {
        Some(invite) => shared.invites.secret(invite).await.map(|secret| (invite, secret)),
        None => Err(NotTaken::Unknown),
    };
    match secret {
        Ok((invite, secret)) => host::welcome(shared, carrier, key, invite, &secret).await,
        Err(words) => Err(refuse(carrier, &words.to_string()).await),
    }
}

async fn carrier(upgrade: Upgrade) -> Result<Carrier, HandshakeError> {
    let Ok((mut link, outbox)) = upgrade.link_within(Limits::default()).await else {
        return Err(HandshakeError::Refused("it left before the link stood".to_owned()));
    };
    link.set_max_message(MAX_MESSAGE);
    Ok(Carrier::new(link, outbox))
}

pub(crate) async fn refuse(carrier: Carrier, words: &str) -> HandshakeError {
    carrier.close(1008, words).await;
    HandshakeError::Refused(words.to_owned())
}

/// Refuses a member that may not be the one that it names, or that was taken out.
pub(super) fn admit(shared: &Shared, hello: &Hello, key: &NodeId) -> Result<(), String> {
    is_who_it_says(shared, hello, key)?;
    match shared.barred.has(key) {
        true => Err(TAKEN_OUT.to_owned()),
        false => Ok(()),
    }
}

/// Refuses a machine that may not be the member that it names.
pub(crate) fn is_who_it_says(shared: &Shared, hello: &Hello, key: &NodeId) -> Result<(), String> {
    let own = &shared.this;
    if hello.node_id == own.node_id {
        return Err(match *key == own.identity.node_id() && hello.incarnation == own.incarnation {
            true => ITSELF.to_owned(),
            false => {
                shared.doubled();
                format!(
                    "this machine has the same node id, {}: one of the two is a copy of the other; \
                     start the copy with an empty --data-dir, and join by an invitation",
                    own.node_id
                )
            }
        });
    }
    match known(shared, &hello.node_id) {
        Some(Member { key: Some(known), .. }) if known != *key => Err(format!(
            "node {} is known here under another key: {known}, not {key}; if it was set up anew, \
             run `warren cluster forget {}` on a member",
            hello.node_id, hello.node_id
        )),
        _ => Ok(()),
    }
}

pub(crate) fn known(shared: &Shared, node: &str) -> Option<Member> {
    Member::read(&shared.directory.get(Kind::MEMBER, node)?.value)
}

fn refusal(status: StatusCode, words: &str) -> Response<String> {
    let mut response = Response::new(format!("{words}\n"));
    *response.status_mut() = status;
    response
}
