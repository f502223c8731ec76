//! Authentication. The first message of every connection says who the client is.

use std::sync::Arc;

use access::{Moment, NotAdmitted, WorkspaceClient};
use base::{ClientAddress, KeyScope, Secret};
use protocol::workspace::{
    ClientMessage, Role, ServerMessage,
    client::{Auth, AuthResult},
    decode_request,
    limits::AUTH_DEADLINE,
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use wire::{Frame, Link, Outbox};
use workspace::{Identity, Member};

use crate::admission::Admission;

/// The close code of a connection that did not authenticate: a violation of policy.
const POLICY: u16 = 1008;

/// A client that has authenticated.
pub(crate) struct NewClient {
    pub(crate) me: Identity,
    pub(crate) credential: Credential,
    /// Its permit. The number of permits bounds the clients that are connected.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// The credential that a client was admitted with.
pub(crate) enum Credential {
    /// A key, or one of the server's tokens.
    Client(WorkspaceClient),
    /// The token that a member of a team was started with.
    Member(Secret),
}

/// Why a connection is not admitted.
pub(crate) enum Rejection {
    /// The client has gone.
    Left,
    /// The client got an answer with the reason. The connection is closed with this code and text.
    Goodbye(u16, &'static str),
}

/// Reads the first message of a client, and answers it. `session`: the page session of the web page that
/// opened the link; it is used if the client's token is empty.
pub(crate) async fn greet(
    admission: &Arc<Admission>,
    link: &mut Link,
    outbox: &Outbox,
    from: ClientAddress,
    session: Option<Secret>,
) -> Result<NewClient, Rejection> {
    let frame = match timeout(AUTH_DEADLINE, link.next()).await {
        Ok(Ok(Some(frame))) => frame,
        Ok(Ok(None)) => return Err(Rejection::Left),
        Ok(Err(error)) => {
            tracing::debug!(%error, %from, "a stranger's link broke");
            return Err(Rejection::Left);
        }
        Err(_) => {
            let words = format!("no auth came within {} s", AUTH_DEADLINE.as_secs());
            return Err(goodbye(outbox, &ServerMessage::error(words)));
        }
    };
    let auth = match credential(&frame) {
        Ok(auth) => auth,
        Err(words) => return Err(goodbye(outbox, &ServerMessage::error(words))),
    };
    let token = session.filter(|_| auth.token.expose().is_empty()).unwrap_or(auth.token);
    match admit(admission, from, token) {
        Ok(admitted) => {
            send(outbox, &result(true, "authenticated".to_owned()));
            Ok(admitted)
        }
        Err(words) => Err(goodbye(outbox, &result(false, words))),
    }
}

fn credential(frame: &Frame) -> Result<Auth, String> {
    let Frame::Text(text) = frame else {
        return Err("the first message must be auth, and this was a binary frame".to_owned());
    };
    match decode_request(text) {
        Ok(ClientMessage::Auth(auth)) => Ok(auth),
        Ok(other) => Err(format!("the first message must be auth, and this was {}", other.name())),
        Err(bad) => Err(format!("the first message must be auth: {bad}")),
    }
}

/// Checks a token. It holds the lock of failed attempts throughout, so that parallel attempts give an
/// address no more guesses.
fn admit(
    admission: &Arc<Admission>,
    from: ClientAddress,
    token: Secret,
) -> Result<NewClient, String> {
    let now = Moment::now();
    let mut lock_out = admission.lock_out();
    if let Err(left) = lock_out.check(from, now.steady) {
        let seconds = left.as_secs() + 1;
        return Err(format!("too many wrong tokens came from this address: wait {seconds} s"));
    }
    let (me, credential) = match admission.rules.admit(token.expose(), now) {
        Ok(client) => (of_client(&client), Credential::Client(client)),
        Err(denied) => match admission.services.member_tokens.member(token.expose()) {
            Some(member) => (of_member(member), Credential::Member(token)),
            None => {
                // Only guesses count. A client with a key that was valid once does not guess.
                if !matches!(denied, NotAdmitted::Key(_)) {
                    lock_out.failed(from, now.steady);
                }
                tracing::info!(%from, %denied, "a client of the workspace was refused");
                return Err(denied.to_string());
            }
        },
    };
    lock_out.succeeded(from);
    // Last, so that a wrong token never takes a client's place.
    let permit = Arc::clone(&admission.clients).try_acquire_owned();
    let permit = permit
        .map_err(|_| format!("there are {} clients, and no more may be", admission.most_clients))?;
    Ok(NewClient { me, credential, permit })
}

fn of_client(client: &WorkspaceClient) -> Identity {
    let role = match client.scope {
        KeyScope::WorkspaceAdmin => Role::Admin,
        KeyScope::WorkspaceWrite => Role::Write,
        _ => Role::Read,
    };
    Identity { who: client.name(), role, member: None }
}

fn of_member(member: Member) -> Identity {
    let who = format!("team:{}/{}", member.team, member.session);
    Identity { who, role: Role::Write, member: Some(member) }
}

fn result(success: bool, message: String) -> ServerMessage {
    ServerMessage::AuthResult(AuthResult { success, message })
}

fn goodbye(outbox: &Outbox, message: &ServerMessage) -> Rejection {
    send(outbox, message);
    Rejection::Goodbye(POLICY, "not authenticated")
}

/// Sends a message. If the client has gone, the link reports that later.
fn send(outbox: &Outbox, message: &ServerMessage) {
    let _gone = outbox.push(message.encode());
}

impl Credential {
    /// Waits until the key, or the page session that was used instead of it, is no longer valid. Never
    /// returns for a token; a member's token is checked at each tick of its connection instead.
    pub(crate) async fn ended(&self) {
        match self {
            Self::Client(client) => client.ended().await,
            Self::Member(_) => std::future::pending().await,
        }
    }
}
