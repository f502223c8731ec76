//! How long a machine lets a request wait, and so how long a client must wait at most.

use std::time::Duration;

use testkit::lab::Patience;

/// How long a server waits. A request may wait in queues for longer than a peer behind a relay, which was busy when it was
/// last heard, takes to say that it is free again.
const PATIENCE: Patience = Patience {
    queue: Duration::from_secs(25),
    request: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    requeues: 3,
};

/// How long a machine that is stopped waits for what is in flight.
pub(crate) const DRAIN: Duration = Duration::from_secs(15);

/// The longest that a machine is frozen: longer than its peers wait for a sign of it.
pub(crate) const FROZEN: Duration = Duration::from_secs(40);

/// The time that the machine may take beside that, however busy it is.
pub(crate) const BUSY: Duration = Duration::from_secs(60);

/// A request that has not ended by then hangs. It may be sent to a machine that is frozen itself meanwhile.
pub(crate) const HANGS: Duration = PATIENCE.longest().saturating_add(FROZEN).saturating_add(BUSY);

/// The flags of a machine of these rules.
pub(crate) fn flags() -> Vec<String> {
    let drain = ("--drain-timeout-secs", DRAIN.as_secs().to_string());
    let flags = PATIENCE.flags().into_iter().chain([drain]);
    flags.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
