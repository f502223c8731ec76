//! Invitations of a server, and joining by them.

use std::net::SocketAddr;

use base::{Fingerprint, Secret};
use http::Method;
use protocol::{
    admin::invitations::{
        CreateInvitation, InvitationJson, InvitationList, InviteToRoom, RoomCode,
    },
    invitation::{
        InvitationSecret,
        messages::{JOIN, JoinAnswer, JoinRequest, PROOF, ProofAnswer, ProofRequest},
        proof,
    },
};
use rand::RngExt;
use serde::Serialize;
use url::{Host, Url};

use crate::{
    connection::Connection,
    error::ClientError,
    server::{Warren, segment},
};

impl Warren {
    /// The server at `url`, which is known by its certificate's fingerprint if one is given. Does not connect yet.
    ///
    /// # Errors
    /// When the URL or the token cannot be used.
    pub fn pinned(
        url: &str,
        token: Option<&Secret>,
        pin: Option<Fingerprint>,
    ) -> Result<Self, ClientError> {
        Connection::pinned(url, token, pin).map(Self)
    }

    /// Joins by an invitation, after the server has shown that it knows the invitation's secret.
    ///
    /// # Errors
    /// When the server cannot be reached, is another one, or refuses.
    pub async fn join(
        &self,
        secret: &InvitationSecret,
        machine: &str,
    ) -> Result<JoinAnswer, ClientError> {
        let text = secret.text();
        self.check(&secret.id(), &text).await?;
        let request = JoinRequest { secret: text.expose().to_owned(), machine: machine.to_owned() };
        self.post_json(JOIN, &request).await
    }

    /// Checks that the server knows a secret, without sending the secret: by the server's certificate, or by
    /// a proof if the connection is not encrypted. `of` is the id of the key or the invitation whose secret
    /// it is.
    ///
    /// # Errors
    /// When the server cannot be reached, or is another one.
    pub async fn check(&self, of: &str, secret: &Secret) -> Result<(), ClientError> {
        if self.0.url().scheme() == "https" {
            // Only the right server can show its certificate, so no other gets as far as a request.
            return Ok(());
        }
        let not_it = |reason: String| ClientError::NotTheServer { url: self.url(), reason };
        let address = numeric(self.0.url());
        let address =
            address.ok_or_else(|| not_it("in clear only an address is proven".to_owned()))?;
        let address = address.to_string();
        // New each time, so that a recorded proof is of no use. The address is part of the proof, so that a
        // machine in between cannot pass on the proof of another.
        let nonce: [u8; proof::NONCE] = rand::rng().random();
        let (of, shown) = (of.to_owned(), hex::encode(nonce));
        let request = ProofRequest { of, nonce: shown, address: address.clone() };
        let answer = self.post_json::<ProofAnswer>(PROOF, &request).await;
        let answer = answer.map_err(|error| match error {
            error if error.is_unreachable() => error,
            // A server that refuses does not know the secret.
            error => not_it(error.to_string()),
        })?;
        // An empty proof is always wrong, so a proof that is not hex is wrong, too.
        let proof = hex::decode(&answer.proof).unwrap_or_default();
        let is_valid = proof::is_valid(secret, &nonce, &address, &proof);
        if is_valid { Ok(()) } else { Err(not_it("its proof is wrong".to_owned())) }
    }

    /// Invites one machine. Only this answer has the code.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn create_invitation(
        &self,
        invitation: &CreateInvitation,
    ) -> Result<InvitationJson, ClientError> {
        self.post_json("/admin/invitations", invitation).await
    }

    /// Makes a code for guests of a room.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn invite_to_room(&self, guest: &InviteToRoom) -> Result<RoomCode, ClientError> {
        self.post_json("/admin/invitations/room", guest).await
    }

    /// Every invitation that the server remembers, the oldest first.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn invitations(&self) -> Result<Vec<InvitationJson>, ClientError> {
        let list: InvitationList = self.get("/admin/invitations").await?;
        Ok(list.invitations)
    }

    /// Revokes an invitation by its id or name, and the key of the machine that joined by it.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when no
    /// invitation has this name.
    pub async fn revoke_invitation(&self, meant: &str) -> Result<InvitationJson, ClientError> {
        self.ask(Method::DELETE, &format!("/admin/invitations/{}", segment(meant)), None).await
    }

    pub(crate) async fn post_json<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Method::POST, path, Some(self.0.json(body)?)).await
    }
}

/// The address in a URL; `None` if the URL has a name instead.
fn numeric(url: &Url) -> Option<SocketAddr> {
    let port = url.port_or_known_default()?;
    match url.host()? {
        Host::Ipv4(v4) => Some((v4, port).into()),
        Host::Ipv6(v6) => Some((v6, port).into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a server that answers questions about it with `answer`.
    async fn checked(answer: &str) -> Result<(), ClientError> {
        let server = testkit::RawServer::start().await;
        let warren = Warren::new(&server.url(), None).unwrap();
        let serve = async {
            let (mut connection, head) = server.request().await;
            assert!(!format!("{head:?}").contains("hidden"), "{head:?}");
            connection.json("200 OK", "", answer).await;
        };
        let hidden = Secret::from("hidden");
        tokio::join!(warren.check("k-1", &hidden), serve).0
    }

    #[tokio::test]
    async fn a_server_in_clear_that_does_not_know_the_secret_does_not_get_it() {
        for answer in [
            r#"{"proof":""}"#,
            r#"{"proof":"zz"}"#,
            "{}",
            &format!(r#"{{"proof":"{}"}}"#, "00".repeat(32)),
        ] {
            let error = checked(answer).await.unwrap_err();
            assert!(matches!(error, ClientError::NotTheServer { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn a_name_in_clear_proves_nothing() {
        let warren = Warren::new("http://box.example", None).unwrap();
        let error = warren.check("k-1", &"s".into()).await.unwrap_err();
        assert!(matches!(error, ClientError::NotTheServer { .. }), "{error}");
    }
}
