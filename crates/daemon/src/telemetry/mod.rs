//! Logs and metrics.
//!
//! - [`log`]: log lines on standard error, for people or as JSON
//! - `newest`: the newest lines in memory; `log_requests`: they are shown at `/admin/logs`
//! - `request_log`: one log line for each job
//! - `metrics`: the metrics, for Prometheus

pub mod log;
pub(crate) mod log_requests;
pub(crate) mod metrics;
mod newest;
pub(crate) mod request_log;
