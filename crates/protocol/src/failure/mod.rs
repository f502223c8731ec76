//! Failures: of providers, in the form of each API; of backends, in any form that they use.
//!
//! - `report`: a provider's failure, in the form of the requested path's API
//! - `backend`: a backend's error, read from a body or an event
//! - `loading`: refusals of a backend that loads its model
//! - `overflow`: a prompt that is too long, in the words of each backend
//! - `bad_answer`: an answer that does not have the expected shape

mod backend;
pub(crate) mod bad_answer;
mod loading;
mod overflow;
mod report;

pub use backend::{Failure, MAX_MESSAGE};
pub use bad_answer::{BadAnswer, MAX_KEPT};
pub use loading::{is_loading, may_be_loading};
pub use overflow::Overflow;
pub use report::{PassedStream, body, last_event};
