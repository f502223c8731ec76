//! The backend itself: what the others are compared with.

use std::net::SocketAddr;

use super::Target;
use crate::cli::Kind;

/// No process of its own, so nothing to account.
pub(crate) fn launch(backend: SocketAddr) -> Target {
    Target {
        name: Kind::Direct.name(),
        key: None,
        prefix: String::new(),
        addr: backend,
        parts: Vec::new(),
        processes: Vec::new(),
        _dir: None,
    }
}
