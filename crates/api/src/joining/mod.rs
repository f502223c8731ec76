//! Joining by one line: the server makes codes, and machines join with them.
//!
//! - [`Joining`]: the invitations of this server, and the making of codes
//! - `join`: `POST /v1/join` and `POST /v1/join/proof`

pub(crate) mod join;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use access::{InvitationError, Invitations, LockOut, LockOutSettings, Moment, NewInvitation};
use base::Secret;
use protocol::invitation::{Invitation, InvitationSecret, MAX_TEXT, Place, Purpose, ServerId};
use rand::RngExt;
use store::InvitationRecord;

/// The facts about this server that a code contains.
pub trait Whereabouts: Send + Sync {
    /// The server's id.
    fn id(&self) -> ServerId;

    /// The name of the server's machine.
    fn name(&self) -> String;

    /// Where the server can be reached now.
    fn place(&self) -> Place;

    /// Whether the server listens at this address.
    fn is_own(&self, address: SocketAddr) -> bool;
}

/// The invitations of a server, and the facts about it that codes contain.
pub struct Joining {
    /// The invitations.
    pub invitations: Invitations,
    whereabouts: Arc<dyn Whereabouts>,
    lock_out: Mutex<LockOut>,
}

/// A code that was made.
pub struct Code {
    /// Its text.
    pub text: Secret,
    /// The URLs in the code, the best first.
    pub urls: Vec<String>,
}

impl Joining {
    /// The invitations of a server. `whereabouts`: the facts about the server that codes contain.
    pub fn new(invitations: Invitations, whereabouts: Arc<dyn Whereabouts>) -> Self {
        let lock_out = Mutex::new(LockOut::new(LockOutSettings::default()));
        Self { invitations, whereabouts, lock_out }
    }

    /// Invites one machine. `stored`: whether the invitation outlives this run of the server. Blocks on the disk.
    ///
    /// # Errors
    /// [`InvitationError`] when the invitation is not valid, there are too many, or it cannot be written.
    pub fn invite(
        &self,
        name: Option<String>,
        lasts: Duration,
        url: Option<String>,
        stored: bool,
    ) -> Result<(InvitationRecord, Code), InvitationError> {
        let secret = InvitationSecret::new(rand::rng().random());
        let place = self.place(url)?;
        let new = NewInvitation { id: secret.id(), secret: secret.text(), name, lasts, stored };
        let record = self.invitations.create(new, Moment::now())?;
        Ok((record, self.code(place, Purpose::Worker(secret))))
    }

    /// A code for guests of a room.
    ///
    /// # Errors
    /// [`InvitationError`] when the URL or the password does not fit into a code.
    pub(crate) fn invite_to_room(
        &self,
        code: String,
        password: Option<String>,
        url: Option<String>,
    ) -> Result<Code, InvitationError> {
        let place = self.place(url)?;
        let is_short = password.as_ref().is_none_or(|password| password.len() <= MAX_TEXT);
        if !is_short || code.len() > MAX_TEXT {
            let words = format!(
                "a password of more than {MAX_TEXT} bytes does not fit into a code: say it otherwise"
            );
            return Err(InvitationError::Invalid(words));
        }
        Ok(self.code(place, Purpose::Room { code, password: password.map(Secret::from) }))
    }

    /// The id of this server.
    pub(crate) fn server_id(&self) -> ServerId {
        self.whereabouts.id()
    }

    fn code(&self, place: Place, purpose: Purpose) -> Code {
        let urls = place.urls();
        let invitation = Invitation { server: self.whereabouts.id(), place, purpose };
        Code { text: invitation.encode(), urls }
    }

    fn place(&self, url: Option<String>) -> Result<Place, InvitationError> {
        let url = url.map(|url| url.trim().trim_end_matches('/').to_owned());
        let is_good = |url: &String| url.len() <= MAX_TEXT && is_https_of_host(url);
        if url.as_ref().is_some_and(|url| !is_good(url)) {
            let words = format!(
                "the URL in a code must be https://HOST or https://HOST:PORT, of at most {MAX_TEXT} bytes: in \
                 clear nothing would tell the server from somebody else under its name"
            );
            return Err(InvitationError::Invalid(words));
        }
        Ok(Place { url, ..self.whereabouts.place() })
    }

    fn lock_out(&self) -> MutexGuard<'_, LockOut> {
        self.lock_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a URL is `https://HOST` or `https://HOST:PORT`, with nothing before or behind the host.
fn is_https_of_host(url: &str) -> bool {
    let Ok(parsed) = url.parse::<http::Uri>() else { return false };
    let host = parsed.authority().map_or("", |authority| authority.as_str());
    let is_all = url.len() == "https://".len() + host.len();
    parsed.scheme_str() == Some("https") && is_all && !host.contains('@')
}
