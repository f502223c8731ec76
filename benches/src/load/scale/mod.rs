//! A crowd at one server: workers that hold their jobs back, and clients that wait for them.
//!
//! - [`workers`]: many light workers in one process, of the stock protocol
//! - [`clients`]: many requests, each with one of many keys, over few connections

pub(crate) mod clients;
pub(crate) mod workers;

/// The name of the model of this number.
pub(crate) fn model(number: usize) -> String {
    format!("family/model-{number:05}")
}
