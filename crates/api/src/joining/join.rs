//! A machine joins, and before that asks the server to prove which one it is. Neither request needs a key: a machine
//! joins by the secret of its invitation, and a proof says nothing to a client that does not know that secret or a
//! key.

use std::{net::SocketAddr, time::Duration};

use access::{Moment, NotJoined};
use axum::{
    Json,
    extract::{Request, State},
};
use base::{ClientAddress, Secret};
use http::StatusCode;
use protocol::invitation::{
    messages::{JoinAnswer, JoinRequest, ProofAnswer, ProofRequest},
    proof,
};
use serde::de::DeserializeOwned;
use store::KeyRecord;
use tokio::time::Instant;

use super::Joining;
use crate::{
    admin::{blocking, failed},
    error::{ApiError, Kind},
    read,
    state::{Api, Client},
};

/// The longest body of a request, in bytes.
const LONGEST: usize = 4 * 1024;

/// `POST /v1/join`: gives a machine a key in exchange for the secret of its invitation.
pub(crate) async fn join(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<JoinAnswer>, ApiError> {
    let (from, at) = (Client::of(request.extensions()), Instant::now().into_std());
    let asked: JoinRequest = body(&api, request).await?;
    let of = api.clone();
    let (key, text) = blocking(move || of.joining().join(&asked, from, at)).await??;
    tracing::info!(key = %key.id, machine = base::plain::line(&key.name), "a machine has joined");
    Ok(Json(JoinAnswer {
        key: text.expose().to_owned(),
        key_id: key.id.to_string(),
        name: key.name,
        server_name: api.joining().whereabouts.name(),
    }))
}

impl Joining {
    /// Lets a machine join. Wrong secrets are counted by address. The lock is held from the look at the count to the new
    /// count, so that an address gets no more tries by sending many at once. Blocks on the disk.
    fn join(
        &self,
        asked: &JoinRequest,
        from: ClientAddress,
        at: std::time::Instant,
    ) -> Result<(KeyRecord, Secret), ApiError> {
        let mut lock_out = self.lock_out();
        lock_out.check(from, at).map_err(locked_out)?;
        let joined = self.invitations.join(&asked.secret, &asked.machine, Moment::now());
        match &joined {
            Ok(_) => lock_out.succeeded(from),
            Err(error) => {
                if matches!(error, NotJoined::Unknown) {
                    lock_out.failed(from, at);
                }
                tracing::info!(outcome = "refused", %error, "a machine did not join");
            }
        }
        joined.map_err(ApiError::from)
    }
}

fn locked_out(wait: Duration) -> ApiError {
    let words = "too many wrong invitations came from your address: try again later";
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, words);
    ApiError { retry_after: Some(wait), ..error }
}

/// `POST /v1/join/proof`: proves which server this is, to a client that dialled one of this server's addresses.
pub(crate) async fn prove(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<ProofAnswer>, ApiError> {
    let request: ProofRequest = body(&api, request).await?;
    let mut nonce = [0; proof::NONCE];
    hex::decode_to_slice(&request.nonce, &mut nonce).map_err(|_| {
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, "the nonce is 32 hexadecimal digits")
    })?;
    let joining = api.joining();
    let address = request.address.parse::<SocketAddr>().ok();
    let own = address.filter(|address| joining.whereabouts.is_own(*address));
    let own = own.ok_or_else(|| {
        let words = "this server has no such address: somebody may stand between it and you";
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, Kind::Invalid, words)
    })?;
    let digest = joining.invitations.digest(&request.of, Moment::now()).ok_or_else(|| {
        let words = "this server knows no such machine, or has taken back its key: join again by a new \
                     invitation";
        ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
    })?;
    Ok(Json(ProofAnswer { proof: hex::encode(proof::make(&digest, &nonce, &own.to_string())) }))
}

async fn body<T: DeserializeOwned>(api: &Api, request: Request) -> Result<T, ApiError> {
    let (parts, body) = request.into_parts();
    let words = "that is no request of a joining machine";
    read::json(&parts.headers, body, LONGEST, &mut api.uploads().hold(), words).await
}

impl From<NotJoined> for ApiError {
    fn from(error: NotJoined) -> Self {
        let (status, kind) = match error {
            NotJoined::Unknown => (StatusCode::UNAUTHORIZED, Kind::Authentication),
            NotJoined::Used => (StatusCode::CONFLICT, Kind::Invalid),
            NotJoined::Expired | NotJoined::Revoked => (StatusCode::GONE, Kind::Invalid),
            NotJoined::Name(_) => (StatusCode::BAD_REQUEST, Kind::Invalid),
            NotJoined::Key(error) => return error.into(),
            NotJoined::Store(error) => return failed(&error),
        };
        Self::new(status, kind, error.to_string())
    }
}
