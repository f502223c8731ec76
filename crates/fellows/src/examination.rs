//! Whether a NATS server can be used, for people who set servers up.

use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use tokio::time::timeout;

use crate::{
    NatsAddress,
    connection::{is_new_enough, signed_in},
};

/// How long NATS may take for its answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// The findings about a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// Its version.
    pub version: String,
    /// Whether that is new enough.
    pub is_new_enough: bool,
    /// Whether it has JetStream, in which the servers' records are.
    pub has_jetstream: bool,
    /// How long a message there and back takes.
    pub round_trip: Duration,
}

/// Looks at the NATS server of this address.
///
/// # Errors
/// Why it is not reached, in words.
pub async fn examine(address: &NatsAddress) -> Result<Examination, String> {
    let options = ConnectOptions::new().name("warren doctor").connection_timeout(PATIENCE);
    let connecting = signed_in(options, address).connect(address.servers.clone());
    let silent = |_| format!("it does not answer within {} s", PATIENCE.as_secs());
    let client = timeout(PATIENCE, connecting).await.map_err(silent)?;
    let client = client.map_err(|error| base::error::chain(&error))?;
    let begun = Instant::now();
    timeout(PATIENCE, client.flush()).await.map_err(silent)?.map_err(|error| error.to_string())?;
    let (round_trip, info) = (begun.elapsed(), client.server_info());
    Ok(Examination {
        is_new_enough: is_new_enough(&info.version),
        has_jetstream: info.jetstream,
        version: info.version,
        round_trip,
    })
}
