//! The client of model servers, against a server of raw bytes.

#[cfg(test)]
mod http;
#[cfg(test)]
mod models;
#[cfg(test)]
mod support;
