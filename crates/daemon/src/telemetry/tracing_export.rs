//! Whether this process traces requests, and where its spans go.

use std::io;

use anyhow::{Context, bail};
use prometheus_client::{encoding::text::encode_registry, registry::Registry};
use traces::{Counts, Export, Sampler, Target, Traces};

use super::metrics::counter;
use crate::{VERSION, options::ServeOptions};

/// The default of `--otlp-sample`: the share of requests that are traced if their clients do not decide it.
pub(crate) const RATIO: u8 = 1;

/// Where spans go, and which requests are traced.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    target: Target,
    sampler: Sampler,
}

impl TraceSettings {
    /// The settings among these options; `None`: nothing is traced.
    ///
    /// # Errors
    /// When the endpoint or the headers are not valid, or the share is not between 0 and 1.
    pub fn of(options: &ServeOptions) -> anyhow::Result<Option<Self>> {
        let ratio = options.otlp_sample.unwrap_or(RATIO.into());
        if !(0.0..=1.0).contains(&ratio) {
            bail!("--otlp-sample must be between 0 and 1");
        }
        let Some(endpoint) = &options.otlp_endpoint else { return Ok(None) };
        let target = Target::new(endpoint, options.otlp_headers.as_ref());
        let target = target.context("--otlp-endpoint")?;
        Ok(Some(Self { target, sampler: Sampler::of_ratio(ratio) }))
    }

    /// The queue of spans, and the task that sends them to the collector once it runs. `service`: the name of this
    /// process there.
    ///
    /// # Errors
    /// When this machine's certificates cannot be read.
    pub fn start(&self, service: &str) -> io::Result<(Traces, Export)> {
        Traces::to(self.target.clone(), service, &hardware::host_name(), VERSION)
    }

    /// Decides which new traces are recorded.
    pub(crate) fn sampler(&self) -> Sampler {
        self.sampler
    }
}

/// Appends the counts of spans, if requests are traced.
pub(crate) fn encode(text: &mut String, traces: Option<&Traces>) {
    let Some(Counts { sent, dropped }) = traces.map(Traces::counts) else { return };
    let mut registry = Registry::with_prefix("warren_spans");
    registry.register("sent", "Spans that the collector of traces has taken", counter(sent));
    registry.register(
        "dropped",
        "Spans that it did not take, or that came too fast",
        counter(dropped),
    );
    // Writing to a string does not fail.
    let _ = encode_registry(text, &registry);
}
