//! From an HTTP request to a tunnel, or a refusal in the envelope of rooms.

use std::{net::IpAddr, sync::Arc};

use http::{Request, Response};
use protocol::room::tunnel::CANCELS;
use rooms::Room;
use wire::{Link, Outbox, Upgrade};

use super::{Participants, link, refusal::Refusal};
use crate::member::{Member, now_ms};

impl Participants {
    /// Answers a request to `/v1/rooms/{code}/participants/{id}/tunnel`, which comes from this
    /// address: `101` and a link of its own task, or a refusal. The token is in the query; it is used
    /// up by a tunnel, and by nothing else.
    pub fn connect<B>(
        &self,
        request: &mut Request<B>,
        code: &str,
        id: &str,
        from: IpAddr,
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

    /// Serves the tunnel of a participant of this room until it ends. `cancels` means that it said it
    /// can be told to stop.
    pub async fn serve(
        &self,
        room: Arc<Room>,
        id: &str,
        link: Link,
        outbox: Outbox,
        cancels: bool,
    ) {
        let member = Member::new(room, id.to_owned());
        link::run(&self.scheduler, member, link, outbox, cancels).await;
    }

    fn admit<B>(
        &self,
        request: &mut Request<B>,
        code: &str,
        id: &str,
        from: IpAddr,
    ) -> Result<(Arc<Room>, Upgrade), Refusal> {
        let token = field(request.uri().query(), "token").ok_or(Refusal::NoToken)?;
        let room = self.rooms.find(code, from)?;
        room.check_tunnel_token(id, &token, now_ms())?;
        let upgrade = Upgrade::new(request, &[])?;
        room.redeem(id, &token, now_ms())?;
        Ok((room, upgrade))
    }
}

/// The value of a query field, unless it is empty.
fn field(query: Option<&str>, wanted: &str) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let (_, value) = fields.find(|(name, value)| name == wanted && !value.is_empty())?;
    Some(value.into_owned())
}
