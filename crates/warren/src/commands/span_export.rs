//! The spans of a worker's jobs, on their way to a collector.

use daemon::{ServeOptions, telemetry::tracing_export::TraceSettings};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use worker::WorkerConfig;

use crate::exit::usage;

/// Sends the spans of a worker's jobs, if there is a collector.
pub(crate) struct SpanExport(Option<(CancellationToken, JoinHandle<()>)>);

impl SpanExport {
    /// Has a worker record spans, if its options name a collector.
    ///
    /// # Errors
    /// When the options of the collector are invalid.
    pub(crate) fn start(options: &ServeOptions, config: &mut WorkerConfig) -> anyhow::Result<Self> {
        let Some(tracing) = TraceSettings::of(options).map_err(usage)? else {
            return Ok(Self(None));
        };
        let (traces, export) = tracing.start("warren-worker")?;
        config.traces = Some(traces);
        let over = CancellationToken::new();
        Ok(Self(Some((over.clone(), tokio::spawn(export.run(over))))))
    }

    /// Sends the last spans.
    pub(crate) async fn end(self) {
        if let Some((over, export)) = self.0 {
            over.cancel();
            // The task ends by itself, once it has sent them.
            let _ = export.await;
        }
    }
}
