//! Joins a room as a stock participant, and opens the tunnel.

use protocol::room::plane::TunnelPlace;
use url::Url;
use wire::DialedLink;

use crate::{
    config::ServerTarget,
    context::{LinkContext, with_cause},
    outcome::Outcome,
    room::{GiveUpReason, member::RoomMember},
};

/// An open tunnel, and the model that is lent through it.
pub(crate) struct OpenTunnel {
    pub(super) dialed: DialedLink,
    pub(super) model: String,
    /// Whether the server is a Warren.
    pub(super) is_warren: bool,
}

/// Joins, and opens the tunnel that the server has named.
pub(crate) async fn open(link: &LinkContext, room: &RoomMember) -> Result<OpenTunnel, Outcome> {
    let offer = link.lent.offers().borrow().clone();
    let Some(model) = offer.models.first().cloned() else {
        return Err(lost("the backend offers no model yet".to_owned()));
    };
    let joined = room.put(&link.lent, &offer, &model).await?;
    // Only a Warren gives session tokens.
    let is_warren = joined.session_token.is_some();
    room.joined(joined.session_token);
    let target = target(&link.server, &joined.tunnel, is_warren)?;
    let dialed = link.dialer.dial(&target).await;
    // Not a refusal for good: the token may have expired or been used, and the next try gets a new
    // one.
    let dialed = dialed.map_err(|error| lost(target.without_secret(with_cause(&error))))?;
    let (server, name) = (link.server.to_string(), link.name.clone());
    link.events.send(&room.joined_event(server, name, room.code().to_owned(), None, true));
    Ok(OpenTunnel { dialed, model, is_warren })
}

/// The URL at which the server expects the tunnel. A server behind a proxy may not know that it is
/// reached by TLS, so the scheme is corrected.
fn target(
    server: &ServerTarget,
    place: &TunnelPlace,
    is_warren: bool,
) -> Result<ServerTarget, Outcome> {
    let url = Url::parse(&place.url).ok().filter(Url::has_host);
    let url = url.filter(|url| matches!(url.scheme(), "ws" | "wss" | "http" | "https"));
    let Some(mut url) = url else {
        let shown = base::redact_url(&place.url);
        return Err(Outcome::Over(GiveUpReason::Refused(format!(
            "{shown:?} is no place of a tunnel"
        ))));
    };
    let secure = matches!(server.url.scheme(), "https" | "wss");
    if secure && url.host() == server.url.host() {
        // Cannot fail: the URL may switch between these schemes.
        let _ = url.set_scheme("wss");
    }
    Ok(server.for_tunnel(url, &place.token, is_warren))
}

fn lost(reason: String) -> Outcome {
    Outcome::Lost { reason, stood: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(server: &str, url: &str) -> Result<String, Outcome> {
        let server = ServerTarget::new(server, None).unwrap();
        let place = TunnelPlace { token: "t".to_owned(), url: url.to_owned() };
        target(&server, &place, false).map(|target| target.connect_url().to_string())
    }

    #[test]
    fn a_tunnel_is_where_the_server_says_and_keeps_tls() {
        assert_eq!(place("http://h:1", "ws://h:1/t").unwrap(), "ws://h:1/t?token=t");
        assert_eq!(place("https://h", "ws://h/t").unwrap(), "wss://h/t?token=t");
        assert_eq!(place("https://h", "ws://other/t").unwrap(), "ws://other/t?token=t");
    }

    #[test]
    fn a_tunnel_url_of_another_kind_is_refused() {
        for url in ["", "/v1/rooms/X/tunnel", "ftp://h/t", "file:///t"] {
            assert!(matches!(place("http://h", url), Err(Outcome::Over(_))), "{url}");
        }
    }
}
