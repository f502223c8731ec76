//! The invited side: this machine, when it joins by an invitation.

use std::sync::Arc;

use base::NodeId;
use http::{HeaderMap, HeaderValue};
use protocol::workspace::peer::sealed::{Invitation, Welcome};
use seal::PeerSecret;
use tokio::time::timeout;

use super::{JoinError, book::InviteId};
use crate::{
    control::Control,
    link::{
        accept::INVITE,
        carrier::{Carrier, CarrierEnd},
        dial::{DialFailure, FarEnd, connect_with},
        frame::LinkFrame,
        handshake::{self, DEADLINE, HandshakeError, Proven},
        sealed::{MAX_MESSAGE, open_records},
    },
    shared::Shared,
    tokens::{
        self,
        book::{Tag, Token},
    },
};

/// The most addresses of members that are stored for the first links.
const FIRST_PEERS: usize = 8;

/// Why one address did not lead into the cluster.
#[derive(Debug)]
pub(super) enum Failure {
    /// The inviting machine refused. Its other addresses would give the same answer.
    Refused(String),
    /// This address failed. Another one may lead to the inviting machine.
    Here(String),
}

/// Joins by an invitation. Returns the name of the member that made it.
pub(crate) async fn join(shared: &Arc<Shared>, code: &str) -> Result<String, JoinError> {
    let invitation = Invitation::decode(code)?;
    if shared.this.token().is_some() {
        return Err(JoinError::Member);
    }
    if invitation.addresses.is_empty() {
        return Err(JoinError::NoAddress);
    }
    let mut failures = Vec::new();
    for address in &invitation.addresses {
        match ask(shared, &invitation, address).await {
            Ok(welcome) => return take_part(shared, invitation.key, address, welcome).await,
            Err(Failure::Refused(words)) => return Err(JoinError::Refused(words)),
            Err(Failure::Here(words)) => failures.push(format!("{address}: {words}")),
        }
    }
    Err(JoinError::Unreachable(failures.join("; ")))
}

/// Asks at one address.
pub(super) async fn ask(
    shared: &Shared,
    invitation: &Invitation,
    address: &str,
) -> Result<Welcome, Failure> {
    let secret = PeerSecret::invite(&invitation.secret.0);
    let carrier = reach(shared, invitation, &secret, address).await?;
    let (own, hello) = (&shared.this.identity, shared.this.hello(Tag::default()));
    let proven = handshake::initiate(carrier, own, invitation.key, &secret, &hello).await?;
    answer_of(proven).await
}

async fn reach(
    shared: &Shared,
    invitation: &Invitation,
    secret: &PeerSecret,
    address: &str,
) -> Result<Carrier, Failure> {
    let mut headers = HeaderMap::new();
    let id = InviteId::of(secret).and_then(|id| HeaderValue::try_from(id.to_string()).ok());
    headers.extend(id.map(|id| (INVITE, id)));
    match connect_with(shared, address, headers).await? {
        FarEnd::Warren(carrier, key) if key == invitation.key => Ok(carrier),
        FarEnd::Warren(_, key) if key == shared.this.identity.node_id() => {
            Err(Failure::Here("it is this machine itself".to_owned()))
        }
        _ => Err(Failure::Here("another machine answers there".to_owned())),
    }
}

/// The inviting member's answer, which comes once it has stored the new member.
async fn answer_of(proven: Proven) -> Result<Welcome, Failure> {
    let Proven { mut carrier, mut opener, .. } = proven;
    carrier.set_max_message(MAX_MESSAGE);
    let message = timeout(DEADLINE, carrier.next()).await;
    let message = message.map_err(|_| HandshakeError::Timeout)?.map_err(HandshakeError::from)?;
    let payloads = open_records(&mut opener, message).map_err(HandshakeError::from)?;
    let frame = payloads.into_iter().next().and_then(|payload| LinkFrame::decode(payload).ok());
    let control = match &frame {
        Some(LinkFrame::Control(text)) => serde_json::from_str(text).ok(),
        _ => None,
    };
    match control {
        Some(Control::Welcome(welcome)) => Ok(welcome),
        Some(Control::NotInvited(not)) => Err(Failure::Refused(base::plain::line(&not.message))),
        _ => Err(Failure::Here("its answer cannot be read: one of the two is older".to_owned())),
    }
}

/// Becomes a member with the data from the inviting one.
async fn take_part(
    shared: &Arc<Shared>,
    inviter: NodeId,
    address: &str,
    welcome: Welcome,
) -> Result<String, JoinError> {
    let Welcome { cluster_token, since_ms, members } = welcome;
    let own = shared.this.identity.node_id();
    let others = members.iter().filter(|member| member.key != own && member.key != inviter);
    let others = others.filter_map(|member| member.addresses.first().cloned());
    let peers: Vec<String> = [address.to_owned()].into_iter().chain(others).collect();
    shared.begin().await?;
    shared
        .reconfigure(|config| {
            let new = peers.into_iter().filter(|peer| !config.peers.contains(peer));
            let new: Vec<String> = new.take(FIRST_PEERS).collect();
            config.peers.extend(new);
        })
        .await?;
    tokens::begin(shared, Token { secret: cluster_token, since_ms }).await?;
    let inviter = members.into_iter().find(|member| member.key == inviter);
    Ok(inviter.map_or_else(|| address.to_owned(), |member| member.name))
}

impl From<HandshakeError> for Failure {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::RefusedThere(words)
            | HandshakeError::Carrier(CarrierEnd::Refused(words)) => Self::Refused(words),
            other => Self::Here(base::error::chain(&other)),
        }
    }
}

impl From<DialFailure> for JoinError {
    fn from(failure: DialFailure) -> Self {
        Self::Unreachable(base::error::chain(&failure))
    }
}

impl From<DialFailure> for Failure {
    fn from(failure: DialFailure) -> Self {
        Self::Here(base::error::chain(&failure))
    }
}
