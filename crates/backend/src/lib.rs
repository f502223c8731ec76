//! HTTP client of model servers: discovery, streaming, abort; and the demo model.
//!
//! A [`Backend`] takes a [`BackendRequest`] and gives an [`Answer`] whose body comes as the network brings it. Bodies
//! are neither buffered nor parsed here. A request is sent twice only in the cases that [`http`] lists. Dropping an
//! answer, or the wait for one, closes the backend's connection at once, so that the backend stops computing.
//!
//! - [`backend`]: what every backend can do
//! - [`config`]: where a backend is and how much it takes
//! - [`address`]: a backend's base URL
//! - [`exchange`]: requests, answers and their bodies
//! - [`http`]: model servers over HTTP
//! - [`http1`]: HTTP/1.1 to model servers, without TLS
//! - `manner`: where a model server looks for its key, and how its paths begin
//! - [`headers`]: which headers pass to a backend and back
//! - [`model_engines`]: models whose servers are started when they are asked for
//! - [`models`]: lists of models; `facts`: what else model servers report about them
//! - [`probe`]: which endpoints a model server has
//! - [`discovery`]: the model servers of this machine; [`search`]: those that come and go
//! - [`demo`]: a built-in backend without a model
//! - [`error`]: what goes wrong

pub mod address;
pub mod backend;
mod client;
pub mod config;
mod connect;
mod connection;
pub mod demo;
pub mod discovery;
pub mod error;
pub mod exchange;
mod facts;
pub mod headers;
pub mod http;
pub mod http1;
pub mod key_file;
mod manner;
pub mod model_engines;
pub mod models;
mod ollama_host;
pub mod probe;
pub mod search;

pub use address::{BaseUrl, NotABackend};
pub use backend::Backend;
pub use config::{BackendConfig, Continues, MAX_CONTEXT, ModelEntry, NotAModel, Timeouts};
pub use demo::{DEMO_MODEL, DemoBackend, DemoConfig};
pub use discovery::{Examined, LocalBackend, examine, find_local};
pub use error::{BackendError, Phase};
pub use exchange::{Answer, AnswerBody, BackendRequest, Change};
pub use facts::ServerKind;
pub use http::HttpBackend;
pub use model_engines::{Claim, Hold, ModelEngines};
pub use search::Search;
