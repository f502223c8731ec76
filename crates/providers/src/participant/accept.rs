//! Turns an HTTP request into a connected participant, or refuses it in the envelope of rooms.

use std::sync::Arc;

use base::{ClientAddress, ProviderId};
use http::{Request, Response};
use protocol::room::tunnel::{CANCELS, close};
use rand::RngExt;
use rooms::Room;
use scheduler::{Offer, Provider};
use tracing::Instrument;
use wire::{Link, Outbox, Upgrade};

use super::{
    Participants,
    codec::TunnelCodec,
    offer::{offer, served},
    refusal::Refusal,
};
use crate::{
    link::{Close, Permit, drive},
    member::{Member, Presence, now_ms},
    notes::Sender,
};

impl Participants {
    /// Answers a request to `/v1/rooms/{code}/participants/{id}/tunnel` from this address: `101`
    /// and a link with its own task, or a refusal. The token is in the query; only an established
    /// tunnel uses it up.
    pub fn connect<B>(
        &self,
        request: &mut Request<B>,
        code: &str,
        id: &str,
        from: ClientAddress,
    ) -> Response<String> {
        let (room, upgrade) = match self.admit(request, code, id, from) {
            Ok(admitted) => admitted,
            Err(refusal) => return refusal.response(),
        };
        let (response, id, participants) = (upgrade.response(), id.to_owned(), self.clone());
        let cancels = field(request.uri().query(), CANCELS).is_some_and(|value| value == "true");
        self.links.spawn(async move {
            match upgrade.link().await {
                Ok((link, outbox)) => participants.serve(room, &id, link, outbox, cancels).await,
                Err(error) => tracing::debug!(%error, "a participant left before its tunnel stood"),
            }
        });
        response
    }

    /// Serves the tunnel of a participant of this room until it ends. `cancels`: the participant
    /// announced that it accepts cancellations.
    pub async fn serve(
        &self,
        room: Arc<Room>,
        id: &str,
        link: Link,
        outbox: Outbox,
        cancels: bool,
    ) {
        let provider = ProviderId::from_random(rand::rng().random());
        let span =
            tracing::info_span!("participant", id = %provider, room = %room.id(), participant = id);
        let member = Member::new(room, id.to_owned());
        self.run(provider, member, link, outbox, cancels).instrument(span).await;
    }

    async fn run(&self, id: ProviderId, member: Member, link: Link, outbox: Outbox, cancels: bool) {
        let connection = member.room().connect(member.id(), id, now_ms()).ok();
        let Some((participant, connection)) = member.served().zip(connection) else {
            let (code, reason) = close::REMOVED;
            return link.close(code, reason).await;
        };
        let presence = Presence::new(connection);
        let served = served(participant.capabilities);
        // A stock participant cannot be told to stop. Others report when they have stopped.
        let offer = Offer { lingers: true, ..offer(&member, &participant, &served) };
        tracing::info!(max_concurrent = offer.max_concurrent, "participant connected");
        let sender = Arc::new(Sender::new(participant.nickname, Some(member.clone())));
        let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
        let membership = self.scheduler.join(id, offer, provider);
        let codec = TunnelCodec::new(member, membership, outbox, served, cancels);
        drive(link, codec, &sender.notes, presence).await;
    }

    fn admit<B>(
        &self,
        request: &mut Request<B>,
        code: &str,
        id: &str,
        from: ClientAddress,
    ) -> Result<(Arc<Room>, Upgrade), Refusal> {
        let token = field(request.uri().query(), "token").ok_or(Refusal::NoToken)?;
        let room = self.rooms.find(code, from)?;
        room.check_tunnel_token(id, &token, now_ms())?;
        let upgrade = Upgrade::new(request, &[])?;
        room.redeem(id, &token, now_ms())?;
        Ok((room, upgrade))
    }
}

impl Permit for Presence {
    fn ended(&self) -> impl Future<Output = Close> + Send {
        Presence::ended(self)
    }

    fn changed(&self) -> impl Future<Output = ()> + Send {
        Presence::changed(self)
    }

    fn heard(&self) {
        Presence::heard(self);
    }
}

/// The value of a query field; `None` when it is empty.
fn field(query: Option<&str>, wanted: &str) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let (_, value) = fields.find(|(name, value)| name == wanted && !value.is_empty())?;
    Some(value.into_owned())
}
