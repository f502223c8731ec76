//! The inviting side: makes invitations, and answers machines that come with one.

use std::sync::Arc;

use base::{NodeId, Secret};
use bytes::Bytes;
use protocol::workspace::{
    limits::MEMBERS_MAX,
    peer::sealed::{
        Invitation, InviteSecret, MemberFacts, NotInvited, Welcome,
        invitation::{INVITE_ADDRESS_MAX, INVITE_ADDRESSES_MAX},
    },
};
use replica::{Change, Input, Key, Kind};
use seal::PeerSecret;

use super::{
    Invited, JoinError, NotTaken,
    book::{InviteId, VALID},
    now_ms,
};
use crate::{
    control::Control,
    driver::WriteError,
    error::ClusterError,
    link::{
        accept::is_who_it_says,
        carrier::Carrier,
        frame::LinkFrame,
        handshake::{self, HandshakeError, Proven},
        hello::Hello,
        sealed::seal_frame,
    },
    member::Member,
    parting::is_taken_out,
    shared::Shared,
    tokens::{
        self,
        book::{Tag, Token},
    },
};

/// Invites one machine. A cluster that has no token yet gets one.
pub(crate) async fn invite(shared: &Arc<Shared>) -> Result<Invited, JoinError> {
    if shared.this.token().is_none() {
        tokens::begin(shared, Token::random(0, now_ms())).await?;
    }
    let fits = |address: &String| address.len() <= INVITE_ADDRESS_MAX;
    let addresses = shared.this.member().addresses.into_iter().filter(fits);
    let addresses: Vec<String> = addresses.take(INVITE_ADDRESSES_MAX).collect();
    if addresses.is_empty() {
        return Err(JoinError::NoAddress);
    }
    let secret = rand::random();
    let invitation = Invitation {
        addresses: addresses.clone(),
        key: shared.this.identity.node_id(),
        secret: InviteSecret(secret),
    };
    let code = invitation.encode()?;
    let open = shared.invites.open(&shared.facts, secret).await?;
    Ok(Invited { id: open.id, code, until: open.until, addresses })
}

/// Why a machine does not become a member.
#[derive(Debug, thiserror::Error)]
enum NotWelcome {
    #[error(transparent)]
    Invitation(#[from] NotTaken),
    #[error("the inviting machine cannot take it in: {0}")]
    Write(#[from] WriteError),
    #[error("the inviting machine cannot take it in: {0}")]
    Cluster(#[from] ClusterError),
}

/// Answers a machine that comes with an invitation. The handshake waits for its first sealed
/// record, which proves that the handshake is not a recording. Only then is the invitation used.
pub(crate) async fn welcome(
    shared: &Arc<Shared>,
    carrier: Carrier,
    key: NodeId,
    invite: InviteId,
    secret: &PeerSecret,
) -> Result<(), HandshakeError> {
    let own = &shared.this.identity;
    let hello = || shared.this.hello(Tag::default());
    let choose =
        async |theirs: &Hello| is_who_it_says(shared, theirs, &key).map(|()| hello()).into();
    let proven = handshake::respond(carrier, own, key, secret, choose).await?;
    match take_in(shared, key, invite, &proven.hello).await {
        Ok(welcome) => {
            tracing::info!(node = proven.hello.node_id, "a machine joined by an invitation");
            answer(proven, &Control::Welcome(welcome)).await
        }
        Err(not) => {
            let message = not.to_string();
            let refused = HandshakeError::Refused(message.clone());
            answer(proven, &Control::NotInvited(NotInvited { message })).await?;
            Err(refused)
        }
    }
}

/// Takes a machine in. Its entry and the use of the invitation are stored in one transaction.
async fn take_in(
    shared: &Arc<Shared>,
    key: NodeId,
    invite: InviteId,
    hello: &Hello,
) -> Result<Welcome, NotWelcome> {
    let member = Member {
        node_id: hello.node_id.clone(),
        key: Some(key),
        name: hello.name.clone(),
        addresses: hello.addresses.clone(),
        plain: Vec::new(),
    };
    let input = Input::Write {
        key: Key::new(Kind::MEMBER, &*member.node_id),
        owner: member.node_id.as_str().into(),
        value: member.text().into(),
        change: Change::Begin,
    };
    if is_taken_out(shared, &hello.node_id).await && shared.invites.is_used(invite).await {
        return Err(NotTaken::TakenOut.into());
    }
    let store = async |used| Ok(shared.driver.ask_with(input, vec![used]).await?);
    shared.invites.spend::<NotWelcome>(invite, key, store).await?;
    // A machine that has left may come back before the cluster has taken the new token that
    // followed its leaving. So that token is awaited.
    tokens::taken(shared).await;
    shared.barred.admit(&shared.facts, &key).await?;
    tokens::admit(shared, &key).await?;
    shared.targets_changed.notify_one();
    let tokens = shared.config().tokens;
    // There always is a token: an invitation is made after it.
    let none = || Token { secret: Secret::from(String::new()), since_ms: 0 };
    let Token { secret, since_ms } = tokens.present().cloned().unwrap_or_else(none);
    Ok(Welcome { cluster_token: secret, since_ms, members: members(shared) })
}

fn members(shared: &Shared) -> Vec<MemberFacts> {
    let entries = shared.directory.list(Kind::MEMBER);
    let members = entries.iter().filter_map(|(_, entry)| Member::read(&entry.value));
    let facts = members.filter_map(|Member { node_id, key, name, addresses, .. }| {
        Some(MemberFacts { node_id, key: key?, name, addresses })
    });
    facts.take(MEMBERS_MAX).collect()
}

async fn answer(mut proven: Proven, control: &Control) -> Result<(), HandshakeError> {
    let frame = LinkFrame::Control(control.encode()).encode();
    let mut records = Vec::new();
    seal_frame(&mut proven.sealer, &frame, &mut records)?;
    proven.carrier.outbox().push(Bytes::from(records))?;
    proven.carrier.close(1000, "the invitation is answered").await;
    Ok(())
}

const _: () = assert!(VALID.as_secs() == 3600, "the words of `Expired` say an hour");
