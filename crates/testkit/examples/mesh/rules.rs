//! How long a machine lets a request wait, and so how long a client must wait at most.

use std::time::Duration;

/// How long a request may wait in queues, in all: longer than it takes a peer behind a relay, which was
/// busy when it was last heard, to say that it is not any more.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a provider may take to begin an answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// How long an answer may stand still.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// How often a request goes on to another provider.
const REQUEUES: u32 = 3;

/// How long a machine that is stopped waits for what is in flight.
pub(crate) const DRAIN: Duration = Duration::from_secs(15);

/// The longest that a machine is frozen: longer than its peers wait for a sign of it.
pub(crate) const FROZEN: Duration = Duration::from_secs(40);

/// What the machine may take beside that, however busy it is.
pub(crate) const BUSY: Duration = Duration::from_secs(60);

/// A request that has not ended by then hangs. It may meet a frozen peer at each of its tries, and be
/// asked of a machine that is frozen itself meanwhile: that is slow, but by the rules.
pub(crate) const HANGS: Duration = QUEUE_TIMEOUT
    .saturating_add(REQUEST_TIMEOUT.saturating_mul(1 + REQUEUES))
    .saturating_add(IDLE_TIMEOUT)
    .saturating_add(FROZEN)
    .saturating_add(BUSY);

/// The flags of a machine of these rules.
pub(crate) fn flags() -> Vec<String> {
    let seconds = |time: Duration| time.as_secs().to_string();
    let flags = [
        ("--queue-timeout-secs", seconds(QUEUE_TIMEOUT)),
        ("--request-timeout-secs", seconds(REQUEST_TIMEOUT)),
        ("--idle-timeout-secs", seconds(IDLE_TIMEOUT)),
        ("--drain-timeout-secs", seconds(DRAIN)),
        ("--max-requeue-count", REQUEUES.to_string()),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
