//! Logs and metrics.
//!
//! - [`log`]: log lines on standard error, for people or as JSON
//! - [`requests`]: one log line for each job
//! - [`metrics`]: the metrics, for Prometheus

pub mod log;
pub mod metrics;
pub mod requests;
