//! The sort of a mesh relay: a Warren's or a stock one. Pure.
//!
//! A Warren's mesh relay sends a challenge, and is never sent the signature that can be reused.
//! That a mesh relay accepts the subprotocol proves nothing, since stock ones accept the first
//! subprotocol that is offered. The proof is a header that only Warrens send.

use http::HeaderMap;
use protocol::mesh::relay::{SUBPROTOCOL, SUBPROTOCOL_HEADER, SUBPROTOCOL_VERSION};

/// The sort of a mesh relay, once a connection to it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// A Warren's: it says so, or has sent a challenge before. An attacker in between can remove
    /// the header and the challenge, but not what this node remembers.
    Warren,
    /// It accepts the subprotocol and sends no header. It is a stock one, or a Warren's behind a
    /// proxy that drops the header. A challenge, if it comes soon, shows that it is a Warren's.
    Unclear,
    /// A stock one.
    Stock,
}

impl Sort {
    /// The sort that follows from the mesh relay's answer and from what is remembered of it.
    pub(super) fn of(
        subprotocol: Option<&str>,
        headers: &HeaderMap,
        remembered: Option<Self>,
    ) -> Self {
        let says = headers.get(SUBPROTOCOL_HEADER).is_some_and(|said| said == SUBPROTOCOL_VERSION);
        match remembered {
            Some(Self::Warren) => Self::Warren,
            _ if says => Self::Warren,
            None if subprotocol == Some(SUBPROTOCOL) => Self::Unclear,
            _ => Self::Stock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_or_a_challenge_shows_a_warren_and_nothing_takes_it_back() {
        let says = [(SUBPROTOCOL_HEADER, SUBPROTOCOL_VERSION)];
        let says: HeaderMap = says
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .into_iter()
            .collect();
        let silent = HeaderMap::new();
        let (agreed, warren, stock) = (Some(SUBPROTOCOL), Some(Sort::Warren), Some(Sort::Stock));
        for (subprotocol, headers, remembered, sort) in [
            (agreed, &says, None, Sort::Warren),
            (agreed, &says, stock, Sort::Warren),
            (agreed, &silent, warren, Sort::Warren),
            (None, &silent, warren, Sort::Warren),
            (agreed, &silent, None, Sort::Unclear),
            (agreed, &silent, stock, Sort::Stock),
            (None, &silent, None, Sort::Stock),
            (Some("other"), &silent, None, Sort::Stock),
        ] {
            let case = format!("{subprotocol:?} {headers:?} {remembered:?}");
            assert_eq!(Sort::of(subprotocol, headers, remembered), sort, "{case}");
        }
    }
}
