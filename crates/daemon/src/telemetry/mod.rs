//! Logs and metrics.
//!
//! - [`log`]: log lines on standard error, for people or as JSON
//! - `newest`: the newest lines in memory; `log_requests`: shows them at `/admin/logs`
//! - `request_log`: one log line for each job
//! - `traced_jobs`: the spans of jobs; [`tracing_export`]: where spans go
//! - `metrics`: the metrics, for Prometheus

pub mod log;
pub(crate) mod log_requests;
pub(crate) mod metrics;
mod newest;
pub(crate) mod request_log;
pub(crate) mod traced_jobs;
pub mod tracing_export;
