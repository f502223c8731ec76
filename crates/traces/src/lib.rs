//! Sends spans to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! A part that has a span hands it over and goes on: a bounded queue takes it, or it is dropped and counted. One task sends what is in
//! the queue, many spans at once. A collector that is away holds nobody up.
//!
//! - [`target`]: where the collector is, and what it asks for
//! - `export`: the queue, and the task behind it
//! - `client`: one request to the collector
//! - [`times`]: moments as spans have them; ids

mod client;
mod export;
pub mod target;
pub mod times;

pub use base::trace::{RequestTrace, Sampler, TRACEPARENT, TraceContext};
pub use export::{Counts, Export, Traces};
pub use protocol::otlp::{Span, SpanKind, Value};
pub use target::{NotATarget, Target};
