//! Gemini's API: its paths, its errors, and its form of bytes.
//!
//! - [`call`]: the model, the method and the form of an answer, which are in a path
//! - [`mod@complete`]: the same as fields of the body
//! - [`error`]: the error envelope
//! - [`base64`]: bytes in either alphabet of base64

pub mod base64;
pub mod call;
pub mod complete;
pub mod error;

pub use call::{Call, Form};
pub use complete::complete;
pub use error::{Problem, error_body, status_word};
