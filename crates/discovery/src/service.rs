//! The services that can be announced and looked for.

/// A type of service, in the domain `local.` (RFC 6763 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// A hub as stock clients of rooms look for it.
    Gambi,
    /// A Warren. One with `kind=mesh` in its TXT is no server but where peers of the mesh connect to.
    Warren,
    /// A device as stock peers of the mesh look for it.
    Teale,
}

impl Service {
    /// Its full name: the protocol's, the transport's, and the domain, with the dot at the end.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gambi => "_gambi._tcp.local.",
            Self::Warren => "_warren._tcp.local.",
            Self::Teale => "_teale._tcp.local.",
        }
    }
}
