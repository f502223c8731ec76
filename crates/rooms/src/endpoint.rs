//! Which addresses the server calls for a participant.

use std::net::{IpAddr, SocketAddr};

use crate::error::RoomError;

/// Whose endpoints the server calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Endpoints {
    /// Nobody's.
    Off,
    /// Those at the address that the join came from.
    #[default]
    Own,
    /// Any.
    Any,
}

/// An endpoint that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Its URL, as it was given.
    pub url: String,
    /// The address that it stood for when it was given, and that alone is called.
    pub address: SocketAddr,
}

impl Endpoints {
    /// Resolves an endpoint, once.
    ///
    /// # Errors
    /// [`RoomError::Invalid`] when it is no URL of this sort, cannot be resolved, or may not be
    /// called; the text says what to do instead.
    pub async fn reach(self, url: &str, from: IpAddr) -> Result<Reached, RoomError> {
        todo!()
    }
}
