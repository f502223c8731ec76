//! One client: who it is, what it asks, what it is told.
//!
//! - [`Door`]: what all connections share; [`connect`]: from an HTTP request to a connection
//! - `greeting`: who a client is; [`Identity`]; `gate`: what it may send until then, and how large
//!   messages wait for a place; `places`: how many there are, and whose; `strangers`: how many clients
//!   may be unknown
//! - `client`: one connection, from then to its end
//! - `allowed`: who may ask for what; `bucket`: how often
//! - `shares`: how much of long answers may be in memory
//! - `lanes`: what waits, in order, beside the connection; `answers`: what is asked for, done
//! - `refused`: how a message is answered that is not served
//! - `stream`: a session's output on its way to a client; `watching`: a project's changes
//! - `echoes`: what a client was answered is not told to it again

mod allowed;
mod answers;
mod bucket;
mod client;
mod door;
mod echoes;
mod gate;
mod greeting;
mod lanes;
mod places;
mod refused;
mod shares;
mod strangers;
mod stream;
mod watching;

#[cfg(test)]
mod tests;

pub(crate) use self::door::{Door, connect};
use crate::{teams::Member, work::Workspace};
use protocol::workspace::Role;

/// Who a client has shown to be.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// For the audit log: a key's id, `workspace-token`, `admin-token`,
    /// `team:TEAM/SESSION`.
    pub(crate) who: String,
    /// What it may do.
    pub(crate) role: Role,
    /// An agent of a team that speaks for itself; it may use its own team, and nothing else.
    pub(crate) member: Option<Member>,
}

impl Workspace {
    /// Says goodbye to every client, and takes none any more.
    pub async fn disconnect(&self) {
        self.0.door.close().await;
    }
}
