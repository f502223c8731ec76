//! A look at the NATS server over which servers act as one, without a running server.

use base::Secret;
#[cfg(feature = "nats")]
pub use fellows::examination::Examination;

/// The findings about a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedNats {
    /// Where it is, without its secrets.
    pub shown: String,
    /// Whether others on the network can read along.
    pub is_exposed: bool,
    /// The findings, or why it cannot be looked at.
    pub found: Result<Examination, String>,
}

/// Looks at the NATS server of this URL.
///
/// # Errors
/// When the URL makes no sense, in words that show nothing of it.
#[cfg(feature = "nats")]
pub async fn examine(url: &Secret) -> Result<ExaminedNats, String> {
    let address = fellows::NatsAddress::parse(url, None).map_err(|error| error.to_string())?;
    Ok(ExaminedNats {
        shown: address.shown(),
        is_exposed: address.is_exposed(),
        found: fellows::examination::examine(&address).await,
    })
}

/// The findings, in a program without NATS.
#[cfg(not(feature = "nats"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// Its version.
    pub version: String,
    /// Whether the version is new enough.
    pub is_new_enough: bool,
    /// Whether it has JetStream.
    pub has_jetstream: bool,
    /// How long a message there and back takes.
    pub round_trip: std::time::Duration,
}

/// Stands in for the look, in a program without NATS.
///
/// # Errors
/// Always.
#[cfg(not(feature = "nats"))]
pub async fn examine(_: &Secret) -> Result<ExaminedNats, String> {
    Err("this program was built without NATS: build it with the feature nats".to_owned())
}
