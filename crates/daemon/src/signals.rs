//! SIGTERM and SIGINT: the first drains the server, the second ends it at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled at the first SIGTERM or SIGINT. The second ends the process.
///
/// # Errors
/// When the process cannot listen to signals.
pub fn shutdown() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if first {
                tracing::info!("stopping: what is in flight may finish; a second signal ends it");
                stop.cancel();
            }
        }
        tracing::warn!("ended by a second signal");
        // `exit` runs no destructors, so the log's guard would not write the last lines.
        crate::telemetry::log::finish();
        std::process::exit(1);
    });
    Ok(token)
}
