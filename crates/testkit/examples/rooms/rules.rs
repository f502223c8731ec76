//! How long the server lets a request wait, and so how long a client must wait at most.

use std::time::Duration;

use testkit::Serve;

/// Requests that may wait in a queue: few, so that some are refused.
const QUEUE_LEN: u32 = 12;

/// How long a request may wait in queues, in all.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a participant may take to begin an answer: longer than a silent one takes to be lost.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// How long an answer may stand still.
const IDLE_TIMEOUT: Duration = Duration::from_secs(40);

/// How often a request goes on to another participant.
const REQUEUES: u32 = 3;

/// What the machine may take beside that, however busy it is.
const BUSY: Duration = Duration::from_secs(60);

/// A request that has not ended by then hangs. It may meet a frozen participant at each of its
/// tries, and be given back every time after half a minute: that is slow, but by the rules.
pub(crate) const HANGS: Duration = QUEUE_TIMEOUT
    .saturating_add(REQUEST_TIMEOUT.saturating_mul(1 + REQUEUES))
    .saturating_add(IDLE_TIMEOUT)
    .saturating_add(BUSY);

/// A server of these rules.
pub(crate) fn keep_to(serve: Serve) -> Serve {
    let seconds = |time: Duration| time.as_secs().to_string();
    serve
        .set("--max-queue-len", &QUEUE_LEN.to_string())
        .set("--max-requeue-count", &REQUEUES.to_string())
        .set("--queue-timeout-secs", &seconds(QUEUE_TIMEOUT))
        .set("--request-timeout-secs", &seconds(REQUEST_TIMEOUT))
        .set("--idle-timeout-secs", &seconds(IDLE_TIMEOUT))
}
