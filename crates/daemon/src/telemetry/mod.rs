//! Logs and metrics.
//!
//! - [`log`]: log lines on standard error, for people or as JSON
//! - `request_log`: one log line for each job
//! - `metrics`: the metrics, for Prometheus

pub mod log;
pub(crate) mod metrics;
pub(crate) mod request_log;
