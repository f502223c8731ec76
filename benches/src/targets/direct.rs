//! The backend itself: what the others are compared with.

use std::net::SocketAddr;

use super::Target;
use crate::cli::Kind;

/// No process of its own, so nothing to account.
pub(crate) fn launch(backend: SocketAddr) -> Target {
    Target::new(Kind::Direct.name(), backend, Vec::new(), None)
}
